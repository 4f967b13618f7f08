"""GRPO's advantages for 0/1 rewards: C hits in a group of K.

Population standard deviation √(C(K−C))/K gives a hit A⁺ = √((K−C)/C) and a miss A⁻ = −√(C/(K−C)); the sample standard
deviation (ddof = 1, TRL's) multiplies both by √((K−1)/K). A unanimous group has no advantage. The lone dissenter among
K = 8 gets −2.65: that is what makes a wrong consensus lock in fast.
"""

import numpy as np

from corl_core.theory.binomial import check_group

Array = np.ndarray
TRL_EPSILON = 1e-4  # TRL adds it to the standard deviation; it moves the fourth digit


def advantages(rewards: Array, ddof: int = 1, epsilon: float = TRL_EPSILON) -> Array:
    """(r − mean)/(std + epsilon) along the last axis, which is one group; zeros where all rewards are equal."""
    given = np.asarray(rewards, dtype=float)
    centred = given - given.mean(axis=-1, keepdims=True)
    spread = given.std(axis=-1, ddof=ddof, keepdims=True)
    return np.divide(centred, spread + epsilon, out=np.zeros_like(given), where=spread > 1e-12)


def of_hits(num_hits: Array | int, num_generations: int, ddof: int = 0, epsilon: float = 0.0) -> tuple[Array, Array]:
    """(A⁺, A⁻) of a group with `num_hits` hits; both 0 when none or all of it hits."""
    size, c = check_group(num_generations, 2), np.asarray(num_hits, dtype=float)
    if ((c < 0) | (c > size)).any():
        raise ValueError(f"num_hits={num_hits}: a group of {size} has 0 to {size} hits")
    spread = np.sqrt(c * (size - c)) / size * np.sqrt(size / (size - ddof)) + epsilon
    mixed = (c > 0) & (c < size)
    hit = np.divide((size - c) / size, spread, out=np.zeros_like(c), where=mixed)
    miss = np.divide(-c / size, spread, out=np.zeros_like(c), where=mixed)
    return hit, miss
