"""The table of runs: filter, columns, and what can be done with the rows picked."""

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from corl_core.figures.lines import run_lines
from corl_core.runs.labels import labels
from corl_core.security import masked
from pages.components import access, actions, data
from pages.components.boundary import unread
from pages.components.data import Known
from pages.components.text import STATE_COLORS, cohort, first_start, moment

COLUMNS = {
    "state": st.column_config.MultiselectColumn(
        "State", options=list(STATE_COLORS), color=list(STATE_COLORS.values()), width=100
    ),
    "name": st.column_config.TextColumn("Name", width=150),
    "method": st.column_config.TextColumn("Method", width=110),
    "cohort": st.column_config.TextColumn("Cohort", width=210),
    "seed": st.column_config.NumberColumn("Seed", width=50),
    "progress": st.column_config.ProgressColumn(
        "Progress",
        help="Percent of its steps that every agent has finished.",
        format="%d%%",
        max_value=100,
        width=95,
    ),
    "accuracy": st.column_config.NumberColumn(
        "Accuracy",
        help="The last held-out accuracy of a single rollout, mean over agents.",
        format="%.3f",
        width=75,
    ),
    "trend": st.column_config.LineChartColumn(
        "Trend", help="Held-out accuracy so far, mean over agents.", y_min=0, y_max=1, width=90
    ),
    "agreement": st.column_config.NumberColumn(
        "Agreement",
        help="The last share of questions on which the agents' votes are the same.",
        format="%.3f",
        width=85,
    ),
    "alarms": st.column_config.ListColumn("Alarms", help="What has gone wrong in the run, each kind once.", width=100),
    "tags": st.column_config.ListColumn("Tags", width=110),
    "started": st.column_config.TextColumn("Started", width=155),
    "reason": st.column_config.TextColumn("Reason", width="large"),
    "id": st.column_config.TextColumn("Id", width="medium"),
}


def matching(runs: list[Known], name: str, states: list[str], methods: list[str]) -> list[Known]:
    """The runs that fit every filter; an empty filter fits all."""
    return [
        run
        for run in runs
        if name.lower() in f"{run.name} {run.config.name} {cohort(run.config)} {' '.join(labels(run.run).tags)} {run.id}".lower()
        and (not states or run.status.state in states)
        and (not methods or run.config.method in methods)
    ]


def show(runs: list[Known]) -> list[Known]:
    """Draws the table; returns the runs whose rows are picked."""
    ids = [run.id for run in runs]
    accuracy, agreement = data.history(ids, ["eval/accuracy"]), data.latest(ids, ["agreement"])
    unread(accuracy.notice)
    trends = run_lines(accuracy.frame, "eval/accuracy").dropna().groupby("run_id")["value"]
    agreed = agreement.frame.set_index("run_id")["value"].to_dict()
    trend = trends.agg(list).to_dict()
    rows = [_row(run, trend.get(run.id, []), agreed.get(run.id)) for run in runs]
    event = st.dataframe(
        pd.DataFrame(rows),
        column_config=COLUMNS,
        hide_index=True,
        key=f"runs.{hash(tuple(ids))}",
        on_select="rerun",
        selection_mode="multi-row",
        placeholder="–",
        alt="Table of runs",
    )
    return [runs[row] for row in event.selection.rows if row < len(runs)]


def action_bar(bar: DeltaGenerator, picked: list[Known], shown: int, total: int) -> None:
    """What can be done with the picked runs; with none picked, how to pick."""
    ids = [run.id for run in picked]
    if not picked:
        runs = f"{total} run{'' if total == 1 else 's'}"
        count = runs if shown == total else f"{shown} of {runs}"
        bar.caption(f"{count}. Tick one to open it, several to compare them.")
        return
    if len(picked) == 1 and bar.button("Open", type="primary", icon=":material/show_chart:"):
        st.switch_page("pages/run.py", query_params={"run": ids[0]})
    if bar.button(f"Compare {len(ids)}" if len(ids) > 1 else "Compare", icon=":material/compare_arrows:"):
        st.switch_page("pages/compare.py", query_params={"runs": ",".join(ids)})
    if not access.may_act():
        return
    if any(not run.status.final for run in picked):
        if bar.button("Stop", icon=":material/stop:"):
            actions.confirm_stop([run.id for run in picked if not run.status.final])
    elif bar.button("Delete", icon=":material/delete:"):
        actions.confirm_delete(ids)


def _row(run: Known, trend: list[float], agreement: float | None) -> dict:
    status = run.status
    return {
        "state": [status.state],
        "name": run.name,
        "method": actions.method_label(run.config.method),
        "cohort": cohort(run.config),
        "seed": run.config.seed,
        "progress": 100 * status.step // max(status.max_steps, 1),
        "accuracy": trend[-1] if trend else None,
        "trend": trend,
        "agreement": agreement,
        "alarms": list(dict.fromkeys(alarm.title for alarm in status.raised)),
        "tags": list(labels(run.run).tags),
        "started": moment(first_start(status) or status.created),
        "reason": masked(status.reason),
        "id": run.id,
    }
