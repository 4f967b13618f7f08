"""What a first visit shows: what this is, and the demo in one click."""

import streamlit as st

from corl_core.config import load_config
from corl_core.figures.palette import agent_styles
from corl_core.figures.ring import ring_plot, ring_sentence
from pages.components.actions import launch_button
from pages.components.chart import chart
from pages.components.text import cohort

PITCH = """
Several language models answer the same questions. Each is rewarded for agreeing with the
majority vote of its **peer**, never with its own, and nobody is told the right answers.
Models that fail on different questions pull each other up.
"""


def show() -> None:
    """The page without runs."""
    demo = load_config("demo")
    words, drawing = st.columns([3, 2], gap="large", vertical_alignment="center")
    with words:
        st.title("Train a cohort without labels")
        st.markdown(PITCH)
        st.markdown(
            f"The demo trains a ring of tiny models, **{cohort(demo)}**, each taught arithmetic "
            "with its own slip. It runs on this machine's CPU in a few minutes."
        )
        with st.container(horizontal=True):
            launch_button("Run the demo", demo, "launch_demo")
            if st.button("Set up a run of your own", icon=":material/tune:"):
                st.switch_page("pages/new_run.py")
    with drawing:
        peers = demo.peers()
        names = list(agent_styles(agent.name for agent in demo.agents))
        chart(ring_plot(names, peers), "ring", ring_sentence(names, peers), 280, bar=False)
