"""New run: the settings of the supervision signals, only those that the chosen method uses."""

import streamlit as st

from corl_core.methods import METHOD_LABELS, METHODS, SIGNALS, WEIGHTED
from pages.components import draft
from pages.components.boundary import told
from pages.components.fields import grid, problem

VOTING = ["vote.tie", "vote.min_share", "vote.num_votes"]
OWN = {
    "rent": ["signal.no_answer_reward"],
    "random": ["signal.random_frac"],
    "co_rewarding_2": ["signal.alpha_start", "signal.alpha_end"],
}


def chosen() -> list[str]:
    """The signals of the draft."""
    method = draft.get("method")
    return list(draft.get("signal.weights") or draft.FIRST_WEIGHTS) if method == WEIGHTED else [method]


def words() -> str:
    """What the draft's agents are rewarded for."""
    return ", ".join(METHODS[name].about for name in chosen())


def editor(problems: dict[str, str]) -> None:
    """How rewards come about: the weights of a sum, voting, and each signal's own settings."""
    names = chosen()
    st.caption(f"Rewarded by {words()}.")
    if draft.get("method") == WEIGHTED:
        _weights(names, problems)
    if any(SIGNALS[name].votes for name in names):
        grid(VOTING, problems)
    grid([path for name in names for path in OWN.get(name, [])], problems)


def _weights(names: list[str], problems: dict[str, str]) -> None:
    key = draft.key("signals")
    st.multiselect("Signals", list(SIGNALS), names, key=key, format_func=METHOD_LABELS.get, on_change=_take, args=(key,))
    for start in range(0, len(names), 3):
        for column, name in zip(st.columns(3), names[start : start + 3], strict=False):
            path = f"signal.weights.{name}"
            with column:
                label, value = f"Weight of {METHOD_LABELS[name]}", float(draft.get(path))
                st.number_input(label, value=value, step=0.1, key=draft.key(path), on_change=draft.take, args=(path,))
    problem("signal.weights", problems)


@told
def _take(key: str) -> None:
    """The signals' callback: those that stay keep their weight."""
    old = draft.get("signal.weights") or {}
    draft.put("signal.weights", {name: old.get(name, 1.0) for name in st.session_state[key]} or dict(draft.FIRST_WEIGHTS))
