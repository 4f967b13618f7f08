"""Run: its size on disk, its archive, its checkpoints."""

import tempfile
from pathlib import Path

import streamlit as st

from corl_core.runs import archive, prune
from corl_core.runs.folder import default_runs_dir, find_run
from corl_core.runs.launch import LaunchError
from corl_core.runs.trash import size_bytes
from pages.components import frame
from pages.components.access import acts, may_act
from pages.components.data import Known
from pages.components.text import size_words

MAX_DOWNLOAD = 200 * 10**6  # bytes; it goes through the dashboard's memory, as an upload does
MAX_UPLOAD_MB = 100
MAX_UNPACKED = 10**9  # bytes of what is uploaded


def menu(known: Known) -> None:
    """A popover for a run that has ended."""
    with st.popover("More", icon=":material/more_horiz:"):
        size = size_bytes(known.run.path)
        st.caption(f"{size_words(size)} on disk")
        if size <= MAX_DOWNLOAD:
            st.download_button(
                "Archive", lambda: _made(known), f"{known.id}{archive.SUFFIX}", "application/zip", icon=":material/archive:",
                key="run_archive", on_click="ignore", help="One file with everything but checkpoints, for another machine.",
            )  # fmt: skip
        else:
            st.caption("To make one file of it:")
            st.code(f"python -m corl_core archive {known.id}", language="bash", wrap_lines=True)
        keep = prune.default_keep(known.run)
        old = sum(map(size_bytes, prune.superfluous(known.run, keep)))
        if old and may_act():
            words = "all of them; the run has finished" if keep == 0 else f"all but the newest {keep} to resume from"
            st.button(
                f"Remove checkpoints ({size_words(old)})", icon=":material/cleaning_services:", key="run_prune",
                help=f"Removes {words}.", on_click=_prune, args=(known.id,),
            )  # fmt: skip


def importer() -> None:
    """Doctor: a run out of an archive."""
    st.file_uploader(
        "Import a run", type="zip", key="import.file", on_change=_import, disabled=not may_act(), max_upload_size=MAX_UPLOAD_MB,
        help="An archive made by Co-RL Lab. It is checked file by file, and nothing in it is run. Larger ones: "
        "python -m corl_core import FILE",
    )  # fmt: skip


def _made(known: Known) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "run.zip"
        archive.archive(known.run, target)
        return target.read_bytes()


@acts
def _prune(run_id: str) -> None:
    prune.prune(find_run(default_runs_dir(), run_id))


@acts
def _import() -> None:
    upload = st.session_state["import.file"]
    if upload is None:
        return
    runs_dir = default_runs_dir()
    run = archive.restore(upload, runs_dir, MAX_UNPACKED)
    frame.go("pages/run.py", run=run.id)
    from corl_core.tracking.housekeeping import log_imported
    from corl_core.tracking.log import TrackingError

    try:
        log_imported(run, runs_dir)
    except TrackingError as error:
        raise LaunchError(str(error)) from error
