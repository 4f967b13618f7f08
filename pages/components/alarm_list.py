"""The alarms of a run, in words: what was seen, of whom, and since when."""

import streamlit as st

from corl_core.alarms.record import Alarm
from corl_core.metrics import describe
from pages.components.data import Known
from pages.components.text import plain

SHOWN = 4  # kinds above the fold
ACTIONS = {"checkpoint": "The agents saved their weights.", "stop": "The run was told to stop."}


def show(known: Known) -> None:
    """One line a kind of alarm, with each agent's sentence below it; nothing without alarms."""
    kinds: dict[str, list[Alarm]] = {}
    for alarm in known.status.raised:
        kinds.setdefault(alarm.kind, []).append(alarm)
    if not kinds:
        return
    with st.container(border=True, key="alarms"):
        for own in list(kinds.values())[:SHOWN]:
            _kind(own)
        if len(kinds) > SHOWN:
            with st.expander(f"{len(kinds) - SHOWN} more kinds"):
                for own in list(kinds.values())[SHOWN:]:
                    _kind(own)
        if done := ACTIONS.get(known.config.alarms.action):
            st.caption(done)


def _kind(alarms: list[Alarm]) -> None:
    first, kind = alarms[0], alarms[0].kind
    over = all(alarm.ended is not None for alarm in alarms)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.badge(first.title, icon=":material/notifications:", color="gray" if over else "orange")
        st.markdown(f"since step {min(alarm.step for alarm in alarms):,}" + (", over" if over else ""), help=plain(_about(kind)))
    st.markdown("\n".join(f"- {plain(_when(alarm) + alarm.text)}" for alarm in alarms))


def _when(alarm: Alarm) -> str:
    until = f" to {alarm.ended:,}" if alarm.ended is not None else ""
    return f"Step {alarm.step:,}{until}: "


def _about(kind: str) -> str:
    try:
        return describe(f"alarm/{kind}").doc
    except KeyError:  # of a run of another version
        return ""
