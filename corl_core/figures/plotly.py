"""Figure to a Plotly description: a plain dict of JSON values for the browser.

Colours of text, grid and ground are left to the page, which knows its theme; the ink slot
(#000000) is swapped there too. Labels are escaped, for Plotly reads tags in text.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from corl_core.figures.gaps import cuts, lone, stretches
from corl_core.figures.spec import Array, Figure, Series
from corl_core.figures.thin import MAX_POINTS, kept

Json = dict[str, Any]


@dataclass(frozen=True)
class Drawn:
    """A Plotly description and how many of the figure's points it holds."""

    data: list[Json]
    layout: Json
    shown: int
    total: int

    @property
    def note(self) -> str:
        """How many points are drawn, as in 400 of 1,200 points; empty when all are."""
        if self.shown == self.total:
            return ""
        return f"{self.shown:,} of {self.total:,} points"


def to_plotly(figure: Figure, max_points: int = MAX_POINTS) -> Drawn:
    """The figure with at most `max_points` points a line."""
    data: list[Json] = []
    shown = 0
    for line in figure.series:
        places = kept(line.x, line.y, max_points)
        shown += len(places)
        raw = None if line.raw is None else kept(line.x, line.raw, max_points)
        data += _traces(line, places, raw)
    return Drawn(data, _layout(figure), shown, figure.num_points)


def _traces(line: Series, places: Array, raw: Array | None) -> list[Json]:
    """Band, raw line, line, and marks for points between two breaks, in the order of drawing; the legend hides them together.

    `places` are the points of the line to draw, `raw` those of the line before smoothing.
    A trace's uid holds on to its label, so that a hidden line stays hidden among others.
    """
    stretch = stretches(line.x, line.y)
    common = {"type": "scatter", "connectgaps": False, "legendgroup": line.group or line.label}
    traces: list[Json] = []
    if line.low is not None and line.high is not None:
        look = {"mode": "lines", "line": {"width": 0}, "showlegend": False, "hoverinfo": "skip"}
        look |= {"fill": "toself", "fillcolor": _fade(line.style.color, 0.16)}
        parts = np.split(places, cuts(stretch[places]))
        traces.append(common | look | _band(line.x, line.low, line.high, parts))
    if line.raw is not None and raw is not None:
        faint = {"mode": "lines", "line": {"color": line.style.color, "width": 1}}
        faint |= {"opacity": 0.22, "hoverinfo": "skip", "showlegend": False}
        traces.append(common | faint | _points(line.x[raw], line.raw[raw], stretch[raw]))
    traces.append(common | _main(line) | _points(line.x[places], line.y[places], stretch[places]))
    if len(alone := places[lone(stretch[places])]):
        marks = {"mode": "markers", "showlegend": False, "x": _numbers(line.x[alone]), "y": _numbers(line.y[alone])}
        look = _main(line)
        marks["marker"] = {name: value for name, value in look["marker"].items() if name != "maxdisplayed"}
        traces.append(common | look | marks)
    return [trace | {"uid": f"{line.label}/{place}"} for place, trace in enumerate(traces)]


def _points(x: Array, y: Array, stretch: Array) -> Json:
    """x and y with null in every break."""
    parts = [np.split(values, cuts(stretch)) for values in (x, y)]
    return {name: _joined(map(_numbers, part)) for name, part in zip("xy", parts, strict=True)}


def _band(x: Array, low: Array, high: Array, parts: list[Array]) -> Json:
    """An outline a stretch, there along the lower edge and back along the upper one; null between two of them."""
    xs = _joined(_numbers(np.concatenate([x[part], x[part][::-1]])) for part in parts)
    ys = _joined(_numbers(np.concatenate([low[part], high[part][::-1]])) for part in parts)
    return {"x": xs, "y": ys}


def _joined(parts: Iterable[list[float | int | None]]) -> list[float | int | None]:
    """The parts one after the other, with a null between two of them."""
    joined: list[float | int | None] = []
    for place, part in enumerate(parts):
        joined += [None, *part] if place else part
    return joined


def _main(line: Series) -> Json:
    look = line.style
    stroke = {"color": look.color, "dash": look.dash, "width": 1 if line.faint else 2}
    return {
        "mode": "lines" if line.faint else "lines+markers",
        "name": escape(line.label),
        "line": stroke,
        "marker": {"symbol": look.marker, "size": 7, "color": look.color, "maxdisplayed": 12},
        "opacity": 0.35 if line.faint else 1,
        "showlegend": not line.faint,
        "hovertemplate": "%{fullData.name}<br>step %{x}: %{y:.4~g}<extra></extra>",
    }


def _layout(figure: Figure) -> Json:
    y_axis: Json = {"title": {"text": escape(figure.y_title)}}
    if figure.bounds is not None:
        low, high = figure.bounds
        margin = 0.03 * (high - low)
        y_axis["range"] = [low - margin, high + margin]
    return {
        "xaxis": {"title": {"text": escape(figure.x_title)}},
        "yaxis": y_axis,
        "showlegend": any(not line.faint for line in figure.series),
        "hovermode": "closest",
    }


def _numbers(values: Array) -> list[float | int | None]:
    """JSON numbers with at most six digits after the point; not finite is null."""
    if np.issubdtype(values.dtype, np.integer):
        return values.tolist()
    rounded = np.round(values.astype(float), 6)
    return [value if np.isfinite(value) else None for value in rounded.tolist()]


def _fade(color: str, alpha: float) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
