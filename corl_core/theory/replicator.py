"""Several answers a question: the mean of one GRPO step on the logits θ of a softmax policy, and its flow.

For a *fixed* label y (0/1 rewards, population standard deviation, η = 1) the expected update of the logits is

    d(y) = s̄_K(p_y)·[e_y − p_{−y}/(1 − p_y)],   s̄_K(p) = E[√(C(K−C))]/K, C ~ Binomial(K, p):

hits get +s in total and misses −s, shared among the misses in proportion to p; the softmax term drops since advantages
sum to 0. An independent vote with distribution π gives Σ_y π(y) d(y). An own vote is decided by the same K draws, so its
mean is taken over the joint outcomes instead (`Outcomes.pulls`). Then ṗ_a = p_a(θ̇_a − Σ_b p_b θ̇_b).

Arrays are (..., N, M): N agents in ring order, M classes, class 0 is the truth; agent n's peer is n − 1. Two classes move
twice as fast as in `meanfield`, whose logit is the difference of the two. A class with probability 0 stays at 0: nothing
is ever explored. Questions are independent: nothing is generalised from one to another.
"""

from typing import Literal

import numpy as np
from scipy.integrate import solve_ivp
from scipy.special import softmax

from corl_core.theory.binomial import reward_std
from corl_core.theory.plurality import TINY, outcomes, with_silent

Array = np.ndarray
Supervision = Literal["self", "ring", "ground_truth", "ema", "random"]
SUPERVISIONS = ("self", "ring", "ground_truth", "ema", "random")


def label_pull(p: Array, labels: Array, num_generations: int) -> Array:
    """Σ_y π(y) d(y) for answer probabilities p and a label distribution, both (..., M), independent of the group."""
    strength = labels * reward_std(p, num_generations)
    missed = 1 - p
    per_miss = np.divide(strength, missed, out=np.zeros_like(strength), where=missed > 1e-12)
    return strength - p * (per_miss.sum(axis=-1, keepdims=True) - per_miss)


def logit_rates(
    p: Array, supervision: Supervision, num_generations: int, silent: bool = False, teacher: Array | None = None
) -> Array:
    """θ̇ at η = 1 for p of shape (..., N, M). `silent`: the last class stands for answers that do not parse.

    self: the own vote; ring: the vote of the agent before; ground_truth: class 0; random: any voting class alike;
    ema: the vote of `teacher`, which has p's shape.
    """
    if supervision not in SUPERVISIONS:
        raise ValueError(f"supervision={supervision!r} is not known; choose one of {', '.join(SUPERVISIONS)}")
    if supervision == "ground_truth":
        return label_pull(p, np.broadcast_to(np.eye(p.shape[-1])[0], p.shape), num_generations)
    if supervision == "random":
        voting = np.ones(p.shape[-1])
        voting[-1] -= silent
        return label_pull(p, np.broadcast_to(voting / voting.sum(), p.shape), num_generations)
    found = outcomes(num_generations, p.shape[-1], silent)
    if supervision == "self":
        return found.chances(p) @ found.pulls.astype(p.dtype)
    giver = np.roll(p, 1, axis=-2) if supervision == "ring" else teacher
    return label_pull(p, found.chances(giver) @ found.wins.astype(p.dtype), num_generations)


def velocity(p: Array, supervision: Supervision, num_generations: int) -> Array:
    """ṗ at η = 1 for p of shape (..., N, M); where p sums to less than 1, the rest does not parse."""
    full, silent = with_silent(p)
    rates = logit_rates(full, supervision, num_generations, silent)
    return (full * (rates - (full * rates).sum(axis=-1, keepdims=True)))[..., : np.asarray(p).shape[-1]]


def evolve(
    start: Array,
    supervision: Supervision,
    num_generations: int,
    times: Array,
    eta: float = 1.0,
    teacher_rate: float = 0.01,
    tolerance: float = 1e-6,
    first_step: float | None = None,
) -> Array:
    """The flow from `start` (..., N, M) at each of `times` (T,), the first of which is the start: (T, ..., N, M).

    Votes are worked out in the precision of `start`: float32 is four times as fast and good to six digits.

    `teacher_rate`: the share of the way to the student that an EMA teacher's logits go in a unit of time.
    """
    full, silent = with_silent(start)
    shape, size, kind = full.shape, full.size, np.result_type(start, np.float32)
    begin = np.log(np.maximum(full, TINY)).ravel()
    if supervision == "ema":
        begin = np.tile(begin, 2)

    def rates(_: float, state: Array) -> Array:
        p = softmax(state[:size].reshape(shape), axis=-1).astype(kind)
        if supervision != "ema":
            return eta * logit_rates(p, supervision, num_generations, silent).ravel()
        teacher = softmax(state[size:].reshape(shape), axis=-1)
        own = eta * logit_rates(p, "ema", num_generations, silent, teacher).ravel()
        return np.concatenate([own, teacher_rate * (state[:size] - state[size:])])

    flow = solve_ivp(rates, (times[0], times[-1]), begin, t_eval=times, rtol=tolerance, atol=tolerance, first_step=first_step)
    path = softmax(flow.y[:size].T.reshape(len(times), *shape), axis=-1) * (full > 0)
    return path[..., : np.asarray(start).shape[-1]]
