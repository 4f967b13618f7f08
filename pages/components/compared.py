"""Compare: the charts in their grid, each with its part of the link."""

from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from corl_core.figures.axes import AXES
from corl_core.figures.compare import compare_curves
from corl_core.figures.paired import difference_curves
from corl_core.figures.spec import Figure
from corl_core.metrics import describe
from pages.components import data, link, zoom
from pages.components.boundary import guard, unread
from pages.components.chart import chart_card
from pages.components.view import Grouping, Look, choose_look


def charts(run_ids: list[str], metrics: Sequence[str], chosen: Grouping, notices: DeltaGenerator) -> None:
    """Two cards a row; with a baseline, each metric's differences stand beside it. Redrawn alone when their look changes."""

    @st.fragment
    def part() -> None:
        with guard():
            look = choose_look(chosen)
            zoom.check(metrics)
            with notices:
                link.show()
            keys = dict.fromkeys([*metrics, *AXES[look.view.axis].keys])
            read = data.history(run_ids, list(keys))
            unread(read.notice)
            _cards(read.frame, metrics, chosen, look, "The metrics store can't be read." if read.notice else "No values yet.")

    part()


def _cards(frame: pd.DataFrame, metrics: Sequence[str], chosen: Grouping, look: Look, waiting: str) -> None:
    boxes, view = zoom.boxes(), look.view
    drawn = list(_figures(frame, metrics, chosen, look))
    for start in range(0, len(drawn), 2):
        for column, (name, metric, figure) in zip(st.columns(2), drawn[start : start + 2], strict=False):
            with column:
                key, revision = f"compare.{name}", f"{name}/{view.axis}/{view.log}/{view.robust}"
                follow = partial(zoom.follow, name, key)
                chart_card(figure, key, describe(metric).doc, waiting, revision, box=boxes.get(name), on_zoom=follow)


def _figures(frame: pd.DataFrame, metrics: Sequence[str], chosen: Grouping, look: Look) -> Iterator[tuple[str, str, Figure]]:
    """Name, metric and figure of each card. Held-out values are few and are not smoothed."""
    for metric in metrics:
        weight = 0.0 if metric.startswith("eval/") else look.smoothing
        yield metric, metric, compare_curves(frame, metric, chosen.groups, weight, look.members, look.view)
        if chosen.baseline:
            figure = difference_curves(frame, metric, chosen.groups, chosen.baseline, weight, look.view)
            yield f"{metric}{zoom.DIFFERENCE}", metric, figure
