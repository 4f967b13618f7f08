"""What both ways of reading share: the error, the rule for keys, and infinity restored."""

import math
from collections.abc import Iterable

MLFLOW_INF = 1.7976931348623157e308  # the largest float: what MLflow's SQL stores hold for inf


class TrackingUnavailable(RuntimeError):
    """The tracking store can't be read; the text says which and what to do."""


def wanted(names: Iterable[str], keys: list[str] | None) -> list[str]:
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
