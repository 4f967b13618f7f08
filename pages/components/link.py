"""What a link asks for that can't be shown: each is told once, on top of the page.

Streamlit itself drops such a value and falls back to the default, without a word.
"""

from collections.abc import Collection

import streamlit as st

from pages.components.text import plain

_NOTED = "link.noted"  # sentence → whether it was told


def check(key: str, words: Collection[str], label: str) -> None:
    """Notes the values of `key` in the link that are not among `words`, as the address writes them.

    To be called before the widget is drawn, which removes them.
    """
    for value in st.query_params.get_all(key):
        if value and value not in words:
            note(f"{label}: the link asks for “{value[:80]}”, which is not there; the usual choice is shown.")


def note(sentence: str) -> None:
    """Keeps a sentence for `show`, unless it was told before."""
    st.session_state.setdefault(_NOTED, {}).setdefault(sentence, False)


def show() -> None:
    """The sentences noted since the last time, as one box."""
    noted = st.session_state.get(_NOTED, {})
    if new := [sentence for sentence, told in noted.items() if not told]:
        noted.update(dict.fromkeys(new, True))
        st.warning("  \n".join(map(plain, new)), icon=":material/link_off:")
