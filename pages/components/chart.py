"""A chart card: title with its explanation, the chart, what it leaves out, and its downloads.

The chart is a component of our own rather than st.plotly_chart, which loses zoom and hidden
lines whenever its data change. The component is defined once, when this module is imported; its script
(chart.js) is fetched once, since Streamlit would send it along with every chart.
"""

import json
import zlib
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import streamlit as st

from corl_core.figures import settled
from corl_core.figures.encode import as_bytes, as_lists
from corl_core.figures.export import FORMATS, MIME, export
from corl_core.figures.plotly import LEGEND_UP_TO, Drawn, to_plotly
from corl_core.figures.spec import Figure
from pages.components import plotly_js
from pages.components.text import plain
from pages.components.zoom import Box

HEIGHT = 270  # of the axes; chart.js adds the legend's rows
PACKED_FROM = 2000  # points; a smaller chart is sent as numbers that can be read
FORMAT_WORDS = {"png": "PNG, 300 dpi", "svg": "SVG", "pdf": "PDF", "csv": "CSV, the numbers"}
LOADER = """
const load = (src) => (window.corlScript ??= new Promise((resolve, reject) => {
  const tag = document.createElement("script");
  Object.assign(tag, { src, onload: () => resolve(window.corlChart), onerror: () => reject(new Error(src)) });
  document.head.appendChild(tag);
}));
export default function (component) {
  const made = load(component.data.script).then((show) => show(component));
  return () => made.then((end) => end?.());
}
"""

_chart = st.components.v2.component("corl_chart", html='<div class="corl-chart"></div>', js=LOADER, isolate_styles=False)
_settled = st.components.v2.component("corl_settled", html="", js=LOADER, isolate_styles=False)


def chart(
    plot: Mapping[str, Any],
    key: str,
    alt: str,
    height: int = HEIGHT,
    bar: bool = True,
    revision: str = "",
    box: Box | None = None,
    on_zoom: Callable[[], None] | None = None,
    base: str = "",
    canvas: bool = False,
) -> None:
    """A Plotly description ("data" and "layout") drawn in the page's theme.

    Zoom and hidden lines last as long as `revision` is the same; `box` is what the chart shows at first. `on_zoom` is called
    when a person has zoomed, with the box in the component's state. `base` names the settled points it goes on from.
    `canvas` draws the lines on a canvas, as is done where they are many: for charts that are drawn anew often.
    """
    given = {"src": plotly_js.url(), "script": plotly_js.url(plotly_js.chart_name()), "height": height, "alt": alt, "bar": bar}
    given |= {"file": key, "data": plot["data"], "layout": plot["layout"], "revision": revision or key, "base": base}
    given |= {"canvas": canvas or (not plot["layout"].get("showlegend", True) and len(plot["data"]) > LEGEND_UP_TO)}
    given |= {"zoom": {"x": box.x, "y": box.y} if box else None}
    given["stamp"] = _digest(given)
    _chart(data=given, key=key, height="content", on_zoom_change=on_zoom or _nothing)


def chart_card(
    figure: Figure,
    key: str,
    doc: str,
    waiting: str = "No values yet.",
    revision: str = "",
    box: Box | None = None,
    on_zoom: Callable[[], None] | None = None,
    growing: bool = False,
) -> None:
    """The figure in a card. `doc` explains the metric; `waiting` stands in for no points; `growing` while more come."""
    with st.container(border=True, height="stretch"):
        _heading(figure, key, doc)
        if figure.empty and not figure.num_lost:
            with st.container(height=HEIGHT, border=False, vertical_alignment="center"):
                st.caption(waiting, text_alignment="center")
            return
        draw = partial(chart, key=key, alt=alt(figure), revision=revision, box=box, on_zoom=on_zoom)
        with st.container(gap=None):  # one place whatever is drawn: a chart that moves is made anew and forgets hidden lines
            if growing and not (box and box.x):
                drawn = _growing(figure, key, draw)
            else:
                encode = as_bytes if figure.num_points > PACKED_FROM else as_lists
                drawn = to_plotly(figure, view=box.x if box else None, encode=encode)
                draw({"data": drawn.data, "layout": drawn.layout})
        _notes(figure, drawn)


def _growing(figure: Figure, key: str, draw: Callable[..., None]) -> Drawn:
    """Draws what is settled in one message and the rest in another (settled.py)."""
    name = f"settled.{key}"
    limit = st.session_state[name] = settled.border(figure, st.session_state.get(name))
    drawn = to_plotly(figure, settled=limit)
    before, after = settled.split(drawn.data, limit)
    base = _digest(before)
    script = plotly_js.url(plotly_js.chart_name())
    _settled(data={"script": script, "file": key, "id": base, "settled": before}, key=f"{key}.settled", height="content")
    draw({"data": after, "layout": drawn.layout}, base=base)
    return drawn


def _digest(data: Any) -> str:
    return f"{zlib.crc32(json.dumps(data).encode()):08x}"


def _nothing() -> None:
    """A chart whose zoom nobody follows."""


def _notes(figure: Figure, drawn: Drawn) -> None:
    lost = f"{figure.num_lost:,} not finite, marked at the edge" if figure.num_lost else ""
    many = "" if drawn.layout["showlegend"] else "Point at a line for its name."
    if many and any(line.raw is not None for line in figure.series):
        many += " Behind so many lines, the values before smoothing are not drawn."
    counts = ", ".join(note for note in (drawn.note, lost) if note)
    if words := [word for word in (f"{counts}." if counts else "", many, *figure.notes) if word]:
        st.caption(plain(" ".join(words)))


def _heading(figure: Figure, key: str, doc: str) -> None:
    row = st.container(horizontal=True, vertical_alignment="center", wrap=False)
    row.markdown(f"**{plain(figure.title)}**", help=doc or None)
    if figure.empty:
        return
    with row:
        _export(figure, key)


@st.fragment
def _export(figure: Figure, key: str) -> None:
    """The chart's files. Drawn once they are asked for: a page of charts has dozens of these buttons."""
    opened = st.popover("Export", icon=":material/download:", type="tertiary", key=f"{key}.export", on_change="rerun")
    if not opened.open:
        return
    with opened:
        for kind in FORMATS:
            st.download_button(
                FORMAT_WORDS.get(kind, kind.upper()),
                data=partial(export, figure, kind),
                file_name=f"{figure.name}.{kind}",
                mime=MIME[kind],
                key=f"{key}.{kind}",
                on_click="ignore",
                type="tertiary",
                width="stretch",
            )


def alt(figure: Figure) -> str:
    """The chart in words: what is drawn, where each line ends, and what is missing."""
    lines = [line for line in figure.series if not line.faint]
    finite = [(line.label, line.y[np.isfinite(line.y)]) for line in lines]
    ends = [f"{label} ends at {y[-1]:.3g}" for label, y in finite if len(y)]
    more = [f"and {len(ends) - 8} more lines"] if len(ends) > 8 else []
    lost = [f"{figure.num_lost} values are not finite"] if figure.num_lost else []
    return f"{figure.y_title} over {figure.x_title.lower()}: " + "; ".join([*ends[:8], *more, *lost])
