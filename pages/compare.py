"""Compare: several runs over the same axes; grouped over seeds; what differs; the view in the URL."""

import streamlit as st

from corl_core.metrics import METRICS
from pages.components import choice, compared, data, diff, frame, link, results, view

DEFAULT = ["eval/accuracy", "agreement", "pseudo_label_accuracy", "reward_std"]

frame.require()
st.title("Compare")
known, _ = data.runs()
if not known:
    st.info("There is no run to compare yet.", icon=":material/info:")
    st.page_link("pages/new_run.py", label="Set up a run", icon=":material/add:")
    st.stop()

notices = st.container()
runs = choice.chosen(known)
ids = [run.id for run in runs]
chosen = view.choose_groups(runs, data.slots([run.id for run in known]), data.tags(ids))
metrics = choice.metrics(list(METRICS), DEFAULT)
if not runs or not metrics:
    with notices:
        link.show()
    st.info("Choose at least one run and one metric.", icon=":material/info:")
    st.stop()

compared.charts(ids, metrics, chosen, notices)

st.subheader("First, final and best values")
results.show(data.history(ids, metrics).frame, metrics, chosen.groups, chosen.baseline, chosen.facts)

st.subheader("Configuration")
everything = st.toggle("Show what is equal too", key="all", bind="query-params")
table = diff.differences(runs, everything)
if table.empty:
    st.caption("These runs have the same configuration." if len(runs) > 1 else "One run alone.")
else:
    st.dataframe(table, hide_index=True, column_config={"field": "Field"}, alt="Configuration of each run")
