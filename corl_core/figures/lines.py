"""History tables to plain lines.

A history has the columns run_id, agent, metric, step, value and time, with agent "" for the
cohort (corl_core/tracking/reader.py). A line table has run_id, step and value.
"""

from collections.abc import Mapping, Sequence

import pandas as pd

from corl_core.figures.gaps import stretches


def run_lines(history: pd.DataFrame, metric: str) -> pd.DataFrame:
    """One line a run: the cohort's own value where there is one, else the mean over agents.

    Returns run_id, step, value. At a step that only some agents have logged, the mean is
    over those.
    """
    chosen = history[history["metric"] == metric]
    cohort = chosen[chosen["agent"] == ""]
    agents = chosen[~chosen["run_id"].isin(cohort["run_id"].unique())]
    both = pd.concat([cohort, agents])
    return both.groupby(["run_id", "step"], as_index=False)["value"].mean()


def agent_line(history: pd.DataFrame, metric: str, agent: str) -> pd.DataFrame:
    """step and value of one metric of one agent, in order of step."""
    chosen = history[(history["metric"] == metric) & (history["agent"] == agent)]
    return chosen[["step", "value"]].sort_values("step", ignore_index=True)


def smooth(values: pd.Series, weight: float) -> pd.Series:
    """Debiased exponential average: y_t = sum_i w^(t-i) x_i / sum_i w^(t-i).

    `weight` 0 returns the values. NaN stays where it was and does not spread.
    """
    if weight <= 0:
        return values
    return values.ewm(alpha=1 - weight, adjust=True, ignore_na=True).mean().where(values.notna())


def smooth_line(line: pd.DataFrame, weight: float) -> pd.Series:
    """The values of one line, smoothed; the average starts over where steps are missing (gaps.py).

    What lies before a break says nothing of where the line goes on.
    """
    if weight <= 0:
        return line["value"]
    stretch = stretches(line["step"].to_numpy())
    return line["value"].groupby(stretch).transform(lambda values: smooth(values, weight))


def smooth_lines(lines: pd.DataFrame, weight: float) -> pd.DataFrame:
    """Each run's line smoothed by itself; the values before it stay in the column raw."""
    ordered = lines.sort_values(["run_id", "step"], ignore_index=True)
    smoothed = [smooth_line(line, weight) for _, line in ordered.groupby("run_id")]
    return ordered.assign(raw=ordered["value"], value=pd.concat(smoothed) if smoothed else ordered["value"])


def group_lines(lines: pd.DataFrame, groups: Mapping[str, Sequence[str]]) -> pd.DataFrame:
    """Mean and sample standard deviation over the runs of each group, step by step.

    Returns group, step, mean, std, n. A step that only some runs reached is averaged over
    those, and n says how many; std is NaN where n is 1.
    """
    owner = {run_id: name for name, members in groups.items() for run_id in members}
    owned = lines.assign(group=lines["run_id"].map(owner)).dropna(subset=["group"])
    table = owned.groupby(["group", "step"])["value"].agg(["mean", "std", "count"])
    return table.rename(columns={"count": "n"}).reset_index()


def first_and_last(lines: pd.DataFrame) -> pd.DataFrame:
    """run_id, first, last, best (the highest) and last_step of each run's line."""
    ordered = lines.dropna(subset=["value"]).sort_values(["run_id", "step"])
    found = ordered.groupby("run_id").agg(
        first=("value", "first"),
        last=("value", "last"),
        best=("value", "max"),
        last_step=("step", "last"),
    )
    return found.reset_index()
