"""Where the runs of each group began, ended and were best: the numbers of a results table."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from corl_core.figures.compare import Facts, Group
from corl_core.figures.latex import Column, Value, table_tex
from corl_core.figures.lines import RunLine, by_run
from corl_core.figures.paired import at_the_end, pairs_of
from corl_core.figures.spec import Array
from corl_core.metrics import describe

LESS_IS_BETTER = ("error_overlap", "loss", "false_reward_rate", "unparsed_vote_rate", "grade_timeout_rate", "grade_error_rate",
                  "frac_reward_zero_std", "tie_rate", "generate_time_s", "grade_time_s", "log_time_s", "update_time_s",
                  "exchange_wait_s", "step_time_s")  # fmt: skip


@dataclass(frozen=True)
class Ends:
    """One finite value of each run that has one, by run id."""

    first: dict[str, float]
    final: dict[str, float]
    best: dict[str, float]
    best_step: dict[str, float]


def less_is_better(metric: str) -> bool:
    """Whether the best value of a metric is its lowest."""
    return metric.removeprefix("eval/").startswith(LESS_IS_BETTER)


def ends(history: pd.DataFrame, metric: str) -> Ends:
    """Of every run of the history."""
    found = Ends({}, {}, {}, {})
    for run_id, line in by_run(history, metric).items():
        there = np.isfinite(line.values)
        steps, values = line.steps[there], line.values[there]
        if len(values):
            place = int(values.argmin() if less_is_better(metric) else values.argmax())
            found.first[run_id], found.final[run_id] = float(values[0]), float(values[-1])
            found.best[run_id], found.best_step[run_id] = float(values[place]), float(steps[place])
    return found


def summary(
    history: pd.DataFrame,
    metrics: Sequence[str],
    groups: Sequence[Group],
    baseline: Group | None = None,
    facts: Mapping[str, Facts] | None = None,
) -> pd.DataFrame:
    """A row a metric and group: N, then mean and sample standard deviation of each of `Ends`, as numbers; None for none.

    With a baseline, the paired difference at the last step that both of a pair have, half its 95% interval, and the number
    of pairs (paired.py).
    """
    rows = []
    for metric in metrics:
        lines = by_run(history, metric)
        found = ends(history, metric)
        for group in groups:
            row = {"Metric": describe(metric).label, "Run": group.label, "N": len(_of(group, found.final))}
            for name, values in (("First", found.first), ("Final", found.final), ("Best", found.best)):
                row |= {name: _mean(_of(group, values)), f"± {name.lower()}": _std(_of(group, values))}
            row["At step"] = _mean(_of(group, found.best_step))
            if baseline is not None:
                row |= _difference(group, baseline, lines, facts or {})
            rows.append(row)
    return pd.DataFrame(rows)


def results_tex(history: pd.DataFrame, metrics: Sequence[str], groups: Sequence[Group]) -> bytes:
    """The final values, a row a group and a column a metric; the best accuracy is bold."""
    columns = []
    for metric in metrics:
        found = [_of(group, ends(history, metric).final) for group in groups]
        values = tuple(Value(float(np.mean(own)), _std(own)) if own else None for own in found)
        columns.append(Column(describe(metric).label, values, "highest" if "accuracy" in metric else None))
    return table_tex([group.label for group in groups], [str(len(group.run_ids)) for group in groups], columns)


def _of(group: Group, values: Mapping[str, float]) -> list[float]:
    return [values[run_id] for run_id in group.run_ids if run_id in values]


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _std(values: list[float]) -> float | None:
    return float(np.std(values, ddof=1)) if len(values) > 1 else None


def _difference(
    group: Group, baseline: Group, lines: Mapping[str, RunLine], facts: Mapping[str, Facts]
) -> dict[str, float | None]:
    pairs = {} if group == baseline else pairs_of(group, baseline, facts)[0]
    mine: dict[int, float] = {}
    theirs: dict[int, float] = {}
    for seed, sides in pairs.items():
        own = [[_finite(lines[run_id]) for run_id in side if run_id in lines] for side in sides]
        if all(own) and all(len(steps) for side in own for steps, _ in side):
            last = min(steps[-1] for side in own for steps, _ in side)
            mine[seed], theirs[seed] = (float(np.mean([_at(line, last) for line in side])) for side in own)
    gap = at_the_end(mine, theirs)
    if gap is None:
        return {"Difference": None, "± difference": None, "Pairs": None}
    return {"Difference": gap.mean, "± difference": gap.half, "Pairs": gap.n}


def _finite(line: RunLine) -> tuple[Array, Array]:
    there = np.isfinite(line.values)
    return line.steps[there], line.values[there]


def _at(line: tuple[Array, Array], step: float) -> float:
    """The last value up to a step; the first one where there is none."""
    steps, values = line
    return float(values[max(np.searchsorted(steps, step, side="right") - 1, 0)])
