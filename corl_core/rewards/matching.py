"""Rewards of a group against one target: 1 if a rollout's answer is equivalent to it, else 0.

Source: arXiv 2608.17253, Eq. 4. A rollout without a parsed answer gets 0, whatever the target. Without a target (the peer
abstained or nothing parsed) the group is *unlabelled*: there are no rewards, and no gradient at beta = 0.
"""

from collections.abc import Sequence

from corl_core.answers import Answer


def rewards(answers: Sequence[Answer | None], target_key: str | None) -> tuple[float, ...] | None:
    """One reward a rollout, in {0, 1}; None for an unlabelled group."""
    if target_key is None:
        return None
    return tuple(float(answer is not None and answer.key == target_key) for answer in answers)
