"""Figures: which figure, for which venue, drawn how; every choice is kept in the link."""

from collections.abc import Mapping, Sequence

import streamlit as st

from corl_core.figures.grouping import ALONE, SEEDS
from corl_core.figures.paper.catalogue import CATALOGUE, DRAWN, find
from corl_core.figures.paper.recipe import Recipe
from corl_core.figures.seeds import CENTERS, SPREADS
from corl_core.figures.venues import DPIS, SPANS, VENUES, WIDTHS
from pages.components import curves, link
from pages.components.data import Known

FORMATS = {"pdf": "PDF", "svg": "SVG", "png": "PNG", "html": "HTML", "csv": "CSV", "tex": "LaTeX"}
TYPEFACES = {"sans": "Sans", "serif": "Serif"}
GROUPS = {SEEDS: "Seeds of one config", ALONE: "Each run"}
ALL_AGENTS = "All agents"
WHY_FORMAT = (
    "PDF and SVG are vector files with their fonts inside; HTML opens alone, in any browser; CSV holds the numbers that are "
    "drawn; LaTeX is the table under the figure."
)
WHY_SPAN = "Widths are those of the venue's LaTeX style; where a page has one column, a column is the text width."
WHY_RANGE = "Lines that leave the range are marked where they do. Empty: the figure's own range."


def choose(runs: Sequence[Known]) -> Recipe:
    """Draws the controls; returns what they say."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        titles = {name: f"{name}: {CATALOGUE[name].title}" for name in DRAWN}
        figure = _select("Figure", titles, "figure", "Numbered as in the Co-RL paper, arXiv 2608.17253.", 360)
        venue = _select("Venue", {name: venue.label for name, venue in VENUES.items()}, "venue", WHY_SPAN, 130)
        span = _select("Width", SPANS, "span", WHY_SPAN, 230)
        with st.popover("Lines", icon=":material/tune:"):
            lines = _lines(runs, figure)
        with st.popover("Size", icon=":material/straighten:"):
            size = _size()
    return Recipe(figure, tuple(run.id for run in runs), venue=venue, span=span, **lines, **size)


def choose_format() -> str:
    """The file's format."""
    return curves.choose("Format", FORMATS, "pdf", "format", WHY_FORMAT)


def _lines(runs: Sequence[Known], figure: str) -> dict:
    differs = _differing(runs)
    group = _select("Group by", GROUPS | {key: key for key in differs}, "group", "Runs that become one line.", 300)
    smooth = curves.choose_smoothing() if find(figure).smoothed else Recipe.smooth
    center = curves.choose("Centre of a group", CENTERS, "mean", "center", "What one line stands for.")
    spread = curves.choose("Band", SPREADS, "std", "band", "How far the runs of a group lie apart.")
    members = st.toggle("Members", key="members", bind="query-params", help="Each run faint behind its group's line.")
    names = dict.fromkeys(agent.name for run in runs for agent in run.config.agents)
    words = {"": ALL_AGENTS} | {name: name for name in names}
    agent = _select("Agent", words, "agent", "Draw the lines of this agent alone.", 300)
    overlap = curves.choose_measure() if figure == "2d" else Recipe.overlap
    return {"group": group, "smooth": smooth, "center": center, "spread": spread, "members": members, "agent": agent,
            "overlap": overlap, "ylim": _limits() if figure != "2d" else None}  # fmt: skip


def _limits() -> tuple[float, float] | None:
    low, high = st.columns(2)
    start = low.number_input("y from", value=None, key="y_from", bind="query-params", help=WHY_RANGE)
    end = high.number_input("y to", value=None, key="y_to", bind="query-params", help=WHY_RANGE)
    return (float(start), float(end)) if start is not None and end is not None else None


def _size() -> dict:
    font = curves.choose("Typeface", TYPEFACES, "sans", "font", "Sans is DejaVu Sans; serif is STIX, which looks like Times.")
    dpi = st.number_input("Dots per inch of a PNG", *DPIS, Recipe.dpi, key="dpi", bind="query-params")
    limits = {"min_value": WIDTHS[0], "max_value": WIDTHS[1], "value": None, "step": 0.25}
    width = st.number_input("Width in inches", key="width", bind="query-params", placeholder="the venue's", **limits)
    height = st.number_input("Height in inches", key="height", bind="query-params", placeholder="by the width", **limits)
    title = st.toggle("Title", key="title", bind="query-params", help="Written above the figure; a paper has its caption.")
    return {"font": font, "dpi": int(dpi), "width": width, "height": height, "title": title}


def _differing(runs: Sequence[Known]) -> list[str]:
    """Config keys that differ between the runs."""
    flats = [run.config.flat() for run in runs]
    keys = dict.fromkeys(key for flat in flats for key in flat)
    return [key for key in keys if len({str(flat.get(key)) for flat in flats}) > 1]


def _select(label: str, words: Mapping[str, str], key: str, about: str, width: int) -> str:
    """One of the names in `words`, kept in the link."""
    link.check(key, words.values(), label)
    options = list(words)
    chosen = st.selectbox(label, options, key=key, bind="query-params", format_func=words.get, help=about, width=width)
    return chosen if chosen in words else options[0]
