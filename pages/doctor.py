"""Doctor: what is wrong here and what to do about it; the trash, and runs from elsewhere."""

import streamlit as st

from corl_core.runs.folder import default_runs_dir
from pages.components import access, doctor, frame, keeping, text, trash

frame.require()

head = st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute")
head.title("Doctor")
with head:
    doctor.again()
if why := access.why_not():
    st.info(text.plain(why), icon=":material/lock:")
doctor.show(doctor.examined(str(default_runs_dir())))

st.subheader("Trash")
trash.contents()
st.subheader("Runs from elsewhere")
keeping.importer()
