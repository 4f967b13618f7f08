"""Queue: what waits and what takes slots; ablation grids, and what covers their cells."""

import streamlit as st

from pages.components import frame, grid_form, grid_view, link, queue_view

frame.require()
st.title("Queue")
notices = st.container()
queue_view.show()

st.subheader("Ablation grid")
st.caption("One run for each combination of the chosen values. What has finished before with the same settings is not run again.")
kept = grid_view.choose()
with notices:
    link.show()
grid = kept or grid_form.show()
if grid is not None:
    grid_view.show(grid, new=kept is None)
