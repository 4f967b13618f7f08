"""The table of results: a row a group of runs, mean ± sample standard deviation over its runs, the best of a column in bold.

  base, final    accuracy of a single rollout on the held-out questions, at the first and the last evaluation
  majority       accuracy of the majority there, at the last evaluation
  pseudo-labels  accuracy of the received pseudo-labels, mean over the last tenth of the steps
  agreement      of the votes on the held-out questions, at the last evaluation; neither end of it is best

A run's value is the mean over its agents.
"""

from collections.abc import Callable, Sequence

import pandas as pd

from corl_core.figures.compare import Group
from corl_core.figures.errors import FigureError
from corl_core.figures.latex import Best, Column, Value, table_tex
from corl_core.figures.lines import run_lines
from corl_core.figures.stamp import Stamp

KEYS = ["eval/accuracy", "eval/majority_accuracy", "pseudo_label_accuracy", "eval/agreement"]
TAIL = 0.1  # of the steps

Pick = Callable[[pd.DataFrame], float]


def columns(history: pd.DataFrame, groups: Sequence[Group], agent: str = "") -> list[Column]:
    """The columns that hold any value; with `agent`, of that agent alone. Raises FigureError when none does."""
    own = history[history["agent"].isin([agent, ""])] if agent else history
    parts: list[tuple[str, str, Pick, Best]] = [
        ("Base", "eval/accuracy", lambda line: line["value"].iloc[0], None),
        ("Final", "eval/accuracy", lambda line: line["value"].iloc[-1], "highest"),
        ("Majority", "eval/majority_accuracy", lambda line: line["value"].iloc[-1], "highest"),
        ("Pseudo-labels", "pseudo_label_accuracy", _tail, "highest"),
        ("Agreement", "eval/agreement", lambda line: line["value"].iloc[-1], None),
    ]
    found = [Column(name, _values(own, metric, groups, pick), best) for name, metric, pick, best in parts]
    kept = [column for column in found if any(value is not None for value in column.values)]
    if not kept:
        raise FigureError("table: these runs have no evaluation with known answers yet; choose others, or wait for one")
    return kept


def counts(history: pd.DataFrame, groups: Sequence[Group]) -> list[int]:
    """N of each row: its runs that have any of the values."""
    there = set(history.loc[history["metric"].isin(KEYS), "run_id"])
    return [len(there.intersection(group.run_ids)) for group in groups]


def tex(history: pd.DataFrame, groups: Sequence[Group], stamp: Stamp | None = None, agent: str = "") -> bytes:
    """The table as LaTeX (booktabs)."""
    numbers = [str(count) for count in counts(history, groups)]
    return table_tex([group.label for group in groups], numbers, columns(history, groups, agent), stamp)


def frame(history: pd.DataFrame, groups: Sequence[Group], agent: str = "") -> pd.DataFrame:
    """The table's numbers: run, n, and for each column its mean and standard deviation."""
    table = pd.DataFrame({"run": [group.label for group in groups], "n": counts(history, groups)})
    for column in columns(history, groups, agent):
        name = column.heading.lower().replace("-", "_")
        table[name] = [value.mean if value else None for value in column.values]
        table[f"{name}_std"] = [value.std if value else None for value in column.values]
    numbers = [name for name in table.columns if name != "run"]
    return table.astype(dict.fromkeys(numbers, float)).astype({"n": int}).dropna(axis="columns", how="all")


def text(history: pd.DataFrame, groups: Sequence[Group], agent: str = "") -> pd.DataFrame:
    """The table as a person reads it."""
    table = pd.DataFrame({"Run": [group.label for group in groups], "N": counts(history, groups)})
    for column in columns(history, groups, agent):
        table[column.heading] = [value.text(column.digits) if value else "" for value in column.values]
    return table


def _values(history: pd.DataFrame, metric: str, groups: Sequence[Group], pick: Pick) -> tuple[Value | None, ...]:
    lines = run_lines(history, metric).dropna(subset=["value"]).sort_values(["run_id", "step"])
    of_run = {run_id: float(pick(line)) for run_id, line in lines.groupby("run_id")}
    found = []
    for group in groups:
        own = pd.Series([of_run[run_id] for run_id in group.run_ids if run_id in of_run], dtype=float)
        found.append(None if own.empty else Value(float(own.mean()), float(own.std()) if len(own) > 1 else None))
    return tuple(found)


def _tail(line: pd.DataFrame) -> float:
    last = line["step"].max()
    return line.loc[line["step"] > last - max(1, TAIL * (last + 1)), "value"].mean()
