"""RENT: a completion is worth how little entropy its tokens had (arXiv 2505.22660).

    reward = -mean over tokens of H(p_t),  H(p) = -sum_v p(v) log p(v)

over all completion tokens (the released default; the paper finds that answer tokens alone do worse), at the sampling
temperature. Assumes that low entropy goes with being right; it is just as low for a confident mistake. With `no_answer`, a
completion without a parsed answer gets that reward instead (the released 'format' experiment: -7), so that falling silent
does not pay. Degenerate cases: an empty completion has entropy 0; equal entropies give no gradient.
"""

from corl_core.answers import Answer
from corl_core.rewards.batch import Rewards


def rewards(
    entropies: tuple[tuple[float, ...], ...], answers: tuple[tuple[Answer | None, ...], ...], no_answer: float | None = None
) -> Rewards:
    """(P, V), nats, at most 0."""
    return tuple(
        tuple(
            no_answer if answer is None and no_answer is not None else -entropy
            for entropy, answer in zip(group, parsed, strict=True)
        )
        for group, parsed in zip(entropies, answers, strict=True)
    )
