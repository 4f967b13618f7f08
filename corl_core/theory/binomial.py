"""The binary reduction: an answer is right with probability p or wrong, and K answers are drawn (arXiv 2608.17253, App. B).

C ~ Binomial(K, p) is the number of right answers in a group of K. All functions take p of any shape and return that shape.
"""

import numpy as np
from scipy.special import betainc, comb, gammaln, xlog1py, xlogy

Array = np.ndarray
ROUNDING = 1e-6  # how far outside 0 to 1 a sum of fractions may end


def check_group(num_generations: int, least: int = 1) -> int:
    """`num_generations` when it can be a group's size; raises ValueError otherwise."""
    if num_generations != int(num_generations) or num_generations < least:
        raise ValueError(f"num_generations={num_generations}: a group has at least {least} answers; give a whole number")
    return int(num_generations)


def check_probabilities(p: Array | float) -> Array:
    """`p` as floats, when all of it lies in [0, 1]; raises ValueError otherwise."""
    given = np.asarray(p, dtype=float)
    bad = given[~((given >= -ROUNDING) & (given <= 1 + ROUNDING))]
    if bad.size:
        raise ValueError(f"probability {bad.flat[0]:g} is outside 0 to 1; give accuracies as fractions")
    return given.clip(0, 1)


def hits(p: Array | float, num_generations: int) -> Array:
    """P(C = c) for c = 0..K, along a new last axis of length K + 1."""
    size = check_group(num_generations)
    c = np.arange(size + 1)
    ways = gammaln(size + 1) - gammaln(c + 1) - gammaln(size - c + 1)
    chance = np.asarray(p, dtype=float)[..., None]
    return np.exp(ways + xlogy(c, chance) + xlog1py(size - c, -chance))


def vote_accuracy(p: Array | float, num_generations: int) -> Array:
    """V_K(p) = P(C > K/2) + P(C = K/2)/2: the chance that the majority of K is right, with a fair draw at a tie.

    V_K(p) = I_p(m, m), the regularised incomplete beta function, with m = ⌈K/2⌉: for odd K by the binomial-beta
    identity, and for even K since a fair tie makes the last answer worthless, V_2m = V_2m−1.
    """
    half = (check_group(num_generations) + 1) // 2
    return betainc(half, half, p)


def vote_margin(p: Array | float, num_generations: int) -> Array:
    """φ_K(p) = 2 V_K(p) − 1: by how much a right majority is likelier than a wrong one. Odd about p = ½."""
    return 2 * vote_accuracy(p, num_generations) - 1


def margin_slope(num_generations: int) -> float:
    """φ_K′(½) = 2K·C(K−1, (K−1)/2)·2^−(K−1) for odd K; an even K has the slope of K − 1."""
    size = check_group(num_generations)
    size -= 1 - size % 2
    return float(2 * size * comb(size - 1, (size - 1) // 2, exact=True) / 2 ** (size - 1))


def reward_std(p: Array | float, num_generations: int) -> Array:
    """m_K(p) = E[√(C(K−C))]/K: the expected standard deviation of a group's 0/1 rewards when the label is independent of
    the group. It is also the speed at which the logit moves; 0 at p = 0 and p = 1, where a group teaches nothing."""
    return hits(p, num_generations) @ _std_of_hits(num_generations)


def own_pull(p: Array | float, num_generations: int) -> Array:
    """G_K(p) = E[sign(C − K/2)·√(C(K−C))]/K: the logit's speed when the group's own majority is the label.

    Odd about ½, and |G_K| ≤ m_K·|φ_K|: a group that judges itself moves less than one judged by an independent vote.
    """
    c = np.arange(num_generations + 1)
    return hits(p, num_generations) @ (np.sign(2 * c - num_generations) * _std_of_hits(num_generations))


def _std_of_hits(num_generations: int) -> Array:
    c = np.arange(check_group(num_generations) + 1)
    return np.sqrt(c * (num_generations - c)) / num_generations
