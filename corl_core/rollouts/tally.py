"""Many groups become votes at once: `corl_core/votes.py` for arrays of codes.

    count(i) = Σ_j w_j [c_j = c_i]       vote = the c_i with the highest count, the first of them in sampling order

A code is a number for a canonical key; NONE marks an answer that did not parse, which neither votes nor counts in the
share. With w = 1 this is the plurality of arXiv 2608.17253, Eq. 3. Degenerate cases as there: nothing parsed is no vote
(share 0), K different answers are a K-way tie.
"""

from dataclasses import dataclass

import numpy as np

Array = np.ndarray
NONE = -1
_CELLS = 8_000_000  # comparisons held in memory at once
_CLOSE = 1e-9  # summed weights that differ by less are equal


@dataclass(frozen=True)
class Tally:
    """How G groups voted; every array has shape (G,)."""

    vote: Array  # code of the winner; NONE where no vote is cast
    count: Array  # ballots for the winner, or their weight; the top count also where a tie abstains
    parsed: Array  # ballots that parsed, or their weight
    tied: Array  # bool

    @property
    def share(self) -> Array:
        """The winner's fraction of the parsed answers; 0 where none parsed."""
        return np.divide(self.count, self.parsed, out=np.zeros(len(self.count)), where=self.parsed > 0)


def tally(codes: Array, weights: Array | None = None, tie: str = "first") -> Tally:
    """Votes of G groups of at most V ballots in sampling order: `codes` (G, V), padded with NONE; `weights` (G, V)."""
    num, width = codes.shape
    if not width:
        empty = np.zeros(num)
        return Tally(np.full(num, NONE), empty, empty, np.zeros(num, dtype=bool))
    rows = max(1, _CELLS // width**2)
    parts = [
        _tally(codes[at : at + rows], None if weights is None else weights[at : at + rows], tie)
        for at in range(0, max(num, 1), rows)
    ]
    return Tally(*(np.concatenate([getattr(part, name) for part in parts]) for name in ("vote", "count", "parsed", "tied")))


def _tally(codes: Array, weights: Array | None, tie: str) -> Tally:
    parsed = codes != NONE  # (G, V)
    equal = (codes[:, :, None] == codes[:, None, :]) & parsed[:, :, None]  # (G, V, V)
    if weights is None:
        counts, total = equal.sum(2, dtype=np.int32), parsed.sum(1, dtype=np.int32)  # (G, V), (G,)
    else:
        counts, total = (equal * weights[:, None, :]).sum(2), (parsed * weights).sum(1)
    first = np.where(parsed, counts, -1).argmax(1) if weights is None else _first_top(np.where(parsed, counts, -1.0))
    row = np.arange(len(codes))
    vote, top = codes[row, first].copy(), counts[row, first]
    tied = ((counts >= top[:, None] - _CLOSE) & parsed & (codes != vote[:, None])).any(1)
    if tie == "abstain":
        vote[tied] = NONE
    return Tally(vote, top, total, tied)


def _first_top(counts: Array) -> Array:
    """The place of the first count within rounding of the highest."""
    return (counts >= counts.max(1, keepdims=True) - _CLOSE).argmax(1)
