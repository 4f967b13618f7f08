"""Run: the ring as it stands, and as it stood: a slider goes back through the steps."""

import streamlit as st

from corl_core.figures.ring import own_vote, ring_plot, ring_sentence
from corl_core.figures.ring_values import WINDOW, ring_readings
from pages.components import data
from pages.components.chart import chart
from pages.components.data import Known
from pages.components.text import plain

HEIGHT = 300
ABOUT = (
    "An arrow points to the agent that a vote rewards. The wider it is, the more often the two agents' votes agree; blue says "
    "that the pseudo-labels it carries are right, orange that they are wrong, grey that half are. Consensus is not correctness: "
    "a wide orange arrow is agreement on wrong answers."
)


def show(known: Known) -> None:
    """The ring with its readings; nothing for a run whose agents get no votes."""
    peers = known.config.peers()
    if not peers:
        return
    agents = [agent.name for agent in known.config.agents]
    order = list(known.config.ring) if isinstance(known.config.ring, list) else agents
    with st.container(border=True):
        st.markdown("**Who rewards whom**", help=ABOUT)
        metrics = data.history([known.id], ["agreement/*", "pseudo_label_accuracy"])
        if metrics.frame.empty:
            st.caption("The ring shows here as soon as the first step is done.")
            return
        newest = int(metrics.frame["step"].max())
        step = min(_step(known.status.max_steps or newest + 1) - 1, newest)
        readings = ring_readings(metrics.frame, peers, step)
        st.caption(f"Steps {max(0, step - WINDOW + 1):,} to {step:,}" + (", the newest" if step == newest else ""))
        own = own_vote(signal.labels_from for signal in known.config.signals.values())
        drawing, words = st.columns([3, 2], vertical_alignment="center")
        with drawing:
            alt, plot = ring_sentence(agents, peers, readings, own), ring_plot(order, peers, readings, own)
            chart(plot, "run.ring", alt, height=HEIGHT, bar=False, revision=known.id)
        words.markdown("\n".join(f"- {plain(ring_sentence([agent], peers, readings, own))}" for agent in agents))


def _step(max_steps: int) -> int:
    """The number of steps to look back from; at its right end the slider follows the newest."""
    if max_steps < 2:
        return max_steps
    about = "Move it left to see the ring as it was. At its right end it follows the run."
    return st.slider("Steps done", 1, max_steps, max_steps, key="ring_step", bind="query-params", help=about)
