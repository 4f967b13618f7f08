"""A weighted sum of signals (asked for by users of Intuitor: internal and external reward together).

    reward = sum over signals of weight * that signal's reward

The sum is formed first and normalised within the group after, as TRL does with several reward functions. Signals on different
scales (a 0/1 match, nats of entropy) are not rescaled: choose weights accordingly, and watch each signal's own curve.
Degenerate cases: a signal that leaves a group unlabelled adds nothing to it; where all do, the group is unlabelled.
"""

from collections.abc import Mapping

from corl_core.rewards.batch import Scored


def combine(parts: Mapping[str, Scored], weights: Mapping[str, float]) -> Scored:
    """The sum; its labels are those of the first signal that has any."""
    groups = zip(*(part.rewards for part in parts.values()), strict=True)
    names = list(parts)
    summed = tuple(
        _sum([(weights[name], group) for name, group in zip(names, of_question, strict=True) if group is not None])
        for of_question in groups
    )
    return Scored(summed, next((part.labels for part in parts.values() if part.labels is not None), None))


def _sum(known: list[tuple[float, tuple[float, ...]]]) -> tuple[float, ...] | None:
    if not known:
        return None
    return tuple(sum(weight * value for (weight, _), value in zip(known, values, strict=True))
                 for values in zip(*(group for _, group in known), strict=True))  # fmt: skip

