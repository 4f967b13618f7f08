"""MLflow to tables: the metrics of our runs, read fast, each value once, and never written.

Two ways behind one call. A sqlite store whose tables are the ones known here is read with
the standard library (reader_sqlite.py): one query, no MLflow import, which takes seconds.
Anything else goes through MLflow's own interface (reader_client.py). Both keep what they read,
for the life of the process, and ask for what is new.

Both give the same rows: one a run, agent, metric and step; of steps that a resumed run wrote again
the later attempt (attempts.py). What MLflow stores as the largest float is infinity again, and NaN is NaN.
"""

import threading

import pandas as pd

from corl_core.tracking import reader_sqlite
from corl_core.tracking.errors import TrackingUnavailable
from corl_core.tracking.reader_client import ClientStore
from corl_core.tracking.reader_rows import HISTORY_COLUMNS, table
from corl_core.tracking.reader_sqlite import SqliteStore

__all__ = ["HISTORY_COLUMNS", "LATEST_COLUMNS", "TrackingUnavailable", "history", "latest", "tags"]

LATEST_COLUMNS = ["run_id", "agent", "metric", "step", "value"]
_stores: dict[str, SqliteStore | ClientStore] = {}
_lock = threading.Lock()


def history(uri: str, run_ids: list[str], keys: list[str] | None = None) -> pd.DataFrame:
    """Every logged value: run_id, agent ("" for the cohort), metric, step, value, time, attempt.

    `keys` are exact metric names; one that ends in "*" is a prefix; None is all. `time` is unix seconds; `attempt`
    counts how often the run had been resumed. Steps ascend in each line.
    Raises TrackingUnavailable when the store can't be read; a run it doesn't hold has no rows.
    """
    if not run_ids:
        return table([])
    return _store(uri).history(run_ids, keys)


def latest(uri: str, run_ids: list[str], keys: list[str] | None = None) -> pd.DataFrame:
    """The value at the greatest step of each metric: run_id, agent, metric, step, value."""
    rows = _store(uri).latest(run_ids, keys) if run_ids else []
    frame = pd.DataFrame(rows, columns=LATEST_COLUMNS).astype({"step": "int64", "value": "float64"})
    return frame.sort_values(LATEST_COLUMNS[:3], ignore_index=True)


def tags(uri: str, run_ids: list[str]) -> dict[str, dict[str, str]]:
    """Run id → the MLflow tags of its cohort; a run that the store doesn't hold is left out."""
    return _store(uri).tags(run_ids) if run_ids else {}


def _store(uri: str) -> SqliteStore | ClientStore:
    with _lock:
        if uri not in _stores:
            _stores[uri] = SqliteStore(uri) if reader_sqlite.knows(uri) else ClientStore(uri)
        return _stores[uri]
