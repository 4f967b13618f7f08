"""Figures: the paper's figures from one's own runs, as files for a paper; the table of results; a bundle to share."""

import streamlit as st

from pages.components import boundary, choice, data, figures_files, figures_form, frame, link

frame.require()
st.title("Figures")
known, _ = data.runs()
if not known:
    st.info("There is no run to draw yet. Its figures show here once it has trained.", icon=":material/info:")
    st.page_link("pages/new_run.py", label="Set up a run", icon=":material/add:")
    st.stop()

notices = st.container()
runs = choice.chosen(known)
recipe = figures_form.choose(runs)
kind = figures_form.choose_format()
with notices:
    link.show()
if not runs:
    st.info("Choose at least one run.", icon=":material/info:")
    st.stop()

read = data.history([run.id for run in runs], figures_files.keys(recipe))
boundary.unread(read.notice)
source = figures_files.source(read.frame, runs, data.slots([run.id for run in known]))
figures_files.show(recipe, source, kind)

st.subheader("Table of results")
figures_files.table(recipe, source)

st.subheader("Share")
figures_files.share(recipe, source, runs)
