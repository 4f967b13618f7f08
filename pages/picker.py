"""Cohort picker: whom to pair, before any training; from answers that exist, or from candidates sampled here."""

import streamlit as st

from corl_core.diversity.answers import BASES
from pages.components import frame, picker, picker_cohorts, picker_matrix, picker_sampling
from pages.components.text import plain

frame.require()
st.title("Cohort picker")
st.caption("Models that are right on different questions can teach each other. Compare candidates before you train them.")
st.page_link("pages/guide.py", label="What the measures and predictions mean", icon=":material/menu_book:")
st.segmented_control(
    "Answers",
    list(picker.SOURCES),
    default="file",
    format_func=picker.SOURCES.get,
    key="source",
    bind="query-params",
    required=True,
    label_visibility="collapsed",
)
found = picker_sampling.chosen() if st.session_state["source"] == "sample" else picker.chosen()
if found is None:
    picker_cohorts.reference()
    st.stop()

answers = found.answers
basis = "first"
if answers.num_samples > 1:
    basis = st.segmented_control(
        "Compare models by",
        list(BASES),
        default="first",
        format_func=picker.BASIS_WORDS.get,
        key="basis",
        bind="query-params",
        required=True,
        help=f"First sample: {BASES['first']}. Vote: {BASES['vote']}.",
    )
made = picker.analysed(found, basis)
picker.summary(made)
for note in answers.notes:
    st.caption(f":material/info: {plain(note)}")

st.subheader("Pairs")
if made.label_free:
    st.info(picker_matrix.LABEL_FREE_WORDS, icon=":material/label_off:")
picker_matrix.matrices(made)
st.caption(f"Click a cell to see its questions below. {'' if made.label_free else picker_matrix.READING_WORDS}")
first, second = picker_matrix.pair_choice(made)
picker_matrix.pair_details(made, first, second)
st.caption(picker_matrix.INTERVAL_WORDS)

st.subheader("Beside the paper's pairs")
picker_cohorts.beside_reference(made)

if not made.label_free:
    st.subheader("Pseudo-labels that each model would receive")
    picker_cohorts.edge_table(made)
st.subheader("Predicted accuracy after training")
if made.label_free:
    st.caption("Predictions need true answers, at least for a sample of the questions.")
else:
    picker_cohorts.ranks(found)
