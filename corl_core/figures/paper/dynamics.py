"""Curves over training, one function a figure: Figures 2a–c, 4a–c and 5a–c of the paper (arXiv 2608.17253).

Fig. 2 and Fig. 4 have one line a group of runs (a method, or a cohort): the mean over its agents, then the centre over its
seeds with a band (seeds.py; mean and one sample standard deviation unless asked otherwise). Fig. 5 has one line an agent.
Metrics are those of corl_core/metrics.py.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from corl_core.figures.axes import AXES
from corl_core.figures.compare import Group, View, compare_curves
from corl_core.figures.curves import axis_title, file_stem
from corl_core.figures.lines import run_lines
from corl_core.figures.palette import style
from corl_core.figures.paper.diverged import ranged
from corl_core.figures.spec import Figure
from corl_core.metrics import describe

RELATIVE = "reward_std_normalized"


@dataclass(frozen=True)
class Choice:
    """What a person may set of a figure."""

    smoothing: float = 0.0  # weight of the past in the debiased exponential average of training curves
    center: str = "mean"  # over seeds, and the band round it: see seeds.py
    spread: str = "std"
    members: bool = False  # each run faint behind the mean of its group
    agent: str = ""  # only this agent's lines in figures that average over agents; '' is all
    limits: tuple[float, float] | None = None  # the y range
    overlap: str = "kappa"  # how Fig. 2d measures error overlap
    agents: tuple[str, ...] = ()  # the runs' agents in the order of their configs, for the colours of Fig. 5


def agreement(history: pd.DataFrame, groups: Sequence[Group], choice: Choice) -> Figure:
    """Fig. 2a: share of a step's questions on which two agents' votes are the same answer, mean over pairs of agents."""
    return ranged(_curves(history, "agreement", groups, choice), choice.limits)


def pseudo_labels(history: pd.DataFrame, groups: Sequence[Group], choice: Choice) -> Figure:
    """Fig. 2b: share of the pseudo-labels an agent *receives* (its predecessor's votes) that are right."""
    return ranged(_curves(history, "pseudo_label_accuracy", groups, choice), choice.limits)


def evaluation(history: pd.DataFrame, groups: Sequence[Group], choice: Choice) -> Figure:
    """Fig. 2c, 4a: accuracy of a single rollout on the held-out questions; never smoothed."""
    return ranged(_curves(history, "eval/accuracy", groups, replace(choice, smoothing=0.0)), choice.limits)


def reward_std(history: pd.DataFrame, groups: Sequence[Group], choice: Choice) -> Figure:
    """Fig. 4b: std of rewards within a group of rollouts, over its first value above zero (of that run and agent)."""
    return ranged(_curves(relative(history), RELATIVE, groups, choice), choice.limits, automatic=True)


def completion_length(history: pd.DataFrame, groups: Sequence[Group], choice: Choice) -> Figure:
    """Fig. 4c: mean length of a step's completions, in tokens."""
    return ranged(_curves(history, "completions/mean_length", groups, choice), choice.limits, automatic=True)


def agents_accuracy(history: pd.DataFrame, groups: Sequence[Group], choice: Choice) -> Figure:
    """Fig. 5a, in our reading: held-out accuracy, one line an agent.

    The paper's Fig. 5 is about the training dynamics of another domain: its agents keep a partial agreement while the
    pseudo-labels they exchange get better, and 5c is the accuracy of received pseudo-labels. What a and b show is our reading
    of that: accuracy and agreement.
    """
    choice = replace(choice, smoothing=0.0)
    return ranged(_by_agent(history, "eval/accuracy", groups, choice), choice.limits)


def agents_agreement(history: pd.DataFrame, groups: Sequence[Group], choice: Choice) -> Figure:
    """Fig. 5b, in our reading: agreement, one line a pair of agents; each pair of a ring of three is an edge of it."""
    pairs = history["metric"].str.startswith("agreement/") & (history["agent"] == "")
    names = history.loc[pairs, "metric"].astype(str).str.removeprefix("agreement/").str.replace(".", " and ", regex=False)
    split = history[pairs].assign(agent=names, metric="agreement")
    return ranged(_by_agent(split, "agreement", groups, choice), choice.limits)


def agents_pseudo_labels(history: pd.DataFrame, groups: Sequence[Group], choice: Choice) -> Figure:
    """Fig. 5c: share of the pseudo-labels an agent receives that are right, one line an agent."""
    return ranged(_by_agent(history, "pseudo_label_accuracy", groups, choice), choice.limits)


def relative(history: pd.DataFrame) -> pd.DataFrame:
    """Reward std of each run and agent over its first value above zero; a line that never is above zero is left out."""
    own = history[history["metric"] == "reward_std"].sort_values("step", kind="stable")
    first = own["value"].where(own["value"] > 0).groupby([own["run_id"], own["agent"]]).transform("first")
    return own.assign(metric=RELATIVE, value=own["value"] / first).loc[first.notna()]


def _curves(history: pd.DataFrame, metric: str, groups: Sequence[Group], choice: Choice) -> Figure:
    chosen = history[history["agent"].isin([choice.agent, ""])] if choice.agent else history
    return _drawn(chosen, metric, groups, choice)


def _by_agent(history: pd.DataFrame, metric: str, groups: Sequence[Group], choice: Choice) -> Figure:
    """One line an agent and group: colour and marker by agent, dash by group."""
    own = history[(history["metric"] == metric) & (history["agent"] != "")].astype({"run_id": str, "agent": str})
    if choice.agent:
        own = own[own["agent"] == choice.agent]
    apart = own.assign(run_id=own["run_id"] + "/" + own["agent"], agent="")
    order = sorted(own["agent"].unique(), key=lambda agent: _places(agent, choice.agents))
    lines = []
    for place, group in enumerate(groups):
        there = set(own.loc[own["run_id"].isin(group.run_ids), "agent"])
        for slot, agent in enumerate(order):
            if agent not in there:
                continue
            label = agent if len(groups) == 1 else f"{agent}, {group.label}"
            keys = tuple(f"{run_id}/{agent}" for run_id in group.run_ids)
            lines.append(Group(label, keys, style(slot).with_dash(style(7 * place).dash)))
    return _drawn(apart, metric, lines, choice)


def _places(label: str, agents: Sequence[str]) -> tuple[list[int], str]:
    """Where an agent, or each of a pair, stands among the runs' agents."""
    return ([agents.index(name) if name in agents else len(agents) for name in label.split(" and ")], label)


def _drawn(history: pd.DataFrame, metric: str, groups: Sequence[Group], choice: Choice) -> Figure:
    """compare_curves over the runs that have the metric, so that N counts those alone."""
    there = set(run_lines(history, metric)["run_id"])
    present = [replace(group, run_ids=tuple(run_id for run_id in group.run_ids if run_id in there)) for group in groups]
    present = [group for group in present if group.run_ids]
    if not present:
        about = describe(metric)
        return Figure(file_stem(metric), about.label, AXES["step"].title, axis_title(about), ())
    view = View(choice.center, choice.spread)
    figure = compare_curves(history, metric, present, choice.smoothing, choice.members, view)
    good = metric in ("eval/accuracy", "pseudo_label_accuracy")
    finite = tuple(line for line in figure.series if np.isfinite(line.y).any())
    return replace(figure, series=finite, higher_is_better=good)
