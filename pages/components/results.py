"""The table of what the runs came to: one row a metric and group, and its files."""

from collections.abc import Mapping, Sequence
from functools import partial

import pandas as pd
import streamlit as st

from corl_core.figures.compare import Facts, Group
from corl_core.figures.ends import results_tex, summary
from corl_core.figures.text import for_cell

TABLE_ALT = "First, final and best value of each metric, by group"
SPREAD = "Sample standard deviation over the runs."
ABOUT = {
    "N": "Runs of the group that have a value.",
    "First": "The first value, mean over the runs.",
    "± first": SPREAD,
    "Final": "The last value, mean over the runs.",
    "± final": SPREAD,
    "Best": "The best value of each run, mean over the runs: the highest, or the lowest of errors, overlaps and times.",
    "± best": SPREAD,
    "At step": "The step of the best value, mean over the runs.",
    "Difference": "Value less the baseline's at the last step that both have, seed by seed, mean over the pairs.",
    "± difference": "Half the 95% confidence interval of the difference (Student's t); none for one pair.",
    "Pairs": "Seeds that both groups have.",
}


def show(
    history: pd.DataFrame, metrics: Sequence[str], groups: Sequence[Group], baseline: Group | None, facts: Mapping[str, Facts]
) -> None:
    """Draws the table, which sorts by number, with its CSV and LaTeX."""
    table = summary(history, metrics, groups, baseline, facts).dropna(axis="columns", how="all")
    whole = ("N", "Pairs")
    columns = {
        name: st.column_config.NumberColumn(help=about, format="%d" if name in whole else "%.4g")
        for name, about in ABOUT.items()
        if name in table
    }
    st.dataframe(table, column_config=columns, hide_index=True, placeholder="–", alt=TABLE_ALT)
    files = {"csv": partial(_csv, table), "tex": partial(results_tex, history, metrics, groups)}
    with st.container(horizontal=True):
        for word, (kind, made) in zip(("CSV", "LaTeX"), files.items(), strict=True):
            st.download_button(
                word, made, f"results.{kind}", icon=":material/download:", key=f"results.{kind}", on_click="ignore"
            )


def _csv(table: pd.DataFrame) -> bytes:
    return table.assign(Run=table["Run"].map(for_cell)).to_csv(index=False).encode()
