"""Run: how one run is going, live while it lasts."""

import streamlit as st

from pages.components import actions, alarm_list, curves, data, frame, labels, link, live, ring_view, text

frame.require()

run_id = st.query_params.get("run") or data.newest()
if run_id is None:
    st.title("Run")
    st.info("There is no run yet. Start one and it shows here, live.", icon=":material/info:")
    st.page_link("pages/new_run.py", label="Set up a run", icon=":material/add:")
    st.stop()

known = live.one(run_id)
agents = [agent.name for agent in known.config.agents]

head = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
head.title(text.plain(known.name))
with head:
    actions.run_actions(known)
st.caption(
    text.plain(
        f"{actions.method_label(known.config.method)}, {text.cohort(known.config)}, "
        f"seed {known.config.seed}. {text.since(known.status)}. {known.id}"
    )
)
if known.config.eval.checkpoint == "ground_truth":
    st.caption(":material/info: The weights that are kept are chosen by true answers, so this run is not label-free.")
labels.show(known)
if known.config.notes:
    st.markdown(text.plain(known.config.notes))
st.page_link("pages/votes.py", label="Votes", icon=":material/how_to_vote:", query_params={"run": known.id})

with st.container(horizontal=True, vertical_alignment="bottom"):
    smoothing = curves.choose_smoothing()
    measure = curves.choose_measure()
    following = not known.status.final and st.toggle(
        "Live", True, key="live", help="Off: the page stands still while the run goes on."
    )
link.show()


def panel() -> None:
    """Everything that moves while the run lasts."""
    now = live.one(run_id)
    if (now.status.state, now.end) != (known.status.state, known.end):
        st.rerun()
    live.headline(now)
    alarm_list.show(now)
    curves.show(now, agents, smoothing, measure)
    ring_view.show(now)
    live.logs(now, agents)


live.refreshing(panel, active=following or known.status.untold)  # the last values come after the end

with st.expander("Configuration", icon=":material/description:"):
    st.code(known.config.to_yaml(), language="yaml", wrap_lines=True)
