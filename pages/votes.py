"""Votes: why a question went wrong; agreement held against the truth; what another rule would have labelled."""

import streamlit as st

from pages.components import curves, data, frame, link, text, votes, votes_curves, votes_question

VIEWS = {"questions": "Questions", "agreement": "Agreement", "whatif": "What-if"}

frame.require()
st.title("Votes")
runs, _ = data.runs()
if not runs:
    st.info("There is no run yet. Its votes show here, step by step, once it has trained.", icon=":material/info:")
    st.page_link("pages/new_run.py", label="Set up a run", icon=":material/add:")
    st.stop()

notices = st.container()
with st.container(horizontal=True, vertical_alignment="bottom"):
    known = votes.choose_run(runs)
    view = curves.choose("View", VIEWS, "questions", "view", "Single questions, or the whole run over its steps.")
with notices:
    link.show()
ballots = votes.opened(known)
for sentence in ballots.problems[:3]:
    st.warning(text.plain(sentence), icon=":material/warning:")
if len(ballots.problems) > 3:
    st.caption(f"{len(ballots.problems) - 3} more files can't be read.")
if not ballots.num_draws:
    waiting = "This run has saved no rollouts." if known.status.final else (
        "No rollouts are saved yet. A running agent saves them in blocks of 25 steps.")  # fmt: skip
    st.info(waiting, icon=":material/hourglass_empty:")
    st.page_link("pages/run.py", label="See the run", icon=":material/show_chart:", query_params={"run": known.id})
    st.stop()

head = st.container(horizontal=True, vertical_alignment="center")
head.caption(
    f"{ballots.num_rollouts:,} rollouts of {len(ballots.agents)} agents, steps {ballots.step[0]} to {ballots.step[-1]}."
    + ("" if known.status.final else " The run goes on and saves its rollouts in blocks of 25 steps.")
)
if not known.status.final:
    head.button("Look again", icon=":material/refresh:", type="tertiary")

if view == "agreement":
    votes_curves.show_agreement(known, ballots)
elif view == "whatif":
    votes_curves.show_replay(known, ballots)
elif (draw := votes.pick(ballots, votes.filtered(ballots))) is not None:
    votes_question.show(known, ballots, draw)
    votes_question.show_path(ballots, draw)
