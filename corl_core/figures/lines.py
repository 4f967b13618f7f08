"""History tables to plain lines.

A history has the columns run_id, agent, metric, step, value and time, with agent "" for the
cohort (corl_core/tracking/reader.py). A line table has run_id, step and value.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd

from corl_core.figures.gaps import cuts, stretches
from corl_core.figures.spec import Array

HELD_OUT = "eval/"

@dataclass(frozen=True)
class RunLine:
    """One metric of one run, steps ascending. Arrays of shape [num_steps]."""

    steps: Array
    values: Array
    times: Array  # unix seconds
    resumed: Array  # True at the first step of each attempt after a resume


def by_line(history: pd.DataFrame, metric: str) -> dict[str, dict[str, RunLine]]:
    """Run id → agent ("" for the cohort) → its line."""
    chosen = history[history["metric"] == metric]
    runs, agents = (pd.Categorical(chosen[name]) for name in ("run_id", "agent"))
    num_agents = len(agents.categories)
    line = runs.codes.astype(np.int64) * num_agents + agents.codes
    steps = chosen["step"].to_numpy()
    order = np.lexsort((steps, line))
    line, steps = line[order], steps[order]
    values, times = (chosen[name].to_numpy(float)[order] for name in ("value", "time"))
    attempt = chosen["attempt"].to_numpy()[order] if "attempt" in chosen else np.zeros(len(steps))
    edges = [*np.flatnonzero(np.diff(line, prepend=-1)), len(line)]
    found: dict[str, dict[str, RunLine]] = {}
    for start, end in pairwise(edges):
        run, agent = divmod(int(line[start]), num_agents)
        part = slice(start, end)
        resumed = np.diff(attempt[part], prepend=0) > 0
        own = RunLine(steps[part], values[part], times[part], resumed)
        found.setdefault(str(runs.categories[run]), {})[str(agents.categories[agent])] = own
    return found


def by_run(history: pd.DataFrame, metric: str) -> dict[str, RunLine]:
    """Run id → its line: the cohort's own value where there is one, else the mean over the agents that logged the step.

    A value that isn't finite makes the mean so too: an agent that diverged is not averaged away. A held-out value counts once
    every agent has it: while a run goes on, the first agent to be there would pass for the cohort.
    """
    whole = metric.startswith(HELD_OUT)
    lines = by_line(history, metric)
    return {run_id: own[""] if "" in own else _mean(list(own.values()), whole) for run_id, own in lines.items()}


def with_resume(steps: Array, resumed: Array, at: int) -> Array:
    """`resumed` of a line, with the first value from step `at` on; 0: the run was never resumed.

    A run that stopped at its checkpoint writes no step twice when it goes on, so its values alone don't tell (attempts.py).
    """
    place = int(np.searchsorted(steps, at))
    return resumed if at <= 0 or place == len(steps) else resumed | (np.arange(len(steps)) == place)


def _mean(lines: list[RunLine], whole: bool) -> RunLine:
    if len(lines) == 1:
        return lines[0]
    if whole:
        last = min(line.steps[-1] for line in lines)
        lines = [_until(line, last) for line in lines]
    steps = np.unique(np.concatenate([line.steps for line in lines]))
    total, count, times = np.zeros(len(steps)), np.zeros(len(steps)), np.zeros(len(steps))
    resumed = np.zeros(len(steps), dtype=bool)
    for line in lines:
        places = np.searchsorted(steps, line.steps)
        with np.errstate(invalid="ignore"):  # inf - inf is NaN, and NaN it shall be
            total[places] += line.values
        count[places] += 1
        times[places] += line.times
        resumed[places] |= line.resumed
    return RunLine(steps, total / count, times / count, resumed)


def _until(line: RunLine, last: int) -> RunLine:
    there = line.steps <= last
    return RunLine(line.steps[there], line.values[there], line.times[there], line.resumed[there])


def run_lines(history: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One line a run: the cohort's own value where there is one, else the mean over agents.

    Returns run_id, step, value. At a step that only some agents have logged, the mean is
    over those; held-out values that not all agents have reached are left out, as in by_run.
    """
    chosen = history[history["metric"] == metric]
    cohort = chosen[chosen["agent"] == ""]
    agents = chosen[~chosen["run_id"].isin(cohort["run_id"].unique())]
    both = pd.concat([cohort, agents]).astype({"run_id": "str"})
    if metric.startswith(HELD_OUT) and len(both):
        last = both.groupby(["run_id", "agent"], observed=True)["step"].max().groupby("run_id").min()
        both = both[both["step"] <= both["run_id"].map(last)]
    return both.groupby(["run_id", "step"], as_index=False)["value"].mean(skipna=False)


def agent_line(history: pd.DataFrame, metric: str, agent: str) -> pd.DataFrame:
    """step, value and resumed (True at the first step of each attempt after a resume) of one metric of one agent, by step."""
    chosen = history[(history["metric"] == metric) & (history["agent"] == agent)].sort_values("step", ignore_index=True)
    attempt = chosen["attempt"] if "attempt" in chosen else chosen["step"] * 0
    return chosen[["step", "value"]].assign(resumed=np.diff(attempt, prepend=0) > 0)


def smooth(values: pd.Series, weight: float) -> pd.Series:
    """Debiased exponential average: y_t = sum_i w^(t-i) x_i / sum_i w^(t-i).

    `weight` 0 returns the values. NaN and infinity stay where they were and do not spread.
    """
    if weight <= 0:
        return values
    there = np.isfinite(values.to_numpy(float))
    finite = values if there.all() else values.where(there)
    average = finite.ewm(alpha=1 - weight, adjust=True, ignore_na=True).mean()
    return average if there.all() else average.where(there, values)


def smooth_array(steps: Array, values: Array, weight: float) -> Array:
    """The values of one line, smoothed; the average starts over where steps are missing (gaps.py).

    What lies before a break says nothing of where the line goes on.
    """
    if weight <= 0:
        return values
    parts = np.split(values, cuts(stretches(steps)))
    return np.concatenate([smooth(pd.Series(part), weight).to_numpy(float) for part in parts])


def smooth_line(line: pd.DataFrame, weight: float) -> pd.Series:
    """The same of a line table."""
    return pd.Series(smooth_array(line["step"].to_numpy(), line["value"].to_numpy(float), weight), index=line.index)
