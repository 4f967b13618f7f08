"""Runs side by side on common x positions, so that what they have in common can be worked out at each.

On steps every position is one that some run has logged, and a run counts only where it has a value. On any other axis
(cost, time) two runs seldom stand at the same place, so each is read between its own neighbouring values on common positions,
from its first value to its last and not across its gaps. So each position averages the runs that have come that far.
"""

import numpy as np

from corl_core.figures.gaps import stretches
from corl_core.figures.spec import Array

MAX_POSITIONS = 1000


def aligned(lines: list[tuple[Array, Array]], exact: bool) -> tuple[Array, Array]:
    """Positions [num_positions] and values [num_positions, num_runs], NaN where a run has none.

    `lines` are the x and y of each run, x ascending; `exact` says that equal x mean the same (steps).
    """
    joined = [x for x, _ in lines] or [np.array([])]
    places = np.unique(np.concatenate(joined))
    places = places[np.isfinite(places)]
    if not exact and len(places) > MAX_POSITIONS:
        places = np.linspace(places[0], places[-1], MAX_POSITIONS)
    columns = [_at(places, x, y) if exact else _between(places, x, y) for x, y in lines]
    return places, np.stack(columns, axis=1) if columns else np.empty((len(places), 0))


def _at(places: Array, x: Array, y: Array) -> Array:
    values = np.full(len(places), np.nan)
    values[np.searchsorted(places, x)] = y
    return values


def _between(places: Array, x: Array, y: Array) -> Array:
    known = np.isfinite(x) & np.isfinite(y)
    x, y = x[known], y[known]
    if len(x) == 0:
        return np.full(len(places), np.nan)
    stretch = stretches(x)
    before = np.clip(np.searchsorted(x, places, side="right") - 1, 0, len(x) - 1)
    after = np.clip(np.searchsorted(x, places, side="left"), 0, len(x) - 1)
    values = np.interp(places, x, y, left=np.nan, right=np.nan)
    return np.where(stretch[before] == stretch[after], values, np.nan)
