"""New run: the button that queues a run instead of starting it at once."""

import secrets
import threading

import streamlit as st

from corl_core.config import RunConfig
from corl_core.runs import queue_dispatch
from corl_core.runs.folder import default_runs_dir
from pages.components import frame
from pages.components.access import acts, why_not
from pages.components.boundary import visit
from pages.components.text import plain

_lock = threading.Lock()
_SESSION = "queue_add.session"


@st.cache_resource
def _queued() -> dict[str, str]:
    """Token of a click to the id of the run that it queued."""
    return {}


def add_once(token: str, config: RunConfig) -> str:
    """The id of the run that `token` queued; two clicks on one button carry the same token and queue one run."""
    with _lock:
        if token not in _queued():
            _queued()[token] = queue_dispatch.add(config, default_runs_dir()).id
        return _queued()[token]


def button(config: RunConfig | None, refusal: str = "") -> None:
    """Queues one run of `config` and opens the queue; off where launching is."""
    refusal = why_not() or refusal
    st.button(
        "Add to queue", key="add_to_queue", icon=":material/playlist_add:", disabled=config is None or bool(refusal),
        help=plain(refusal or "It starts by itself when slots are free."), on_click=_add, args=(config,),
    )  # fmt: skip


@acts
def _add(config: RunConfig) -> None:
    session = st.session_state.setdefault(_SESSION, secrets.token_hex(8))
    add_once(f"{session}/{visit()}/{config.to_yaml()}", config)
    frame.go("pages/queue.py")
