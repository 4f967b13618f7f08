"""Which points of a growing chart stand still, so that they need not be sent again.

Every point up to a border is settled when all lines have passed it: smoothing looks back only, and thinning treats what lies
before the border by itself. What follows the border is sent with each refresh, until it has become much.
"""

from typing import Any

import numpy as np

from corl_core.figures.spec import Figure

Json = dict[str, Any]
MOST_AFTER = 120  # points of one line after the border, before the border moves on


def border(figure: Figure, known: float | None = None) -> float:
    """The x up to which the figure is settled: the `known` border, or a later one when much has come since."""
    lines = [line for line in figure.series if len(line.x) and not line.faint]
    ends = [float(line.x[-1]) for line in lines]
    if not ends:
        return -np.inf
    if known is None or known > max(ends) or max(int((line.x > known).sum()) for line in lines) > MOST_AFTER:
        return min(ends)
    return known


def split(traces: list[Json], settled: float) -> tuple[dict[str, Json], list[Json]]:
    """The x and y up to the border by the trace's uid, and the traces with what follows it.

    A band is an outline there and back, and marks are few: both stay whole with what follows.
    """
    before, after = {}, []
    for trace in traces:
        if "lines" not in trace["mode"] or "fill" in trace:
            after.append(trace)
            continue
        x, y = trace["x"], trace["y"]
        place = next((place for place, value in enumerate(x) if value is not None and value > settled), len(x))
        while place and x[place - 1] is None:
            place -= 1  # a break before the first new point comes with it
        before[trace["uid"]] = {"x": x[:place], "y": y[:place]}
        after.append(trace | {"x": x[place:], "y": y[place:]})
    return before, after
