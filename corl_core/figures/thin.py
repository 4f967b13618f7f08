"""Fewer points for the screen, with every spike kept.

Min-max-LTTB (arXiv 2305.00332) keeps the smallest and largest value of each bucket and then
picks those that matter most for the shape, so a spike of one step is still there.
Points that aren't finite are left out; the page says how many. The ends of each stretch of a
line (gaps.py) stay, so that its breaks are where they were.
"""

import numpy as np
from tsdownsample import MinMaxLTTBDownsampler

from corl_core.figures.gaps import cuts, stretches
from corl_core.figures.spec import Array

MAX_POINTS = 400  # a line on a screen is about this many pixels wide


def kept(x: Array, y: Array, max_points: int = MAX_POINTS) -> Array:
    """Places (ascending, shape [num_kept]) of the points of a line to draw.

    All finite points when there are at most `max_points`; otherwise `max_points` of them,
    the first and the last always among them, and the ends of the breaks unless these are too many.
    """
    finite = np.flatnonzero(np.isfinite(y))
    if len(finite) <= max_points:
        return finite
    xs = np.ascontiguousarray(x[finite], dtype=np.float64)
    ys = np.ascontiguousarray(y[finite], dtype=np.float64)
    starts = np.array(cuts(stretches(x, y)[finite]), dtype=int)
    ends = np.concatenate([starts - 1, starts])
    ends = ends if len(ends) <= max_points // 2 else ends[:0]
    chosen = MinMaxLTTBDownsampler().downsample(xs, ys, n_out=max_points - len(ends))
    return finite[np.union1d(chosen, ends).astype(int)]
