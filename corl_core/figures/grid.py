"""Runs side by side on common x positions, so that what they have in common can be worked out at each.

On steps every position is one that some run has logged, and a run counts only where it has a value. On any other axis
(cost, time) two runs seldom stand at the same place, so each is read between its own neighbouring values on common positions,
from its first value to its last and not across its gaps. So each position averages the runs that have come that far.
"""

import numpy as np

from corl_core.figures.spec import Array

MAX_POSITIONS = 1000
Line = tuple[Array, Array, Array]  # x, y and stretch (gaps.py) of a run, each of shape [num_points]


def aligned(lines: list[Line], exact: bool) -> tuple[Array, Array]:
    """Positions [num_positions] and values [num_positions, num_runs], NaN where a run has none.

    x ascends; `exact` says that equal x mean the same (steps).
    """
    joined = [x for x, _, _ in lines] or [np.array([])]
    places = np.unique(np.concatenate(joined))
    places = places[np.isfinite(places)]
    if not exact and len(places) > MAX_POSITIONS:
        places = np.linspace(places[0], places[-1], MAX_POSITIONS)
    columns = [_at(places, x, y) if exact else _between(places, x, y, stretch) for x, y, stretch in lines]
    return places, np.stack(columns, axis=1) if columns else np.empty((len(places), 0))


def together(places: Array, lines: list[Line]) -> Array:
    """The stretch of each position (shape [num_positions]): two neighbours are of one where a run leads from one to the other."""
    inside = np.stack([_inside(places, x[np.isfinite(x)], stretch[np.isfinite(x)]) for x, _, stretch in lines])
    joined = ((inside[:, 1:] == inside[:, :-1]) & (inside[:, 1:] >= 0)).any(axis=0)
    return np.concatenate([[0], np.cumsum(~joined)])[: len(places)]


def _at(places: Array, x: Array, y: Array) -> Array:
    values = np.full(len(places), np.nan)
    values[np.searchsorted(places, x)] = y
    return values


def _between(places: Array, x: Array, y: Array, stretch: Array) -> Array:
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) == 0:
        return np.full(len(places), np.nan)
    return np.where(_inside(places, x, stretch[known]) >= 0, np.interp(places, x, y, left=np.nan, right=np.nan), np.nan)


def _inside(places: Array, x: Array, stretch: Array) -> Array:
    """The stretch of a run that each position lies in; -1 in its gaps, before its first value and after its last."""
    if len(x) == 0:
        return np.full(len(places), -1)
    before = np.searchsorted(x, places, side="right") - 1
    after = np.searchsorted(x, places, side="left")
    there = (before >= 0) & (after < len(x))
    before, after = (np.clip(ends, 0, len(x) - 1) for ends in (before, after))
    return np.where(there & (stretch[before] == stretch[after]), stretch[before], -1)
