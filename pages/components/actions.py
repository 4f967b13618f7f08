"""What a person can do to runs: launch once, stop, delete, each with its confirmation."""

import secrets
import threading
from collections.abc import Callable

import streamlit as st

from corl_core.config import METHOD_LABELS, RunConfig
from corl_core.runs import launch as launcher
from corl_core.runs.folder import default_runs_dir, find_run
from pages.components import frame
from pages.components.boundary import told, visit
from pages.components.data import Known
from pages.components.text import plain

LOOPBACK = ("127.0.0.1", "localhost", "::1")
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
    """Why this page may not start processes, or ""."""
    address = st.get_option("server.address")
    if address in LOOPBACK:
        return ""
    return (
        f"Launching from the page is off, because the dashboard listens on "
        f"{address or 'all addresses'} and has no login. Use the command instead."
    )


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


@told
def _launch(config: RunConfig) -> None:
    session = st.session_state.setdefault(_SESSION, secrets.token_hex(8))
    token = f"{session}/{visit()}/{config.to_yaml()}"
    frame.go("pages/run.py", run=launch_once(token, config))


@st.dialog("Stop training?")
def confirm_stop(run_ids: list[str]) -> None:
    """Asks, then tells the runs to stop after their current step."""
    st.write(f"Stop {_named(run_ids)} after the current step? What was trained and logged so far stays.")
    _confirm("Stop", ":material/stop:", _stop, run_ids)


@st.dialog("Delete for good?")
def confirm_delete(run_ids: list[str]) -> None:
    """Asks, then removes the runs' folders; leaves for the list of runs."""
    st.write(
        f"Delete {_named(run_ids)}? The folder goes, with its logs, rollouts and models. "
        "The curves in MLflow stay there but are no longer shown here. This can't be undone."
    )
    _confirm("Delete", ":material/delete:", _delete, run_ids)


def _confirm(word: str, icon: str, action: Callable, run_ids: list[str]) -> None:
    """The dialog's button; a click acts and closes the dialog."""
    key = f"confirm_{word.lower()}"
    if st.button(word, type="primary", icon=icon, key=key, on_click=action, args=(run_ids,)):
        st.rerun()


@told
def _stop(run_ids: list[str]) -> None:
    for run_id in run_ids:
        launcher.stop(find_run(default_runs_dir(), run_id))


@told
def _delete(run_ids: list[str]) -> None:
    frame.go("pages/overview.py")
    for run_id in run_ids:
        launcher.delete(find_run(default_runs_dir(), run_id))


def _named(run_ids: list[str]) -> str:
    names = ", ".join(f"**{plain(run_id)}**" for run_id in run_ids[:5])
    return names if len(run_ids) <= 5 else f"{names} and {len(run_ids) - 5} more"


def run_actions(known: Known) -> None:
    """The row of buttons of one run."""
    with st.container(horizontal=True, width="content"):
        if not known.status.final:
            stopping = known.status.state == "stopping"
            label = "Stopping" if stopping else "Stop"
            if st.button(label, icon=":material/stop:", disabled=stopping, key="run_stop"):
                confirm_stop([known.id])
        if st.button("Compare", icon=":material/compare_arrows:", key="run_compare"):
            st.switch_page("pages/compare.py", query_params={"runs": known.id})
        if st.button("Use as template", icon=":material/content_copy:", key="run_template"):
            st.switch_page("pages/new_run.py", query_params={"from": known.id})
        if known.status.final and st.button("Delete", icon=":material/delete:", key="run_delete"):
            confirm_delete([known.id])


def method_label(method: str) -> str:
    """The method's name for people."""
    return METHOD_LABELS.get(method, method)
