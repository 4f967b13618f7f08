"""A chart card: title with its explanation, the chart, and its downloads.

The chart is a component of our own rather than st.plotly_chart, which loses zoom and hidden
lines whenever its data change. The component is defined once, when this module is imported.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import streamlit as st

from corl_core.figures.export import FORMATS, MIME, export
from corl_core.figures.plotly import to_plotly
from corl_core.figures.spec import Figure
from pages.components import plotly_js
from pages.components.text import plain

HEIGHT = 270  # of the axes; chart.js adds the legend's rows
FORMAT_WORDS = {"png": "PNG, 300 dpi", "svg": "SVG", "pdf": "PDF", "csv": "CSV, the numbers"}

_chart = st.components.v2.component(
    "corl_chart",
    html='<div class="corl-chart"></div>',
    js=(Path(__file__).parent / "chart.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def chart(
    plot: Mapping[str, Any],
    key: str,
    alt: str,
    height: int = HEIGHT,
    bar: bool = True,
    revision: str = "",
) -> None:
    """A Plotly description ("data" and "layout") drawn in the page's theme.

    Zoom and hidden lines last as long as `revision` is the same.
    """
    given = {"src": plotly_js.url(), "height": height, "alt": alt, "bar": bar, "file": key}
    given |= {"data": plot["data"], "layout": plot["layout"], "revision": revision or key}
    _chart(data=given, key=key, height="content")


def chart_card(figure: Figure, key: str, doc: str, waiting: str = "No values yet.", revision: str = "") -> None:
    """The figure in a card. `doc` explains the metric; `waiting` stands in for no points."""
    with st.container(border=True, height="stretch"):
        _heading(figure, key, doc)
        if figure.empty:
            with st.container(height=HEIGHT, border=False, vertical_alignment="center"):
                st.caption(waiting, text_alignment="center")
            return
        drawn = to_plotly(figure)
        plot = {"data": drawn.data, "layout": drawn.layout}
        chart(plot, key, _alt(figure), revision=revision)
        notes = [drawn.note, f"{figure.num_lost} not finite" if figure.num_lost else ""]
        if shown := ", ".join(note for note in notes if note):
            st.caption(shown)


def _heading(figure: Figure, key: str, doc: str) -> None:
    row = st.container(horizontal=True, vertical_alignment="center", wrap=False)
    row.markdown(f"**{plain(figure.title)}**", help=doc or None)
    if figure.empty:
        return
    with row.popover("Export", icon=":material/download:", type="tertiary", key=f"{key}.export"):
        for kind in FORMATS:
            st.download_button(
                FORMAT_WORDS[kind],
                data=partial(export, figure, kind),
                file_name=f"{figure.name}.{kind}",
                mime=MIME[kind],
                key=f"{key}.{kind}",
                on_click="ignore",
                type="tertiary",
                width="stretch",
            )


def _alt(figure: Figure) -> str:
    """The chart in words: what is drawn, and where each line ends."""
    ends = [f"{line.label} ends at {line.y[-1]:.3g}" for line in figure.series if not line.faint]
    return f"{figure.y_title} over {figure.x_title.lower()}: " + "; ".join(ends[:8])
