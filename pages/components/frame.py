"""The frame around every page: the navigation, the style of all pages, and the guarantee that app.py drew it.

Streamlit lists a folder called pages/ by itself until st.navigation has been called once in
the process, and would run the first page asked for without app.py. A page that finds itself
outside the frame calls st.navigation, which ends that, and starts over.
"""

from contextvars import ContextVar
from typing import Any

import streamlit as st

_GOING = "frame.going"
# A table's own "Download as CSV" writes cells as they are, and a spreadsheet would run a run's name or an answer that begins
# with "=". The files that pages offer themselves go through `for_cell`; Streamlit has no setting for this button.
STYLE = '<style>button[aria-label^="Download as CSV"] { display: none !important; }</style>'
_inside: ContextVar[bool] = ContextVar("inside the frame", default=False)


def navigation() -> Any:
    """Declares the pages; returns the one that was asked for."""
    return st.navigation(
        [
            st.Page("pages/overview.py", title="Runs", icon=":material/list:", default=True),
            st.Page("pages/new_run.py", title="New run", icon=":material/add:"),
            st.Page("pages/queue.py", title="Queue", icon=":material/schedule:"),
            st.Page("pages/picker.py", title="Cohort picker", icon=":material/group_add:"),
            st.Page("pages/run.py", title="Run", icon=":material/show_chart:"),
            st.Page("pages/compare.py", title="Compare", icon=":material/compare_arrows:"),
            st.Page("pages/votes.py", title="Votes", icon=":material/how_to_vote:"),
            st.Page("pages/theory.py", title="Theory", icon=":material/functions:"),
            st.Page("pages/figures.py", title="Figures", icon=":material/image:"),
            st.Page("pages/doctor.py", title="Doctor", icon=":material/stethoscope:"),
            st.Page("pages/guide.py", title="Guide", icon=":material/menu_book:"),
        ],
        position="top",
    )


def run(page: Any) -> None:
    """Runs the page inside the frame."""
    st.html(STYLE)
    token = _inside.set(True)
    try:
        page.run()
    finally:
        _inside.reset(token)


def go(page: str, **query: str) -> None:
    """For callbacks: opens a page, with its query, when the app is drawn next."""
    st.session_state[_GOING] = (page, query)


def follow() -> None:
    """Opens the page that a callback asked for, if any."""
    if going := st.session_state.pop(_GOING, None):
        page, query = going
        st.switch_page(page, query_params=query)


def require() -> None:
    """Starts over inside the frame when app.py has not drawn it."""
    if not _inside.get():
        navigation()
        st.rerun()
