"""What all ways of reading share: lines and their table, the error, the rule for keys, and infinity restored."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from corl_core.tracking.attempts import last_attempt

MLFLOW_INF = 1.7976931348623157e308  # the largest float: what MLflow's SQL stores hold for inf
HISTORY_COLUMNS = ["run_id", "agent", "metric", "step", "value", "time", "attempt"]


@dataclass(frozen=True)
class Written:
    """One metric of one MLflow run as it was written: arrays of shape [num_values], in that order. `times` are unix seconds."""

    steps: np.ndarray
    values: np.ndarray
    times: np.ndarray

    def then(self, later: "Written") -> "Written":
        """These values and, after them, the later ones."""
        pairs = ((self.steps, later.steps), (self.values, later.values), (self.times, later.times))
        return Written(*(np.concatenate(pair) for pair in pairs))


def written(steps: Sequence[int], stored: Sequence[float], is_nan: Sequence[bool], stamps_ms: Sequence[int]) -> Written:
    """From what a store holds: the largest float stands for infinity, and NaN is told apart."""
    values = np.array(stored, dtype=float)
    huge = np.abs(values) >= MLFLOW_INF
    values[huge] = np.copysign(np.inf, values[huge])
    values[np.array(is_nan, dtype=bool)] = np.nan
    return Written(np.array(steps, dtype=np.int64), values, np.array(stamps_ms, dtype=float) / 1000)


def in_time(rows: list[tuple[int, float, bool, int]]) -> Written:
    """From rows of step, stored value, whether it is NaN, and milliseconds, of a store that doesn't tell their order."""
    rows = sorted(rows, key=lambda row: (row[3], row[0]))
    return written(*zip(*rows, strict=True)) if rows else written([], [], [], [])


def table(lines: Sequence[tuple[tuple[str, str, str], Written]]) -> pd.DataFrame:
    """The lines of (run_id, agent, metric) below each other, each cut to its last attempt (attempts.py).

    The first three columns are categories: a name is kept once however long its line is.
    """
    lines = sorted(lines, key=lambda line: line[0])
    kept = [(key, line, *last_attempt(line.steps)) for key, line in lines]
    lengths = [len(places) for _, _, places, _ in kept]
    columns: dict[str, object] = {}
    for place, name in enumerate(HISTORY_COLUMNS[:3]):
        names = sorted({key[place] for key, *_ in kept})
        code = {each: number for number, each in enumerate(names)}
        codes = np.repeat(np.array([code[key[place]] for key, *_ in kept], dtype=int), lengths)
        columns[name] = pd.Categorical.from_codes(codes, pd.Index(names, dtype="str"))
    columns["step"] = _joined([line.steps[places] for _, line, places, _ in kept], np.int64)
    columns["value"] = _joined([line.values[places] for _, line, places, _ in kept], float)
    columns["time"] = _joined([line.times[places] for _, line, places, _ in kept], float)
    columns["attempt"] = _joined([attempt for *_, attempt in kept], np.int64)
    return pd.DataFrame(columns)


def _joined(parts: list[np.ndarray], kind: type) -> np.ndarray:
    return np.concatenate(parts) if parts else np.array([], dtype=kind)


def wanted(names: Iterable[str], keys: Iterable[str] | None) -> list[str]:
    """The metric names that `keys` ask for, sorted: exact names, or prefixes before a "*"."""
    if keys is None:
        return sorted(set(names))
    prefixes = tuple(key[:-1] for key in keys if key.endswith("*"))
    exact = {key for key in keys if not key.endswith("*")}
    return sorted({name for name in names if name in exact or name.startswith(prefixes or "\0")})


def restored(value: float, is_nan: bool = False) -> float:
    """A stored value as it was logged."""
    if is_nan:
        return math.nan
    return math.copysign(math.inf, value) if abs(value) >= MLFLOW_INF else value
