"""The range of a chart, and where lines leave it.

The paper (arXiv 2608.17253, Fig. 4) lets runs that diverge leave the plotted range and marks them. It does not say how the
range was chosen. Our rule, for quantities that are not negative (reward std, completion length):

    top = max( m + 10 MAD, 2.5 m, 2.5 first ),   m, MAD = median and median absolute deviation of all points
                                                 first = the highest first value of a line

so one diverged line of two still leaves the range, and no line leaves it that is not 2.5 times as high as any began. The range
then spans the points at or under the top. A line *diverges* at the step from which it stays outside, or is not finite, to its
end: a filled triangle, and 'diverged at step s' in the legend; its band and its raw line end there, for they would cover the
others. A line that comes back has a hollow triangle where it left.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

import numpy as np

from corl_core.figures.errors import FigureError
from corl_core.figures.spec import Array, Figure, Mark, Series

FACTOR = 2.5
MOST_MARKS = 3  # hollow ones of one line; more say no more


def ranged(figure: Figure, limits: tuple[float, float] | None = None, automatic: bool = False) -> Figure:
    """The figure with a y range, and marks where lines leave it.

    `limits` is the range asked for; without it, `automatic` finds one when some line needs it, else the figure's own bounds
    stay. Raises FigureError for limits that are no range.
    """
    if limits is not None and not (np.isfinite(limits).all() and limits[0] < limits[1]):
        raise FigureError(f"ylim={limits[0]:g} {limits[1]:g} is no range; give the lower limit first, then the higher one")
    bounds = limits or (_automatic(figure.series) if automatic else figure.bounds)
    if bounds is None or not figure.series:
        return replace(figure, bounds=bounds)
    marked = [_marked(line, bounds) for line in figure.series]
    marks = tuple(mark for _, own in marked for mark in own)
    return replace(figure, series=tuple(line for line, _ in marked), bounds=bounds, marks=marks)


def _automatic(lines: Sequence[Series]) -> tuple[float, float] | None:
    """The range of the rule above; None when every point is finite and inside, so that no range is needed."""
    points = np.concatenate([line.y[np.isfinite(line.y)] for line in lines] or [np.array([])])
    if not len(points):
        return None
    middle = float(np.median(points))
    spread = float(np.median(np.abs(points - middle)))
    firsts = [float(line.y[np.isfinite(line.y)][0]) for line in lines if np.isfinite(line.y).any()]
    top = max(middle + 10 * spread, FACTOR * middle, FACTOR * max(firsts))
    inside = points[points <= top]
    if len(inside) == len(points) and all(np.isfinite(line.y).all() for line in lines):
        return None
    low, high = float(min(inside.min(), 0.0)), float(inside.max())
    return (low, high) if low < high else (low - 0.5, high + 0.5)


def _marked(line: Series, bounds: tuple[float, float]) -> tuple[Series, list[Mark]]:
    outside = ~((line.y >= bounds[0]) & (line.y <= bounds[1]))
    marks, end = [], 0
    for away, places in groupby(range(len(outside)), key=lambda place: bool(outside[place])):
        start, end = next(places), end
        if away:
            for_good = bool(outside[start:].all())
            marks.append(Mark(float(line.x[start]), _goes_up(line.y, start, bounds), line.style, for_good))
    final = [mark for mark in marks if mark.for_good]
    if final and not line.faint:
        label = f"{line.label}, diverged at step {final[0].x:g}"
        behind = {name: _until(line, name, final[0].x) for name in ("low", "high", "raw")}
        line = replace(line, label=label, group=line.group or line.label, **behind)
    return line, [mark for mark in marks if not mark.for_good][:MOST_MARKS] + final


def _until(line: Series, name: str, x: float) -> Array | None:
    values = getattr(line, name)
    return None if values is None else np.where(line.x < x, values, np.nan)


def _goes_up(y: Array, place: int, bounds: tuple[float, float]) -> bool:
    """Over the upper edge; a NaN leaves by the edge that its last finite value was nearer to."""
    if not np.isnan(y[place]):
        return bool(y[place] > bounds[1])
    before = y[:place][np.isfinite(y[:place])]
    return bool(len(before) and before[-1] > sum(bounds) / 2)
