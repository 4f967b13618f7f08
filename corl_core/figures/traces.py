"""One line of a figure as Plotly traces: band, raw line, line, and marks, in the order of drawing.

Marks: points between two breaks, where no line shows them; the first point after a resume; and values that are NaN or
infinite, at the edge of the chart on an axis of their own (EDGE_AXIS), +inf at the top, -inf and NaN at the bottom.
"""

import hashlib
from html import escape
from typing import Any

import numpy as np

from corl_core.figures.gaps import apart, cuts, lone
from corl_core.figures.spec import Array, Series

Json = dict[str, Any]
EDGE_AXIS: Json = {"overlaying": "y", "range": [0, 1], "visible": False, "fixedrange": True}
TOP, BOTTOM = 0.985, 0.015
MAX_MARKS = 200  # values at the edge that are marked for one line: the first so many


def line_traces(line: Series, places: Array, raw: Array | None, stretch: Array, marked: bool, unit: str) -> list[Json]:
    """The traces, whose x and y are arrays; the legend hides them together.

    `places` are the points of the line to draw, `raw` those of the line before smoothing; `marked` puts a marker on some.
    A trace's uid holds on to its label, so that a hidden line stays hidden among others; it is a digest, because Plotly
    writes uids into CSS selectors.
    """
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
    main = common | _main(line, marked, unit)
    traces.append(main | _points(line.x[places], line.y[places], stretch[places]))
    if len(alone := places[lone(stretch[places])]):
        marks = {"mode": "markers", "showlegend": False, "x": line.x[alone], "y": line.y[alone]}
        marks["marker"] = {"symbol": line.style.marker, "size": 7, "color": line.style.color}
        traces.append(main | marks)
    traces += _resumes(common, line) + _edges(common, line)
    name = hashlib.sha256(f"{line.group}/{line.label}".encode()).hexdigest()[:12]
    return [trace | {"uid": f"line-{name}-{place}"} for place, trace in enumerate(traces)]


def _main(line: Series, marked: bool, unit: str) -> Json:
    look = line.style
    stroke = {"color": look.color, "dash": look.dash, "width": 1 if line.faint else 2}
    return {
        "mode": "lines+markers" if marked and not line.faint else "lines",
        "name": escape(line.label),
        "line": stroke,
        "marker": {"symbol": look.marker, "size": 7, "color": look.color, "maxdisplayed": 12},
        "opacity": 0.35 if line.faint else 1,
        "showlegend": not line.faint,
        "hovertemplate": f"%{{fullData.name}}<br>{unit} %{{x:,.6~g}}: %{{y:.4~g}}<extra></extra>",
    }


def _resumes(common: Json, line: Series) -> list[Json]:
    """A hollow mark on the line where the run went on after a resume."""
    if line.faint or line.resumed is None or len(line.resumed) == 0:
        return []
    x = line.resumed[np.isin(line.resumed, line.x)]
    y = line.y[np.searchsorted(line.x, x)]
    marker = {"symbol": "diamond-tall-open", "size": 13, "color": line.style.color, "line": {"width": 2}}
    about = {"mode": "markers", "marker": marker, "showlegend": False, "name": escape(line.label)}
    about["hovertemplate"] = "%{fullData.name}<br>resumed at %{x:,.6~g}<extra></extra>"
    return [common | about | {"x": x, "y": y}]


def _edges(common: Json, line: Series) -> list[Json]:
    """A mark at the edge for each value that can't be drawn."""
    x, values = line.lost()
    if line.faint or len(x) == 0:
        return []
    x, values = x[:MAX_MARKS], values[:MAX_MARKS]
    up = values == np.inf
    marker = {
        "symbol": ["x" if np.isnan(value) else "triangle-up" if value > 0 else "triangle-down" for value in values],
        "size": 9,
        "color": line.style.color,
    }
    words = ["NaN" if np.isnan(value) else "+∞" if value > 0 else "−∞" for value in values]
    about = {"mode": "markers", "marker": marker, "showlegend": False, "name": escape(line.label), "yaxis": "y2"}
    about |= {"text": words, "cliponaxis": False, "hovertemplate": "%{fullData.name}<br>%{x:,.6~g}: %{text}<extra></extra>"}
    return [common | about | {"x": x, "y": np.where(up, TOP, BOTTOM)}]


def _points(x: Array, y: Array, stretch: Array) -> Json:
    """x and y with NaN in every break."""
    return {"x": apart(x, stretch), "y": apart(y, stretch)}


def _band(x: Array, low: Array, high: Array, parts: list[Array]) -> Json:
    """An outline a stretch, there along the lower edge and back along the upper one; NaN between two of them."""
    gap = np.array([np.nan])
    xs = [piece for part in parts for piece in (gap, x[part], x[part][::-1])]
    ys = [piece for part in parts for piece in (gap, low[part], high[part][::-1])]
    return {"x": np.concatenate(xs[1:]), "y": np.concatenate(ys[1:])}


def _fade(color: str, alpha: float) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
