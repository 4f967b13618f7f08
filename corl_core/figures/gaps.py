"""Where a line breaks: over steps that are missing, and at values that aren't finite.

Only steps tell what is missing: on an axis of cost or time a slow step, or the evaluation between two steps, is no gap.

Steps are missing where two neighbouring points are more than FACTOR times as far apart as
neighbours of this line are in the middle (the median). So a line of every step breaks over
three missing steps or more, and one of every tenth step has no breaks of its own.
"""

import numpy as np

from corl_core.figures.spec import Array, Series

FACTOR = 3


def stretches(x: Array, y: Array | None = None) -> Array:
    """The stretch of each point, counted from 0 (shape [num_points]); without `y` by the steps alone.

    `x`, the steps, ascends. Two points of different stretches are not joined.
    """
    distance = np.diff(np.asarray(x, dtype=float))
    apart = distance > 0
    starts = distance > FACTOR * np.median(distance[apart]) if apart.any() else apart
    stretch = np.concatenate([[0], np.cumsum(starts)]).astype(int)[: len(x)]
    return stretch if y is None else _broken(stretch, y)


def of_line(line: Series, y: Array) -> Array:
    """The same of a line, for values `y` along it: by its own stretches where it has some, else by its x."""
    return stretches(line.x, y) if line.stretch is None else _broken(line.stretch, y)


def _broken(stretch: Array, y: Array) -> Array:
    """The stretches, broken at each value that isn't finite too."""
    starts = (np.diff(stretch) != 0) | ~np.isfinite(y[:-1]) | ~np.isfinite(y[1:])
    return np.concatenate([[0], np.cumsum(starts)]).astype(int)[: len(y)]


def cuts(stretch: Array) -> list[int]:
    """The places before which a line breaks."""
    return (np.flatnonzero(np.diff(stretch)) + 1).tolist()


def lone(stretch: Array) -> Array:
    """The places of points that are a stretch by themselves, where no line shows them."""
    edges = np.array([0, *cuts(stretch), len(stretch)])
    return edges[:-1][np.diff(edges) == 1]


def apart(values: Array, stretch: Array) -> Array:
    """The values with a NaN in every break."""
    return np.insert(values.astype(float), cuts(stretch), np.nan)
