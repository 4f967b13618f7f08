"""Deleting with a way back: the notice after it, and the trash itself."""

import streamlit as st

from corl_core.runs import trash
from corl_core.runs.folder import Run, all_runs, default_runs_dir, find_run
from corl_core.runs.launch import LaunchError
from pages.components import frame
from pages.components.access import acts, may_act
from pages.components.text import moment, plain, size_words

_LAST = "trash.last"


@st.dialog("Move to the trash?")
def confirm(run_ids: list[str]) -> None:
    """Asks, then moves the runs to the trash and leaves for the list of runs."""
    names = ", ".join(f"**{plain(run_id)}**" for run_id in run_ids[:5])
    more = f" and {len(run_ids) - 5} more" if len(run_ids) > 5 else ""
    # The dialog is drawn once more after the click, when they are gone.
    size = sum(trash.size_bytes(run.path) for run in all_runs(default_runs_dir()) if run.id in run_ids)
    way_back = "Until that is emptied, on the Doctor page, this can be undone."
    st.write(f"Move {names}{more} ({size_words(size)}) to the trash? {way_back}")
    about = "Marks the MLflow runs as deleted; undoing brings them back."
    with_mlflow = st.checkbox("Delete the curves in MLflow, too", key="delete_mlflow", help=about)
    chosen = (run_ids, with_mlflow)
    if st.button("Delete", type="primary", icon=":material/delete:", key="confirm_delete", on_click=_throw, args=chosen):
        st.rerun()


def undo_notice() -> None:
    """For app.py: after a deletion, the way back; gone once it was used or closed."""
    ids = [item.id for item in trash.thrown(default_runs_dir()) if item.id in st.session_state.get(_LAST, [])]
    if not ids:
        return
    with st.container(horizontal=True, vertical_alignment="center", border=True):
        what = plain(ids[0]) if len(ids) == 1 else f"{len(ids)} runs"
        st.markdown(f":material/delete: {what} moved to the trash.", width="content")
        st.button("Undo", icon=":material/undo:", key="trash.undo", on_click=_restore, args=(ids,))
        st.button("Close", icon=":material/close:", key="trash.close", type="tertiary", on_click=_forget)


def contents() -> None:
    """What is in the trash, each with its way back; the button that empties it."""
    items = trash.thrown(default_runs_dir())
    if not items:
        st.caption("The trash is empty.")
        return
    sizes = {item.id: trash.size_bytes(item.run.path) for item in items}
    for item in items[:20]:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            st.markdown(f"{plain(item.id)}, {size_words(sizes[item.id])}, deleted {moment(item.when)}", width="content")
            st.button(
                "Restore", icon=":material/undo:", key=f"trash.restore.{item.id}", disabled=not may_act(), on_click=_restore,
                args=([item.id],),
            )  # fmt: skip
    if len(items) > 20:
        st.caption(f"and {len(items) - 20} more")
    label = f"Empty the trash ({size_words(sum(sizes.values()))})"
    if st.button(label, icon=":material/delete_forever:", key="trash.empty", disabled=not may_act()):
        _confirm_empty([item.id for item in items])


@st.dialog("Delete for good?")
def _confirm_empty(run_ids: list[str]) -> None:
    what = "this run" if len(run_ids) == 1 else f"these {len(run_ids)} runs"
    st.write(f"Remove {what} with logs, rollouts and models? This can't be undone.")
    if st.button("Delete for good", type="primary", icon=":material/delete_forever:", key="confirm_empty", on_click=_empty,
                 args=(run_ids,)):  # fmt: skip
        st.rerun()


@acts
def _throw(run_ids: list[str], with_mlflow: bool) -> None:
    frame.go("pages/overview.py")
    runs_dir = default_runs_dir()
    st.session_state[_LAST] = []
    for run_id in run_ids:
        item = trash.throw(find_run(runs_dir, run_id), with_mlflow)
        st.session_state[_LAST].append(item.id)
        if with_mlflow:
            _in_mlflow("delete_runs", item.run)


@acts
def _restore(run_ids: list[str]) -> None:
    for run_id in run_ids:
        item = trash.find(default_runs_dir(), run_id)
        run = trash.restore(item)
        if item.with_mlflow:
            _in_mlflow("restore_runs", run)


@acts
def _empty(run_ids: list[str]) -> None:
    trash.empty([item for item in trash.thrown(default_runs_dir()) if item.id in run_ids])


def _forget() -> None:
    st.session_state.pop(_LAST, None)


def _in_mlflow(what: str, run: Run) -> None:
    from corl_core.tracking import housekeeping
    from corl_core.tracking.log import TrackingError

    try:
        getattr(housekeeping, what)(run, default_runs_dir())
    except TrackingError as error:
        raise LaunchError(str(error)) from error
