"""Doctor: the lines of the examination, and the button that mends what can be mended."""

import streamlit as st

from corl_core import doctor
from corl_core.doctor import Finding
from corl_core.runs.folder import default_runs_dir
from pages.components.access import acts, may_act
from pages.components.text import plain

ICONS = {"ok": ":green[:material/check_circle:]", "note": ":orange[:material/info:]", "bad": ":red[:material/error:]"}
WORDS = {"ok": "Nothing is wrong.", "note": "Everything works; some things are worth a look.", "bad": "Something does not work."}
_DONE = "doctor.done"


@st.cache_resource(ttl=10, show_spinner="Looking")
def examined(runs_dir: str) -> list[Finding]:
    """At most ten seconds old: several readers share one look."""
    return doctor.examine(default_runs_dir())


def show(findings: list[Finding]) -> None:
    """The verdict, what was mended, then a line for each thing: what needs something first."""
    st.markdown(f"{ICONS[doctor.worst(findings)]} {WORDS[doctor.worst(findings)]}")
    for sentence in st.session_state.pop(_DONE, []):
        st.success(plain(sentence), icon=":material/build:")
    needing = [finding for finding in findings if finding.level != "ok"]
    for finding in sorted(needing, key=lambda finding: -doctor.LEVELS.index(finding.level)):
        with st.container(border=True):
            st.markdown(f"{ICONS[finding.level]} **{plain(finding.name)}**: {plain(finding.found)}")
            if finding.remedy:
                st.caption(f":material/arrow_forward: {plain(finding.remedy)}")
    if mendable := sum(bool(finding.repair) for finding in findings):
        st.button(
            f"Repair {mendable}", type="primary", icon=":material/build:", key="doctor.repair", disabled=not may_act(),
            on_click=_repair,
            help="Writes down what dead runs came to, ends processes of this user whose run is gone, wakes the queue, removes "
            "old locks and unfinished files. Each is looked at again first.",
        )  # fmt: skip
    for finding in findings:
        if finding.level == "ok":
            st.markdown(f"{ICONS['ok']} **{plain(finding.name)}**: {plain(finding.found)}")


def again() -> None:
    """A button that looks anew."""
    st.button("Look again", icon=":material/refresh:", key="doctor.again", on_click=examined.clear)


@acts
def _repair() -> None:
    runs_dir = default_runs_dir()
    st.session_state[_DONE] = doctor.repair(doctor.examine(runs_dir), runs_dir)
    examined.clear()
