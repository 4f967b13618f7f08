"""Compare: how lines are made and drawn, chosen by the person and kept in the link."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from corl_core.figures.axes import AXES
from corl_core.figures.compare import Facts, Group, View
from corl_core.figures.seeds import CENTERS, SPREADS
from pages.components import curves, grouping, link, zoom
from pages.components.data import Known

NO_BASELINE = "None"
WHY_AXES = (
    "What stands under the curves: updates, questions seen, wall time, tokens of all agents together, or agent-seconds: the time "
    "of each step, summed over the agents, so that a cohort's cost stands against that of one agent. With one GPU an agent, "
    "agent-seconds are GPU seconds."
)
WHY_BASELINE = (
    "The difference of each group from this one, seed by seed: runs of one seed saw the same questions. Seeds without a "
    "partner are left out, and said."
)
WHY_ROBUST = "The y axis shows the 1st to 99th percentile of the points; how many lie outside is said below the chart."


@dataclass(frozen=True)
class Grouping:
    """Which runs are one line, and which group the others are compared with."""

    groups: list[Group]
    baseline: Group | None
    facts: dict[str, Facts]


@dataclass(frozen=True)
class Look:
    """How the lines are made and drawn."""

    view: View
    smoothing: float
    members: bool


def choose_groups(runs: Sequence[Known], slots: dict[str, int], tags: grouping.Tags) -> Grouping:
    """Draws the controls of what the charts and the table share."""
    words = grouping.choices(runs, tags)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = _select("Group by", words, "group", "Runs that become one line; N in the legend says of how many.")
        made = grouping.groups(by, runs, slots, tags)
        names = {NO_BASELINE: NO_BASELINE} | {group.label: group.label for group in made}
        less = _select("Baseline", names, "baseline", WHY_BASELINE) if len(made) > 1 else NO_BASELINE
    baseline = next((group for group in made if group.label == less), None)
    return Grouping(made, baseline, grouping.facts(runs))


def choose_look(chosen: Grouping) -> Look:
    """Draws the controls of the charts alone."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        axes = {name: axis.words for name, axis in AXES.items()}
        axis = curves.choose("x axis", axes, "step", "x", WHY_AXES, zoom.forget, wrap=True)
        smoothing = curves.choose_smoothing()
        with st.popover("Lines", icon=":material/tune:"):
            center = curves.choose("Centre of a group", CENTERS, "mean", "center", "What one line stands for.")
            spread = curves.choose("Band", SPREADS, "std", "band", "How far the runs of a group lie apart.")
            members = st.toggle("Members", key="members", bind="query-params", help="Each run faint behind its group's line.")
            log = st.toggle("Logarithmic y axis", key="log", bind="query-params", on_change=zoom.forget)
            robust = st.toggle("Robust y range", key="robust", bind="query-params", help=WHY_ROBUST, on_change=zoom.forget)
    return Look(View(center, spread, axis, log, robust, chosen.facts), smoothing, members)


def _select(label: str, words: dict[str, str], key: str, about: str) -> str:
    """One of the names in `words`, from a list that may be long."""
    link.check(key, words.values(), label)
    options = list(words)
    return st.selectbox(label, options, key=key, bind="query-params", format_func=words.get, help=about, width=230) or options[0]
