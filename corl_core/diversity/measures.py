"""The measures of a pair, each by its definition, over arrays of counts (arXiv 2608.17253, App. A; methods of error overlap).

Every function takes `Counts`, whose arrays have any one shape, and gives an array of that shape: NaN where the measure is not
defined. Shares are fractions of the questions that both models were asked and whose truth is known; an answer that could not
be read is wrong. For the four measures that `corl_core/diagnostics.py` has as well, which works on one table at a time with the
standard library alone, a pair's value is the one given there; tests hold the two to be equal.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from corl_core import diagnostics
from corl_core.diagnostics import PairCounts
from corl_core.diversity.answers import NOT_ASKED


@dataclass(frozen=True)
class Counts:
    """Questions by who was right, `same_wrong` within `neither`; and by whether the answers agree, truth aside."""

    both: np.ndarray
    only_a: np.ndarray
    only_b: np.ndarray
    neither: np.ndarray
    same_wrong: np.ndarray
    agreeing: np.ndarray  # both answered, and the same
    answering: np.ndarray  # both answered

    @property
    def total(self) -> np.ndarray:
        return self.both + self.only_a + self.only_b + self.neither

    @property
    def table(self) -> PairCounts:
        """The counts of one pair as diagnostics has them."""
        return PairCounts(*(int(getattr(self, name)) for name in ("both", "only_a", "only_b", "neither", "same_wrong")))


def count(a: np.ndarray, b: np.ndarray, truths: np.ndarray) -> Counts:
    """(Q,) codes of two models and of the truths. Questions that one of them was not asked are left out."""
    asked = (a != NOT_ASKED) & (b != NOT_ASKED)
    a, b, truths = a[asked], b[asked], truths[asked]
    known, equal = truths >= 0, (a == b) & (a >= 0)
    right_a, right_b = (a == truths) & known, (b == truths) & known
    neither = known & ~right_a & ~right_b
    cells = (right_a & right_b, right_a & ~right_b, ~right_a & right_b, neither, neither & equal, equal, (a >= 0) & (b >= 0))
    return Counts(*(cell.sum() for cell in cells))


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    return np.divide(part, whole, out=np.full(np.shape(part), np.nan), where=np.asarray(whole) > 0)


def kappa(c: Counts) -> np.ndarray:
    right_a, right_b = _share(c.both + c.only_a, c.total), _share(c.both + c.only_b, c.total)
    observed = _share(c.both + c.neither, c.total)
    chance = right_a * right_b + (1 - right_a) * (1 - right_b)
    return np.divide(observed - chance, 1 - chance, out=np.full(np.shape(chance), np.nan), where=1 - chance >= 1e-12)


def exactly_one_right(c: Counts) -> np.ndarray:
    """Share of all questions that exactly one of the two gets right (c): what one can teach the other."""
    return _share(c.only_a + c.only_b, c.total)


def same_wrong(c: Counts) -> np.ndarray:
    return _share(c.same_wrong, c.total)


def union(c: Counts) -> np.ndarray:
    """Share of all questions that at least one of the two gets right (u): 1 minus both wrong."""
    return _share(c.total - c.neither, c.total)


def jaccard(c: Counts) -> np.ndarray:
    return _share(c.neither, c.total - c.both)


def both_wrong(c: Counts) -> np.ndarray:
    return _share(c.neither, c.total)


def excess_overlap(c: Counts) -> np.ndarray:
    """Both wrong, minus what independent models of the same accuracies would give: 0 when independent."""
    wrong_a, wrong_b = _share(c.only_b + c.neither, c.total), _share(c.only_a + c.neither, c.total)
    return both_wrong(c) - wrong_a * wrong_b


def b_wrong_if_a_wrong(c: Counts) -> np.ndarray:
    """Share of the questions that a gets wrong which b gets wrong, too. Not the same the other way round."""
    return _share(c.neither, c.only_b + c.neither)


def a_wrong_if_b_wrong(c: Counts) -> np.ndarray:
    """Share of the questions that b gets wrong which a gets wrong, too. Not the same the other way round."""
    return _share(c.neither, c.only_a + c.neither)


def agreement(c: Counts) -> np.ndarray:
    """Share of questions on which the two give the same answer, among those that both answered. It needs no truth, and
    says consensus, not correctness."""
    return _share(c.agreeing, c.answering)


@dataclass(frozen=True)
class Measure:
    """How a measure is shown. `needs_truth`: it cannot be had without true answers."""

    name: str
    label: str
    of: Callable[[Counts], np.ndarray]
    doc: str
    undefined: str  # when it is not defined, in words
    needs_truth: bool = True
    signed: bool = False  # from −1 to 1; else a share from 0 to 1

    def value(self, counts: Counts) -> float | None:
        """Of one pair; None where it is not defined."""
        if self.name in diagnostics.OVERLAPS:
            return diagnostics.OVERLAPS[self.name](counts.table)
        value = float(self.of(counts))
        return None if np.isnan(value) else value


def _measure(label: str, of: Callable[[Counts], np.ndarray], undefined: str = "", **more: bool) -> Measure:
    doc = diagnostics.OVERLAPS.get(of.__name__, of).__doc__ or ""
    return Measure(of.__name__, label, of, " ".join(doc.split()), undefined, **more)


MEASURES = {
    measure.name: measure
    for measure in (
        _measure("Cohen's kappa of correctness", kappa, "chance agreement is 1", signed=True),
        _measure("Exactly one right (c)", exactly_one_right),
        _measure("Both wrong, same answer (w)", same_wrong),
        _measure("At least one right (u)", union),
        _measure("Jaccard of error sets", jaccard, "neither makes an error"),
        _measure("Both wrong", both_wrong),
        _measure("Excess overlap of errors", excess_overlap, signed=True),
        _measure("b wrong where a is", b_wrong_if_a_wrong, "a makes no error"),
        _measure("a wrong where b is", a_wrong_if_b_wrong, "b makes no error"),
        _measure("Same answer (agreement)", agreement, "no question was answered by both", needs_truth=False),
    )
}
LABEL_FREE = [name for name, measure in MEASURES.items() if not measure.needs_truth]
