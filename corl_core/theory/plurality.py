"""Which answer wins the vote when there are several: the plurality of K draws from M classes, ties drawn fairly.

Exact by enumerating the compositions of K into M counts while there are at most MAX_OUTCOMES of them, by seeded Monte
Carlo beyond. A probability vector may sum to less than 1: the rest are answers that do not parse. They never vote and are
never rewarded; a group in which nothing parses casts no vote, so the vote's probabilities then sum to less than 1 too.
"""

from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from math import comb

import numpy as np
from scipy.special import gammaln

from corl_core.theory.binomial import ROUNDING, check_group, check_probabilities

Array = np.ndarray
MAX_OUTCOMES = 20_000
NUM_SAMPLES = 20_000  # Monte Carlo: standard error at most 0.0036
CELLS = 4_000_000  # chances held in memory at once
TINY = 1e-300  # stands in for 0 under a logarithm


@dataclass(frozen=True)
class Outcomes:
    """Every way K draws can fall into M classes, the last of which may be silent."""

    counts: Array  # (O, M)
    log_ways: Array  # (O,) log of K!/Π counts!
    wins: Array  # (O, M) the chance that a class wins the vote: 1, or 1/ties
    pulls: Array  # (O, M) logit update of one GRPO step on the group's own vote: see `replicator`

    def chances(self, p: Array) -> Array:
        """P(outcome) for each p of shape (..., M), in p's precision: (..., O)."""
        logs = np.log(np.maximum(p, np.finfo(p.dtype).tiny))
        return np.exp(logs @ self.counts.T.astype(p.dtype) + self.log_ways.astype(p.dtype))


def num_outcomes(num_generations: int, num_classes: int) -> int:
    """C(K+M−1, M−1) compositions."""
    return comb(num_generations + num_classes - 1, num_classes - 1)


@lru_cache(maxsize=16)
def outcomes(num_generations: int, num_classes: int, silent: bool = False) -> Outcomes:
    """The enumeration; `silent` says that the last class never votes. Raises ValueError when it is too large."""
    if num_outcomes(check_group(num_generations), num_classes) > MAX_OUTCOMES:
        raise ValueError(
            f"num_generations={num_generations} with {num_classes} classes has more than {MAX_OUTCOMES:,} outcomes; "
            "merge rare answers or use a smaller group"
        )
    size = num_generations + num_classes - 1
    bars = np.array(list(combinations(range(size), num_classes - 1)), dtype=int).reshape(-1, num_classes - 1)
    edge = np.ones((len(bars), 1), dtype=int)
    counts = np.diff(np.hstack([-edge, bars, size * edge]), axis=1) - 1
    ways = gammaln(num_generations + 1) - gammaln(counts + 1).sum(axis=1)
    wins = win_shares(counts, silent)
    return Outcomes(counts.astype(float), ways, wins, _pulls(counts, wins))


def win_shares(counts: Array, silent: bool = False) -> Array:
    """The chance of each class to win, for counts (..., M): ties are shared, and nobody wins when nothing parsed."""
    voting = counts.astype(float)
    if silent:
        voting[..., -1] = 0
    top = voting.max(axis=-1, keepdims=True)
    first = (voting == top) & (top > 0)
    return first / np.maximum(first.sum(axis=-1, keepdims=True), 1)


def _pulls(counts: Array, wins: Array) -> Array:
    """Σ_y wins(y)·s(c_y)·(e_y − Σ_{b≠y} c_b/(K−c_y) e_b) with s(c) = √(c(K−c))/K; a unanimous group gives 0."""
    total = counts.sum(axis=1, keepdims=True)
    missed = total - counts  # (O, M) draws that are not y, for each y
    scale = wins * np.sqrt(counts * missed) / total  # (O, M) over y
    per_miss = scale / np.maximum(missed, 1)
    return scale - counts * (per_miss.sum(axis=1, keepdims=True) - per_miss)


def with_silent(p: Array) -> tuple[Array, bool]:
    """p (..., M) as floats that sum to 1, with a silent class appended where some of it sums to less.

    Raises ValueError for negative probabilities and for sums above 1.
    """
    given = check_probabilities(p)
    rest = 1 - given.sum(axis=-1, keepdims=True)
    if rest.size and rest.min() < -ROUNDING:
        raise ValueError(f"answer probabilities sum to {1 - rest.min():g}; they may sum to 1 at most")
    if not rest.size or rest.max() < 1e-9:
        return given, False
    return np.concatenate([given, np.maximum(rest, 0)], axis=-1), True


def vote_distribution(p: Array, num_generations: int, seed: int = 0) -> Array:
    """π(y; p, K): the chance of each class to be the vote, for p of shape (..., M); same shape.

    `seed` matters only beyond MAX_OUTCOMES, where NUM_SAMPLES groups are drawn.
    """
    full, silent = with_silent(p)
    classes = full.shape[-1]
    if num_outcomes(check_group(num_generations), classes) <= MAX_OUTCOMES:
        found = outcomes(num_generations, classes, silent)
        rows = full.reshape(-1, classes)
        step = max(1, CELLS // len(found.counts))
        parts = [found.chances(rows[at : at + step]) @ found.wins for at in range(0, len(rows), step)]
        votes = np.concatenate([*parts, rows[:0]]).reshape(full.shape)
    else:
        votes = _sampled(full, num_generations, silent, np.random.default_rng(seed))
    return votes[..., : np.asarray(p).shape[-1]]


def _sampled(p: Array, num_generations: int, silent: bool, generator: np.random.Generator) -> Array:
    """Monte Carlo, one question after the other so that memory stays at NUM_SAMPLES × M."""
    rows = (p / p.sum(axis=-1, keepdims=True)).reshape(-1, p.shape[-1])
    votes = [win_shares(generator.multinomial(num_generations, row, NUM_SAMPLES), silent).mean(axis=0) for row in rows]
    return np.array(votes).reshape(p.shape)
