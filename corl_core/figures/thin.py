"""Fewer points for the screen, with every spike kept.

The envelope: the line is cut into equal stretches of points, about as many as the screen has columns, and the lowest and the
highest value of each stay, so what is drawn covers the same pixels as the whole line would. Zooming in draws the points in
view by the same rule, so what was thinned comes back. Points that aren't finite are left out; the page marks them. The ends
of each stretch of a line (gaps.py) stay, so that its breaks are where they were.
"""

import numpy as np
from tsdownsample import MinMaxDownsampler

from corl_core.figures.gaps import cuts, stretches
from corl_core.figures.spec import Array

MAX_POINTS = 1200  # two values for each of the columns that a chart is wide
FEWEST = 240
BUDGET = 12_000  # points in one chart that a browser draws without delay
ASIDE = 60  # points either side of the view, for a look beyond its edge


def points_a_line(num_lines: int) -> int:
    """How many points each of so many lines may have in one chart."""
    return int(np.clip(BUDGET // max(num_lines, 1), FEWEST, MAX_POINTS))


def kept(
    x: Array,
    y: Array,
    max_points: int = MAX_POINTS,
    view: tuple[float, float] | None = None,
    settled: float | None = None,
    stretch: Array | None = None,
) -> Array:
    """Places (ascending, shape [num_kept]) of the points of a line to draw.

    All finite points when there are at most `max_points`; otherwise about `max_points` of them,
    the first and the last always among them, and the ends of the breaks unless these are too many. With a `view`, the
    x range that is looked at, this holds for the points in it, and few are kept outside. Points up to `settled` are thinned
    by themselves, so that they stay the same when others follow. `stretch` is gaps.stretches(x, y) where it is known.
    """
    finite = np.flatnonzero(np.isfinite(y) & np.isfinite(x))
    if len(finite) <= max_points:
        return finite
    stretch = stretches(x, y) if stretch is None else stretch
    if view is None:
        first = len(finite) if settled is None else int(np.searchsorted(x[finite], settled, side="right"))
        parts = [part for part in (finite[:first], finite[first:]) if len(part)]
        return np.concatenate([_thinned(x, y, part, stretch, max_points) for part in parts])
    inside = np.flatnonzero((x[finite] >= view[0]) & (x[finite] <= view[1]))
    first, last = (inside[0], inside[-1] + 1) if len(inside) else (len(finite), len(finite))
    parts = [(finite[:first], ASIDE), (finite[first:last], max_points), (finite[last:], ASIDE)]
    return np.concatenate([_thinned(x, y, part, stretch, most) for part, most in parts if len(part)])


def _thinned(x: Array, y: Array, places: Array, stretch: Array, max_points: int) -> Array:
    """`max_points` of the places, or all of them where they are no more."""
    if len(places) <= max_points:
        return places
    starts = np.array(cuts(stretch[places]), dtype=int)
    ends = np.concatenate([[0, len(places) - 1], starts - 1, starts])
    ends = ends if len(ends) <= max_points // 2 else ends[:2]
    most = max(2, (max_points - len(ends)) // 2 * 2)  # an even number: a lowest and a highest of each stretch
    chosen = MinMaxDownsampler().downsample(np.ascontiguousarray(y[places], dtype=np.float64), n_out=most)
    return places[np.union1d(chosen, ends).astype(int)]
