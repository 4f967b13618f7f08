"""What Compare shows: which runs and which metrics. Both live in the URL, so that a link is the view."""

import streamlit as st

from corl_core.metrics import describe
from pages.components import link
from pages.components.boundary import told
from pages.components.data import Known

KEY = "compare_runs"
FIRST_SHOWN = 4  # the newest runs, when a link names none


def chosen(runs: list[Known]) -> list[Known]:
    """The runs to compare in the order picked; the ids in the link that are gone are told.

    A picker is drawn, and the URL follows it.
    """
    by_id = {run.id: run for run in runs}
    asked = [part for part in st.query_params.get("runs", "").split(",") if part]
    if missing := [run_id for run_id in asked if run_id not in by_id]:
        link.note(f"The link names runs that are not here any more: {', '.join(missing)}.")
    start = list(dict.fromkeys(run_id for run_id in asked if run_id in by_id))
    if not asked:
        start = [run.id for run in runs[:FIRST_SHOWN]]
    if st.session_state.get(KEY) is None or set(st.session_state[KEY]) - by_id.keys():
        st.session_state[KEY] = start
    picked = st.multiselect(
        "Runs",
        list(by_id),
        format_func=lambda run_id: by_id[run_id].label,
        key=KEY,
        on_change=_to_url,
        placeholder="Choose runs",
    )
    return [by_id[run_id] for run_id in picked]


def metrics(options: list[str], default: list[str]) -> list[str]:
    """The metrics to draw, in the order picked."""
    link.check("metrics", [describe(name).label for name in options], "Metrics")
    return st.multiselect(
        "Metrics",
        options,
        default,
        key="metrics",
        bind="query-params",
        format_func=lambda name: describe(name).label,
    )


@told
def _to_url() -> None:
    st.query_params["runs"] = ",".join(st.session_state[KEY])
