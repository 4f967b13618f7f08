"""Compare: several runs over the same axes; seeds grouped; what differs; the view in the URL."""

import streamlit as st

from corl_core.figures.compare import compare_curves
from corl_core.metrics import METRICS, describe
from pages.components import choice, curves, data, diff, frame, results, text
from pages.components.chart import chart_card

DEFAULT = ["eval/accuracy", "agreement", "pseudo_label_accuracy", "reward_std"]

frame.require()
st.title("Compare")
known, _ = data.runs()
if not known:
    st.info("There is no run to compare yet.", icon=":material/info:")
    st.page_link("pages/new_run.py", label="Set up a run", icon=":material/add:")
    st.stop()

runs, missing = choice.chosen(known)
if missing:
    gone = text.plain(", ".join(missing))
    st.warning(f"The link names runs that are not here any more: {gone}.", icon=":material/link_off:")
with st.container(horizontal=True, vertical_alignment="bottom"):
    group = curves.choose(
        "Group",
        {"seeds": "Seeds of one config", "none": "Each run"},
        "seeds",
        "group",
        "Runs whose configs differ by their seed only become one line: mean ± one standard deviation, with N in the legend.",
    )
    members = st.toggle("Members", key="members", bind="query-params", help="Each run faint behind its mean.")
    smoothing = curves.choose_smoothing()
metrics = st.multiselect(
    "Metrics",
    list(METRICS),
    DEFAULT,
    key="metrics",
    bind="query-params",
    format_func=lambda name: describe(name).label,
)
if not runs or not metrics:
    st.info("Choose at least one run and one metric.", icon=":material/info:")
    st.stop()

read = data.history([run.id for run in runs], metrics)
if read.notice:
    st.caption(f":material/info: {text.plain(read.notice)}")
slots = data.slots([run.id for run in known])
groups = diff.by_seed(runs, slots) if group == "seeds" else diff.alone(runs, slots)
for start in range(0, len(metrics), 2):
    for column, metric in zip(st.columns(2), metrics[start : start + 2], strict=False):
        weight = 0.0 if metric.startswith("eval/") else smoothing
        figure = compare_curves(read.frame, metric, groups, weight, members)
        with column:
            chart_card(figure, f"compare.{metric}", describe(metric).doc)

st.subheader("First and last values")
results.show(read.frame, metrics, groups)

st.subheader("Configuration")
everything = st.toggle("Show what is equal too", key="all", bind="query-params")
table = diff.differences(runs, everything)
if table.empty:
    st.caption("These runs have the same configuration." if len(runs) > 1 else "One run alone.")
else:
    st.dataframe(table, hide_index=True, alt="Configuration of each run")
