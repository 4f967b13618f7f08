"""One value and its band out of several seeds, at each step.

Centres: `mean`; `median`; `iqm`, the interquartile mean, which leaves out the lowest and the highest quarter (of n values
the floor(n/4) at either end, so up to three seeds it is the mean; arXiv 2108.13264, section 4.3).
Spreads: `std`, the sample standard deviation (n-1) either side; `stderr`, that over sqrt(n); `bootstrap`, the 2.5th to 97.5th
percentile of the centre over samples of the seeds with replacement (Efron's percentile interval).

Values that are missing or not finite are left out, and n says how many are in. One seed has no band; none has no value.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from corl_core.figures.spec import Array

CENTERS = {"mean": "Mean", "median": "Median", "iqm": "Interquartile mean"}
SPREADS = {"std": "±1 std", "stderr": "±1 stderr", "bootstrap": "95% bootstrap"}
DRAWS = 1000


@dataclass(frozen=True)
class Summary:
    """Arrays of shape [num_steps]; low and high are NaN where n < 2."""

    center: Array
    low: Array
    high: Array
    n: Array


def summarise(values: Array, center: str = "mean", spread: str = "std") -> Summary:
    """Of `values` of shape [num_steps, num_seeds]."""
    ordered = np.sort(np.where(np.isfinite(values), values, np.nan), axis=1)  # NaN last
    counts = np.isfinite(ordered).sum(axis=1)
    found = np.full((3, len(counts)), np.nan)
    for n in np.unique(counts[counts > 0]):
        rows = counts == n
        found[:, rows] = _of_n(ordered[rows, :n], center, spread)
    return Summary(*found, counts)


def _of_n(ordered: Array, center: str, spread: str) -> tuple[Array, Array, Array]:
    """Centre, low and high of rows of n sorted values, shape [num_rows, n]."""
    n = ordered.shape[1]
    middle = ordered @ weights(center, n)
    if n == 1:
        return middle, np.full(len(ordered), np.nan), np.full(len(ordered), np.nan)
    if spread == "bootstrap":
        low, high = np.percentile(ordered @ _drawn_weights(center, n).T, (2.5, 97.5), axis=1)
        return middle, low, high
    width = ordered.std(axis=1, ddof=1) / (np.sqrt(n) if spread == "stderr" else 1.0)
    return middle, middle - width, middle + width


def weights(center: str, n: int) -> Array:
    """The centre of n values is the sum of these times the sorted values (shape [n])."""
    cut = {"mean": 0, "median": (n - 1) // 2, "iqm": n // 4}[center]
    inside = np.zeros(n)
    inside[cut : n - cut] = 1 / (n - 2 * cut)
    return inside


@lru_cache(maxsize=64)
def _drawn_weights(center: str, n: int) -> Array:
    """The same for each of DRAWS samples of n with replacement, as weights of the n sorted values (shape [DRAWS, n]).

    In a sample that holds the j-th value c_j times, it fills c_j ranks in a row, and has the weights of these.
    """
    often = np.random.default_rng(0).multinomial(n, np.full(n, 1 / n), size=DRAWS)
    upto = np.concatenate([[0.0], np.cumsum(weights(center, n))])
    last = np.cumsum(often, axis=1)
    return upto[last] - upto[last - often]
