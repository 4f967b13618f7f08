"""Fewer points for the screen, with every spike kept.

Min-max-LTTB (arXiv 2305.00332) keeps the smallest and largest value of each bucket and then
picks those that matter most for the shape, so a spike of one step is still there.
Points that aren't finite are left out; the page says how many.
"""

import numpy as np
from tsdownsample import MinMaxLTTBDownsampler

from corl_core.figures.spec import Array

MAX_POINTS = 400  # a line on a screen is about this many pixels wide


def kept(x: Array, y: Array, max_points: int = MAX_POINTS) -> Array:
    """Places (ascending, shape [num_kept]) of the points of a line to draw.

    All finite points when there are at most `max_points`; otherwise `max_points` of them,
    the first and the last always among them.
    """
    finite = np.flatnonzero(np.isfinite(y))
    if len(finite) <= max_points:
        return finite
    xs = np.ascontiguousarray(x[finite], dtype=np.float64)
    ys = np.ascontiguousarray(y[finite], dtype=np.float64)
    return finite[MinMaxLTTBDownsampler().downsample(xs, ys, n_out=max_points)]
