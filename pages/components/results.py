"""The table of first and last values: one row a group, mean ± standard deviation over its runs."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from corl_core.figures.compare import Group
from corl_core.figures.lines import first_and_last, run_lines
from corl_core.metrics import describe


def show(history: pd.DataFrame, metrics: Sequence[str], groups: Sequence[Group]) -> None:
    """Draws the table, with a download of its numbers."""
    table = summary(history, metrics, groups)
    st.dataframe(table, hide_index=True, alt="First and last value of each metric, by group")


def summary(history: pd.DataFrame, metrics: Sequence[str], groups: Sequence[Group]) -> pd.DataFrame:
    """Run or group, N, and "first → last" of each metric as text; empty where not logged."""
    rows = [{"Run": group.label, "N": len(group.run_ids)} for group in groups]
    for metric in metrics:
        ends = first_and_last(run_lines(history, metric)).set_index("run_id")
        for row, group in zip(rows, groups, strict=True):
            own = ends[ends.index.isin(group.run_ids)]
            row[describe(metric).label] = _ends(own)
    return pd.DataFrame(rows)


def _ends(own: pd.DataFrame) -> str:
    if own.empty:
        return ""
    return f"{_spread(own['first'])} → {_spread(own['last'])}"


def _spread(values: pd.Series) -> str:
    """The mean, as in 0.700 ± 0.020 over several runs (sample standard deviation)."""
    digits = ".3f" if values.abs().max() < 10 else ",.0f"
    mean = f"{values.mean():{digits}}"
    return mean if len(values) < 2 else f"{mean} ± {values.std():{digits}}"
