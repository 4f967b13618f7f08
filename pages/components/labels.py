"""Run: what a person calls it and writes about it, and where that is changed."""

import threading

import streamlit as st

from corl_core.runs import labels
from corl_core.runs.folder import Run, default_runs_dir, find_run
from pages.components.access import acts
from pages.components.data import Known
from pages.components.text import plain

_KEYS = ("labels.name", "labels.note", "labels.tags")


def show(known: Known) -> None:
    """Tags and note, below the title; nothing for a run without any."""
    own = labels.labels(known.run)
    if own.name:
        st.caption(plain(f"Started as {known.config.name}."))
    if own.tags:
        with st.container(horizontal=True, width="content"):
            for tag in own.tags:
                st.badge(plain(tag), icon=":material/sell:", color="gray")
    if own.note:
        st.markdown(plain(own.note).replace("\n", "  \n"))


@st.dialog("Name, note and tags")
def edit(run_id: str, config_name: str) -> None:
    """The form; what is saved stands in the run's labels.json, and run.yaml stays as it was."""
    own = labels.labels(find_run(default_runs_dir(), run_id))
    name, note, tags = _KEYS
    st.text_input("Name", own.name, max_chars=labels.MAX_NAME, placeholder=config_name, key=name)
    st.text_area("Note", own.note, max_chars=labels.MAX_NOTE, key=note, height=140)
    st.multiselect("Tags", list(own.tags), list(own.tags), accept_new_options=True, max_selections=labels.MAX_TAGS, key=tags)
    if st.button("Save", type="primary", icon=":material/save:", key="labels.save", on_click=_save, args=(run_id,)):
        st.rerun()


@acts
def _save(run_id: str) -> None:
    run = find_run(default_runs_dir(), run_id)
    labels.put(run, *(st.session_state[key] for key in _KEYS))
    threading.Thread(target=_mirror, args=(run,), daemon=True, name="mirror labels").start()


def _mirror(run: Run) -> None:
    """Into MLflow's tags, whose import takes seconds; a store that is down hears of it at the next change."""
    from corl_core.tracking.housekeeping import mirror_labels
    from corl_core.tracking.log import TrackingError

    try:
        mirror_labels(run, run.path.parent)
    except TrackingError as error:
        print(f"labels: {error}", flush=True)
