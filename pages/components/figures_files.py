"""Figures: the file as it will be, its download, and the command that makes the same; the table; the bundle."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from corl_core.figures import bundle
from corl_core.figures.bars import Bars
from corl_core.figures.errors import FigureError
from corl_core.figures.export import MIME
from corl_core.figures.paper import table as results
from corl_core.figures.paper.catalogue import TABLE
from corl_core.figures.paper.recipe import Recipe, Source, drawn_content, figure, file_content, file_stem, title
from corl_core.figures.spec import Figure
from corl_core.runs.folder import default_runs_dir
from corl_core.tracking import reader
from corl_core.tracking.store import tracking_uri
from pages.components.boundary import guard
from pages.components.data import Known
from pages.components.text import plain

PREVIEW_DPI = 200
PREVIEW_PIXELS_PER_INCH = 150  # on the screen, about half as large again as on paper
BUNDLE_NAME = "corl-bundle.zip"
WHY_NOTHING = "These runs have no values for this figure yet: {}."
ABOUT_TABLE = (
    "Held-out accuracy of a single rollout at the first and last evaluation, of the majority, and of the received "
    "pseudo-labels (mean over the last tenth of the steps); agreement of the votes at the last evaluation; ± is the sample "
    "standard deviation over the runs of a row."
)
ABOUT_BUNDLE = (
    "One zip with every figure (PDF, SVG, PNG), its numbers (CSV), the runs' configs and metrics, a sample of votes, and a page "
    "that opens without a server. Configs are whole: a local path in one is seen by whoever gets the file."
)
WHY_SLOW = "Every figure is drawn three times: with many runs that takes a minute."


def keys(recipe: Recipe) -> list[str]:
    """What the page asks of the store."""
    return list(dict.fromkeys([*recipe.keys, *results.KEYS]))


def source(history: pd.DataFrame, runs: Sequence[Known], slots: dict[str, int]) -> Source:
    """What the files are made from."""
    return Source(history, {run.id: run.config for run in runs}, slots)


def show(recipe: Recipe, made_from: Source, kind: str) -> None:
    """The file that is downloaded, or for HTML, CSV and LaTeX the drawing they belong to; then its command."""
    with guard():
        drawn = figure(recipe, made_from)
        if drawn.empty:
            st.info(plain(WHY_NOTHING.format(", ".join(recipe.keys))), icon=":material/hourglass_empty:")
            return
        preview = replace(recipe, dpi=recipe.dpi if kind == "png" else PREVIEW_DPI)
        image = drawn_content(drawn, preview, "preview.png")
        look = recipe.look
        with st.container(border=True):
            st.image(image, width=round(look.width * PREVIEW_PIXELS_PER_INCH), alt=f"{title(recipe)}. {_in_words(drawn)}")
        notes = () if isinstance(drawn, Bars) else drawn.notes
        st.caption(plain(" ".join([f"{look.width:.2f} in wide, type of {look.text_pt:g} and {look.small_pt:g} pt.", *notes])))
        name = f"{file_stem(recipe.figure)}.{kind}"
        make = partial(drawn_content, drawn, recipe, name)
        st.download_button(f"Download {name}", make, name, MIME[kind], key="download", on_click="ignore", type="primary",
                           icon=":material/download:")  # fmt: skip
        st.code(recipe.command(name), language="bash", wrap_lines=True)


def table(recipe: Recipe, made_from: Source) -> None:
    """The table of results, its LaTeX, and its files."""
    own = replace(recipe, figure=TABLE)
    with guard():
        groups = made_from.groups(own)
        try:
            shown = results.text(made_from.history, groups, own.agent)
        except FigureError as nothing:
            st.caption(plain(str(nothing).partition(": ")[2].capitalize() + "."))
            return
        st.dataframe(shown, hide_index=True, alt="Table of results")
        st.caption(ABOUT_TABLE)
        with st.container(horizontal=True):
            for kind in ("tex", "csv"):
                name = f"{file_stem(TABLE)}.{kind}"
                make = partial(file_content, own, made_from, name)
                look = {"key": f"table.{kind}", "on_click": "ignore", "icon": ":material/download:"}
                st.download_button(name, make, name, MIME[kind], **look)
        with st.expander("LaTeX"):
            st.code(file_content(own, made_from, f"{file_stem(TABLE)}.tex").decode(), language="latex", wrap_lines=True)
            st.code(own.command(f"{file_stem(TABLE)}.tex"), language="bash", wrap_lines=True)


def share(recipe: Recipe, made_from: Source, runs: Sequence[Known]) -> None:
    """The bundle, which is made when it is asked for, and its command."""
    st.caption(ABOUT_BUNDLE)
    make = partial(_bundle, recipe, made_from, runs, tracking_uri(default_runs_dir()))
    look = {"key": "bundle", "on_click": "ignore", "icon": ":material/folder_zip:", "help": WHY_SLOW}
    st.download_button("Download the bundle", make, BUNDLE_NAME, "application/zip", **look)
    st.code(bundle.command(recipe, BUNDLE_NAME), language="bash", wrap_lines=True)


def _bundle(recipe: Recipe, made_from: Source, runs: Sequence[Known], uri: str) -> bytes:
    """Everything that was logged is read here, and not for the page."""
    whole = replace(made_from, history=reader.history(uri, [run.id for run in runs]))
    return bundle.bundle(recipe, whole, [run.run for run in runs], BUNDLE_NAME)


def _in_words(drawn: Figure | Bars) -> str:
    """What a person who does not see the image is told."""
    if isinstance(drawn, Bars):
        return "; ".join(f"{bar.label}: {bar.value:.2f}" for bar in drawn.bars)
    return "; ".join(f"{line.label} ends at {line.y[-1]:.3g}" for line in drawn.series if not line.faint)
