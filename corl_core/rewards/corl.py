"""Co-RL: the peer's vote is the pseudo-label (arXiv 2608.17253, section 4, Algorithm 1).

    label_n(x) = vote of agent n's predecessor on the ring on the same question x
    reward     = 1 if a rollout's answer is equivalent to label_n(x), else 0

All votes are exchanged before any agent updates. Assumes that both agents drew the same questions (the exchange checks
it) and that their errors overlap little: where peers share a wrong answer, the cohort reinforces it. Degenerate cases:
a peer whose group did not parse, or whose vote share is below the threshold, gives no label; on a ring of one this
is TTRL.
"""

from collections.abc import Sequence

from corl_core.answers import answer


def pseudo_labels(received: Sequence[str | None]) -> list[str | None]:
    """Canonical key of each question's label, from the answers that the peer sent (None where it sent none)."""
    parsed = [answer(text) if text is not None else None for text in received]
    return [label.key if label else None for label in parsed]
