"""A figure as one HTML file that opens alone: Plotly's script from the installed wheel is inside it.

White ground whatever the theme. A content security policy keeps the file from asking any server for
anything. Text reaches the page escaped, and data as JSON in which no tag can begin.
"""

import json
from dataclasses import replace
from functools import cache
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from corl_core.figures.bars import Bars, bars_to_plotly
from corl_core.figures.plotly import to_plotly
from corl_core.figures.spec import Figure
from corl_core.figures.stamp import CREATOR, Stamp
from corl_core.figures.text import one_line

ALL_POINTS = 10**9
PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:">
<meta name="generator" content="{creator}">
<meta name="corl-command" content="{command}">
<meta name="corl-runs" content="{runs}">
<title>{title}</title>
<style>body {{ margin: 0; background: #ffffff; color: #222222; font: 14px sans-serif }} #figure {{ height: 95vh }}</style>
</head>
<body>
<div id="figure" role="img" aria-label="{title}"></div>
<script>{script}</script>
<script>Plotly.newPlot("figure", {data}, {layout}, {{responsive: true, displaylogo: false}});</script>
</body>
</html>
"""


def to_html(figure: Figure | Bars, stamp: Stamp | None = None) -> bytes:
    """The file's content, about five megabytes: nearly all of it is Plotly's script."""
    told = stamp or Stamp(figure.title, "", ())
    data, layout = bars_to_plotly(figure) if isinstance(figure, Bars) else _lines(figure)
    look = {"paper_bgcolor": "#ffffff", "plot_bgcolor": "#ffffff", "font": {"color": "#222222"}}
    look["margin"] = {"t": 40}
    for axis in ("xaxis", "yaxis"):
        layout[axis] = {"gridcolor": "#e6e6e6", "zerolinecolor": "#bbbbbb", "automargin": True} | layout[axis]
    words = {"creator": CREATOR, "command": told.command, "runs": told.runs, "title": told.title}
    escaped = {name: escape(one_line(text)) for name, text in words.items()}
    return PAGE.format(**escaped, script=_plotly_js(), data=_json(data), layout=_json(layout | look)).encode()


def _lines(figure: Figure) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    named = (replace(line, label=one_line(line.label), group=one_line(line.group)) for line in figure.series)
    drawn = to_plotly(replace(figure, series=tuple(named)), ALL_POINTS)
    data, layout = list(drawn.data), dict(drawn.layout)
    for mark in figure.marks if figure.bounds else ():
        low, high = figure.bounds
        shape = ("triangle-up" if mark.up else "triangle-down") + ("" if mark.for_good else "-open")
        look = {"symbol": shape, "size": 11, "color": mark.style.color}
        data.append({"type": "scatter", "mode": "markers", "x": [float(mark.x)], "y": [high if mark.up else low],
                     "marker": look, "cliponaxis": False, "showlegend": False, "hoverinfo": "skip"})  # fmt: skip
    return data, layout


def _json(value: Any) -> str:
    text = json.dumps(value, allow_nan=False)
    return text.replace("<", r"\u003c").replace(">", r"\u003e").replace("&", r"\u0026").replace("\u2028", r"\u2028")


@cache
def _plotly_js() -> str:
    package = Path(find_spec("plotly").submodule_search_locations[0])
    return (package / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
