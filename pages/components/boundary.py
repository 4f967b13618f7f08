"""Where errors end: pages and callbacks run inside, and a person reads a sentence.

An error that a person can cause carries its own text. Anything else is a bug: its traceback
goes to the terminal, never to the page. Streamlit's own control flow (rerun, stop, switch)
passes through, since it does not derive from Exception.
"""

import functools
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import ParamSpec

import streamlit as st

from corl_core.config import ConfigError
from corl_core.data.questions import DataError
from corl_core.figures.errors import FigureError
from corl_core.rollouts.shards import ShardError
from corl_core.runs.folder import RunNotFound
from corl_core.runs.launch import LaunchError
from corl_core.security import masked
from corl_core.tracking.errors import TrackingUnavailable
from pages.components.text import plain

P = ParamSpec("P")
log = logging.getLogger(__name__)
EXPLAINED = (ConfigError, DataError, FigureError, LaunchError, RunNotFound, ShardError, TrackingUnavailable)
BUG = "Something in the dashboard itself went wrong. The details are in the terminal it runs in."
_PENDING = "boundary.pending"
_VISIT = "boundary.visit"


def in_words(error: Exception) -> str:
    """The sentence for the page; a bug's traceback goes to the log."""
    if isinstance(error, EXPLAINED):
        text = masked(str(error))
        return text[:1].upper() + text[1:]
    log.exception("dashboard error", exc_info=error)
    return BUG


@contextmanager
def guard() -> Iterator[None]:
    """Shows what goes wrong inside as one error box."""
    try:
        yield
    except Exception as error:
        st.error(plain(in_words(error)), icon=":material/error:")


def told(action: Callable[P, None]) -> Callable[P, None]:
    """A widget callback whose errors are shown on top of the next page drawn."""

    @functools.wraps(action)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            action(*args, **kwargs)
        except Exception as error:
            st.session_state[_PENDING] = in_words(error)

    return wrapped


def show_pending() -> None:
    """Shows, once, what went wrong in a callback."""
    if text := st.session_state.pop(_PENDING, None):
        st.error(plain(text), icon=":material/error:")


def note_visit(page: str) -> None:
    """Counts the times a person came to another page."""
    last, count = st.session_state.get(_VISIT, ("", 0))
    if last != page or count == 0:
        st.session_state[_VISIT] = (page, count + 1)


def visit() -> int:
    """The number of this visit: the same while a person stays on one page."""
    return st.session_state.get(_VISIT, ("", 0))[1]


def unread(notice: str) -> None:
    """Why curves are missing, if anything: in passing where nothing has been logged yet, else with what to do about it."""
    if notice.startswith("No metrics yet"):
        st.caption(f":material/info: {plain(notice)}")
    elif notice:
        remedy = "Nothing is lost: the runs' journals hold everything, and 'python -m corl_core sync RUN' logs it anew."
        st.warning(plain(f"{notice} {remedy}"), icon=":material/cloud_off:")
