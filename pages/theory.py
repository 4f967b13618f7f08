"""Theory: what should happen when models learn from votes, and whether it did in a run."""

import streamlit as st

from pages.components import curves, frame, link, theory, theory_flow, theory_run

VIEWS = {"flow": "What should happen", "run": "Against a run"}

frame.require()
st.title("Theory")
theory.about()
st.page_link("pages/guide.py", label="From picking a cohort to holding a run against the theory", icon=":material/menu_book:")
notices = st.container()
view = curves.choose("View", VIEWS, "flow", "view", "The model on its own, or held against a run with true answers.")
with notices:
    link.show()
if view == "run":
    theory_run.show()
    st.stop()

theory_flow.explore(notices)
st.caption(theory.NO_GENERALISATION)
theory_flow.where_it_hurts()
