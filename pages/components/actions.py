"""What a person can do to runs: launch once, stop, delete, each with its confirmation."""

import secrets
import threading
from collections.abc import Callable

import streamlit as st

from corl_core.config import RunConfig
from corl_core.methods import METHOD_LABELS
from corl_core.runs import launch as launcher
from corl_core.runs.folder import default_runs_dir, find_run
from pages.components import frame, keeping, labels, trash
from pages.components.access import acts, may_act, why_not
from pages.components.boundary import visit
from pages.components.data import Known
from pages.components.text import plain

_launch_lock = threading.Lock()
_SESSION = "actions.session"


@st.cache_resource
def _launched() -> dict[str, str]:
    """Token of a click to the id of the run that it started."""
    return {}


def launch_once(token: str, config: RunConfig) -> str:
    """The id of the run that `token` started; starts it at the first call only.

    Two clicks on one button carry the same token and start one run.
    """
    with _launch_lock:
        started = _launched()
        if token not in started:
            started[token] = launcher.launch(config, default_runs_dir()).id
        return started[token]


def why_not_launch() -> str:
    """Why this visitor may not start processes, or ""."""
    return why_not()


def launch_button(label: str, config: RunConfig | None, key: str, data_refusal: str = "") -> None:
    """A button that starts one run of `config` and opens it; off when there is no valid config.

    It is off, too, where the run's data would be refused, and the reason stands beside it.
    """
    refusal = why_not_launch() or data_refusal
    st.button(
        label,
        key=key,
        type="primary",
        icon=":material/play_arrow:",
        disabled=config is None or bool(refusal),
        help=plain(refusal) or None,
        on_click=_launch,
        args=(config,),
    )
    if data_refusal:
        st.caption(f":material/block: {plain(f'Launch is off: {data_refusal}')}")


@acts
def _launch(config: RunConfig) -> None:
    session = st.session_state.setdefault(_SESSION, secrets.token_hex(8))
    token = f"{session}/{visit()}/{config.to_yaml()}"
    frame.go("pages/run.py", run=launch_once(token, config))


@st.dialog("Stop training?")
def confirm_stop(run_ids: list[str]) -> None:
    """Asks, then tells the runs to stop after their current step."""
    st.write(f"Stop {_named(run_ids)} after the current step? What was trained and logged so far stays.")
    _confirm("Stop", ":material/stop:", _stop, run_ids)


def confirm_delete(run_ids: list[str]) -> None:
    """Asks, then moves the runs to the trash; leaves for the list of runs."""
    trash.confirm(run_ids)


def _confirm(word: str, icon: str, action: Callable, run_ids: list[str]) -> None:
    """The dialog's button; a click acts and closes the dialog."""
    key = f"confirm_{word.lower()}"
    if st.button(word, type="primary", icon=icon, key=key, on_click=action, args=(run_ids,)):
        st.rerun()


@acts
def _stop(run_ids: list[str]) -> None:
    for run_id in run_ids:
        launcher.stop(find_run(default_runs_dir(), run_id))


@acts
def _resume(run_id: str) -> None:
    launcher.resume(find_run(default_runs_dir(), run_id))


def _named(run_ids: list[str]) -> str:
    names = ", ".join(f"**{plain(run_id)}**" for run_id in run_ids[:5])
    return names if len(run_ids) <= 5 else f"{names} and {len(run_ids) - 5} more"


def run_actions(known: Known) -> None:
    """The row of buttons of one run."""
    with st.container(horizontal=True, width="content"):
        if not known.status.final and may_act():
            stopping = known.status.state == "stopping"
            label = "Stopping" if stopping else "Stop"
            if st.button(label, icon=":material/stop:", disabled=stopping, key="run_stop"):
                confirm_stop([known.id])
        if known.status.state in ("stopped", "failed") and may_act():
            about = "Goes on from the agents' last common checkpoint."
            icon = ":material/resume:"
            st.button("Resume", icon=icon, key="run_resume", help=about, on_click=_resume, args=(known.id,))
        if st.button("Compare", icon=":material/compare_arrows:", key="run_compare"):
            st.switch_page("pages/compare.py", query_params={"runs": known.id})
        if st.button("Use as template", icon=":material/content_copy:", key="run_template"):
            st.switch_page("pages/new_run.py", query_params={"from": known.id})
        if may_act() and st.button("Label", icon=":material/sell:", key="run_label", help="Name, note and tags"):
            labels.edit(known.id, known.config.name)
        if known.status.final:
            keeping.menu(known)
            if may_act() and st.button("Delete", icon=":material/delete:", key="run_delete"):
                confirm_delete([known.id])


def method_label(method: str) -> str:
    """The method's name for people."""
    return METHOD_LABELS.get(method, method)
