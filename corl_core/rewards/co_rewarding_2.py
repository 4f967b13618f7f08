"""Co-rewarding-II: the vote of a slowly moving teacher is the pseudo-label (arXiv 2508.00410).

    teacher <- alpha(t) * policy + (1 - alpha(t)) * teacher,  at each step t = 0 … T-1, before sampling
    alpha(t) = end + (start - end) * (1 + cos(pi t / T)) / 2
    label(x) = vote of the teacher's own completions of x
    reward   = 1 if a rollout's answer is equivalent to label(x), else 0

The teacher starts as the base model and gets no gradient. The released script moves alpha from .01 to 1e-5 (the paper's text
says 1e-4; its yaml says .3 to .05); the first is the default here. Assumes that a slower copy makes other mistakes than the
policy; it does not make other *systematic* ones, so what the base model's majority gets wrong stays wrong. Degenerate cases:
alpha = 0 throughout labels with the base model's vote for ever; alpha = 1 is TTRL with a vote of its own. Unlike the released
code the teacher is not the reference of a KL penalty, and answers are equal when their keys are, not their strings.

Cost: another copy of the weights (inference only: no gradient, no optimizer state) and another K completions a question,
so sampling takes twice the time.
"""

from collections.abc import Sequence
from math import cos, pi

from corl_core.votes import Vote, passes


def alpha(step: int, num_steps: int, start: float, end: float) -> float:
    """Share of the policy that is mixed into the teacher before step `step` (from 0) of `num_steps`."""
    return end + (start - end) * (1 + cos(pi * step / num_steps)) / 2


def pseudo_labels(teacher: Sequence[Vote], min_share: float = 0.0) -> list[str | None]:
    """Canonical key of each question's label, from the teacher's votes."""
    return [cast.key if passes(cast, min_share) else None for cast in teacher]
