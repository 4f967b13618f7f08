"""Runs: what is running, what finished, what broke."""

import streamlit as st

from pages.components import actions, data, frame, live, table, text, welcome

frame.require()

known, broken = data.runs()
if not known and not broken:
    welcome.show()
    st.stop()

head = st.container(horizontal=True, vertical_alignment="bottom", horizontal_alignment="distribute")
head.title("Runs")
if head.button("New run", type="primary", icon=":material/add:"):
    st.switch_page("pages/new_run.py")
for sentence in broken:
    st.warning(text.plain(sentence), icon=":material/warning:")

running = [run for run in known if not run.status.final and run.status.state != "queued"]
if running:
    live.running_cards([run.id for run in running])

with st.container(horizontal=True, vertical_alignment="bottom"):
    name = st.text_input(
        "Search",
        type="search",
        key="name",
        bind="query-params",
        placeholder="Name, model, tag or id",
        width=260,
    )
    state = st.multiselect("State", list(text.STATE_COLORS), key="state", bind="query-params", width=260)
    method = st.multiselect(
        "Method",
        list(actions.METHOD_LABELS),
        key="method",
        bind="query-params",
        format_func=actions.method_label,
        width=260,
    )

shown = table.matching(known, name, state, method)
if not shown:
    st.info("No run matches these filters.", icon=":material/filter_alt_off:")
    st.stop()

bar = st.container(horizontal=True, vertical_alignment="center")
picked = table.show(shown)
table.action_bar(bar, picked, len(shown), len(known))
