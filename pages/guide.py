"""Guide: the cohort picker and the theory, explained to a person who has read the paper's abstract only."""

import streamlit as st

from pages.components import frame, guide, theory

frame.require()
st.title("Guide")
st.caption("Whom to pair before training, what should then happen, and how to see whether it did.")

st.markdown(guide.WORDS)

st.header("Whom to pair", anchor="pair")
st.markdown(guide.PAIR)
guide.example()
st.markdown(guide.MEASURES_WORDS)
guide.measures()
st.markdown(guide.PREDICTED)
st.page_link("pages/picker.py", label="Cohort picker", icon=":material/group_add:")

st.header("What should happen", anchor="theory")
st.markdown(theory.ABOUT)
st.page_link("pages/theory.py", label="Theory", icon=":material/functions:")

st.header("Did it, and what if", anchor="run")
st.markdown(guide.RUN)
st.page_link("pages/votes.py", label="Votes", icon=":material/how_to_vote:")

st.header("What neither can tell", anchor="limits")
st.markdown(guide.LIMITS)
