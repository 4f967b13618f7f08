"""The flow of accuracies when an answer is right or wrong (arXiv 2608.17253, section 5 and App. B).

With ℓ = log(p/(1−p)), no clipping and no KL term, the mean of one GRPO step moves agent n by

    self           ℓ̇ = η G_K(p_n)                    its own majority is the label
    ring           ℓ̇ = η m_K(p_n) φ_K(p_{n−1})       the majority of the agent before is the label; N = 2 is mutual
    ground_truth   ℓ̇ = η m_K(p_n)
    ema            ℓ̇ = η m_K(p_n) φ_K(p_T), ℓ̇_T = α(ℓ − ℓ_T)    an own, slowly following teacher votes

and ṗ = p(1−p) ℓ̇. Accuracies are (..., N), N agents in ring order. A ring of one is not self: its label would come from a
second, independent group, which pulls harder, m_K|φ_K| ≥ |G_K|, in the same direction. p = 0 and p = 1 are fixed.
One unit of time is one step at η = 1. Questions are independent: nothing is generalised from one to another.
"""

from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import expit, logit

from corl_core.theory.binomial import check_group, check_probabilities, own_pull, reward_std, vote_margin

Array = np.ndarray
Supervision = Literal["self", "ring", "ground_truth", "ema"]
SUPERVISIONS = ("self", "ring", "ground_truth", "ema")
EDGE = 40.0  # log-odds that stand for certainty


def logit_rates(p: Array, supervision: Supervision, num_generations: int, teacher: Array | None = None) -> Array:
    """ℓ̇ at η = 1 for accuracies (..., N); `teacher` has the same shape and is needed for "ema" alone."""
    if supervision not in SUPERVISIONS:
        raise ValueError(f"supervision={supervision!r} is not known; choose one of {', '.join(SUPERVISIONS)}")
    if supervision == "self":
        return own_pull(p, num_generations)
    speed = reward_std(p, num_generations)
    if supervision == "ground_truth":
        return speed
    return speed * vote_margin(np.roll(p, 1, axis=-1) if supervision == "ring" else teacher, num_generations)


def velocity(p: Array, supervision: Supervision, num_generations: int) -> Array:
    """ṗ at η = 1 for accuracies (..., N). An EMA teacher that has caught up votes like its student."""
    given = check_probabilities(p)
    return given * (1 - given) * logit_rates(given, supervision, num_generations, teacher=given)


def trajectory(
    start: Array,
    supervision: Supervision,
    num_generations: int,
    times: Array,
    eta: float = 1.0,
    teacher_rate: float = 0.01,
    tolerance: float = 1e-8,
) -> Array:
    """The accuracies from `start` (..., N) at each of `times` (T,), the first of which is the start: (T, ..., N).

    `teacher_rate` is α, the share of the way to its student that an EMA teacher's log-odds go in a unit of time.
    """
    check_group(num_generations, 2)
    given = check_probabilities(start)
    with np.errstate(divide="ignore"):
        begin = logit(given).clip(-EDGE, EDGE).ravel()
    size, shape = begin.size, given.shape
    if supervision == "ema":
        begin = np.tile(begin, 2)

    def rates(_: float, state: Array) -> Array:
        p = expit(state[:size].reshape(shape))
        if supervision != "ema":
            return eta * logit_rates(p, supervision, num_generations).ravel()
        own = eta * logit_rates(p, "ema", num_generations, expit(state[size:].reshape(shape))).ravel()
        return np.concatenate([own, teacher_rate * (state[:size] - state[size:])])

    flow = solve_ivp(rates, (times[0], times[-1]), begin, "DOP853", t_eval=times, rtol=tolerance, atol=tolerance)
    path = expit(flow.y[:size].T.reshape(len(times), *shape))
    return np.where((given == 0) | (given == 1), given, path)
