"""TTRL: an agent's own vote is its pseudo-label (arXiv 2504.16084).

    label(x) = vote of the agent's own group on x
    reward   = 1 if a rollout's answer is equivalent to label(x), else 0

The same as Co-RL on a ring of one. Assumes that the agent's most common answer is more often right than wrong: where
it is not, the mistake is reinforced. Degenerate case: a group that does not parse is unlabelled (the released code lets
the empty string win there; this one does not).
"""

from collections.abc import Sequence

from corl_core.votes import Vote, passes


def pseudo_labels(own: Sequence[Vote], min_share: float = 0.0) -> list[str | None]:
    """Canonical key of each question's label, from the agent's own votes."""
    return [cast.key if passes(cast, min_share) else None for cast in own]
