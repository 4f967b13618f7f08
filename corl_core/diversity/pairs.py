"""Every pair of models with its measures, their 95% intervals, and a reason in words where a measure is not defined.

Intervals are percentiles of a bootstrap over questions: drawing n questions anew with replacement is drawing a multinomial over
the cells of the pair's table, so no question is touched again. They do not depend on which other models there are. Two limits
to know: a share of exactly 0 or 1 has an interval without width, since what was never seen cannot be drawn; and resamples in
which a measure is not defined are left out (no interval where these are half of them or more).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from corl_core.diversity.answers import Answers, Basis
from corl_core.diversity.measures import MEASURES, Counts, count
from corl_core.seeds import derive

RESAMPLES = 2_000
LEVEL = 0.95
Interval = tuple[float, float]


@dataclass(frozen=True)
class Pair:
    """Two models; `values`, `intervals` and `reasons` (why there is no value) by the measure's name."""

    a: str
    b: str
    num_labelled: int  # questions with known truth that both were asked
    num_answered: int  # questions that both answered
    right_a: float | None  # accuracy of a on the labelled ones
    right_b: float | None
    values: dict[str, float | None]
    intervals: dict[str, Interval | None]
    reasons: dict[str, str] = field(default_factory=dict)

    def __getitem__(self, measure: str) -> float | None:
        return self.values[measure]


def pairs(answers: Answers, basis: Basis = "first", seed: int = 0) -> list[Pair]:
    """All unordered pairs, in the models' order."""
    taken = answers.taken(basis)
    return [
        compare(answers.models[a], answers.models[b], taken[a], taken[b], answers.truths, seed)
        for a, b in combinations(range(len(answers.models)), 2)
    ]


def selves(answers: Answers, seed: int = 0) -> list[Pair]:
    """Each model beside itself, its first sample and its second: what two runs of one model that differ by the seed alone
    share ('seeds only' in the paper's table). [] with one sample a question."""
    if answers.num_samples < 2:
        return []
    first, second = answers.taken("first", 0), answers.taken("first", 1)
    return [
        compare(model, model, first[place], second[place], answers.truths, seed) for place, model in enumerate(answers.models)
    ]


def compare(a: str, b: str, codes_a: np.ndarray, codes_b: np.ndarray, truths: np.ndarray, seed: int = 0) -> Pair:
    """One pair, from (Q,) codes."""
    counts = count(codes_a, codes_b, truths)
    drawn = _resampled(counts, np.random.default_rng(derive("diversity", seed, a, b)))
    values = {name: measure.value(counts) for name, measure in MEASURES.items()}
    reasons = {name: _reason(name, counts) for name, value in values.items() if value is None}
    intervals = {name: None if values[name] is None else interval(MEASURES[name].of(drawn)) for name in MEASURES}
    total, answering = int(counts.total), int(counts.answering)
    right = [float(part / total) if total else None for part in (counts.both + counts.only_a, counts.both + counts.only_b)]
    return Pair(a, b, total, answering, *right, values, intervals, reasons)


def interval(drawn: np.ndarray) -> Interval | None:
    """The middle 95% of resampled values; None where half of them or more are not defined."""
    defined = drawn[~np.isnan(drawn)]
    if 2 * len(defined) <= len(drawn):
        return None
    low, high = np.quantile(defined, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def _resampled(counts: Counts, rng: np.random.Generator) -> Counts:
    """`RESAMPLES` tables, each field an array of that length."""
    split = counts.neither - counts.same_wrong
    both, only_a, only_b, same, other = _multinomial(rng, [counts.both, counts.only_a, counts.only_b, counts.same_wrong, split])
    agreeing, differing = _multinomial(rng, [counts.agreeing, counts.answering - counts.agreeing])
    return Counts(both, only_a, only_b, same + other, same, agreeing, agreeing + differing)


def _multinomial(rng: np.random.Generator, cells: Sequence[np.ndarray]) -> np.ndarray:
    """(C, RESAMPLES) counts of as many questions as the cells hold."""
    counts = np.array(cells, dtype=float)
    total = counts.sum()
    if total == 0:
        return np.zeros((len(counts), RESAMPLES), dtype=int)
    return rng.multinomial(int(total), counts / total, size=RESAMPLES).T


def _reason(name: str, counts: Counts) -> str:
    """Why a measure of this table is not defined."""
    measure = MEASURES[name]
    if measure.needs_truth and not counts.total:
        return "no question that both were asked has a known truth"
    if name == "kappa":
        return f"both are {'right' if counts.both else 'wrong'} on every question, so chance agreement is 1"
    return measure.undefined
