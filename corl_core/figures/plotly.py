"""Figure to a Plotly description: a plain dict of JSON values for the browser.

Colours of text, grid and ground are left to the page, which knows its theme; the ink slot
(#000000) is swapped there too. Labels are escaped, for Plotly reads tags in text.
"""

from collections.abc import Callable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from corl_core.figures.bands import drawn_bands
from corl_core.figures.encode import as_lists
from corl_core.figures.gaps import of_line
from corl_core.figures.spec import Array, Figure
from corl_core.figures.thin import kept, points_a_line
from corl_core.figures.traces import EDGE_AXIS, line_traces

Json = dict[str, Any]
View = tuple[float, float]
MARKERS_UP_TO = 12  # lines of one chart; beyond, colours and dashes tell apart what markers would crowd
LEGEND_UP_TO = 24  # beyond, a legend is higher than its chart, so a line tells its name when pointed at; raw lines would hide all


@dataclass(frozen=True)
class Drawn:
    """A Plotly description and how many of the figure's points it holds; within the x range looked at, if there is one."""

    data: list[Json]
    layout: Json
    shown: int
    total: int
    zoomed: bool = False

    @property
    def note(self) -> str:
        """How many points are drawn, as in 1,200 of 50,000 points; empty when all are."""
        if self.shown == self.total:
            return ""
        return f"{self.shown:,} of {self.total:,} points" + (" in view" if self.zoomed else "")


def to_plotly(
    figure: Figure,
    max_points: int | None = None,
    view: View | None = None,
    settled: float | None = None,
    encode: Callable[[Json], Json] = as_lists,
) -> Drawn:
    """The figure with at most about `max_points` points a line; with a `view`, so many of those in this x range.

    For `settled` see thin.kept, for `encode` encode.py.
    """
    most = max_points or points_a_line(len(figure.series))
    num_lines = sum(not line.faint for line in figure.series)
    crowded = num_lines > LEGEND_UP_TO
    data: list[Json] = []
    shown = total = 0
    for line in figure.series:
        stretch = of_line(line, line.y)
        places = kept(line.x, line.y, most, view, settled, stretch)
        raw = None if line.raw is None or crowded else kept(line.x, line.raw, most, view, settled, stretch)
        data += line_traces(line, places, raw, stretch, num_lines <= MARKERS_UP_TO, _unit(figure))
        shown += int(_seen(line.x[places], view).sum())
        total += int((_seen(line.x, view) & np.isfinite(line.y)).sum())
    layout = _layout(figure, not crowded and num_lines > 0)
    if any(trace.get("yaxis") == "y2" for trace in data):
        layout["yaxis2"] = EDGE_AXIS
    return Drawn([encode(trace) for trace in data], layout, shown, total, view is not None)


def _seen(x: Array, view: View | None) -> Array:
    return np.full(len(x), True) if view is None else (x >= view[0]) & (x <= view[1])


def _unit(figure: Figure) -> str:
    """The x axis in one lower-case word or two, for what a pointer shows."""
    return figure.x_title.partition(" (")[0].lower()


def _layout(figure: Figure, legend: bool) -> Json:
    y_axis: Json = {"title": {"text": escape(figure.y_title)}}
    if figure.log:
        y_axis |= {"type": "log", "tickformat": "~g", "nticks": 4}  # 0.05 in place of a lone 5, and few that stand apart
    if figure.y_range is not None:
        low, high = figure.y_range
        y_axis["range"] = [float(np.log10(low)), float(np.log10(high))] if figure.log else [low, high]
    elif figure.bounds is not None:
        low, high = figure.bounds
        margin = 0.03 * (high - low)
        y_axis["range"] = [low - margin, high + margin]
    if figure.zero:
        y_axis["zeroline"] = True
    layout = {
        "xaxis": {"title": {"text": escape(figure.x_title)}},
        "yaxis": y_axis,
        "showlegend": legend,
        "hovermode": "closest",
    }
    return layout | (drawn_bands(figure.bands) if figure.bands else {})
