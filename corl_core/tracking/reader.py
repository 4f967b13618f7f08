"""MLflow to tables: the metrics of our runs, read fast and never written.

Two ways behind one call. A sqlite store whose tables are the ones known here is read with
the standard library (reader_sqlite.py): one query, no MLflow import, which takes seconds.
Anything else goes through MlflowClient (reader_client.py).

Both give the same rows: one a run, agent, metric and step, the last written winning; what
MLflow stores as the largest float is infinity again, and NaN is NaN.
"""

import pandas as pd

from corl_core.tracking import reader_client, reader_sqlite
from corl_core.tracking.reader_rows import TrackingUnavailable

__all__ = ["HISTORY_COLUMNS", "LATEST_COLUMNS", "TrackingUnavailable", "history", "latest"]

HISTORY_COLUMNS = ["run_id", "agent", "metric", "step", "value", "time"]
LATEST_COLUMNS = ["run_id", "agent", "metric", "step", "value"]


def history(
    uri: str,
    run_ids: list[str],
    keys: list[str] | None = None,
    after_step: int | None = None,
) -> pd.DataFrame:
    """Every logged value: run_id, agent ("" for the cohort), metric, step, value, time.

    `keys` are exact metric names; one that ends in "*" is a prefix; None is all. Only steps
    greater than `after_step`. `time` is unix seconds. Rows are in order of step in each line.
    Raises TrackingUnavailable when the store can't be read; a run it doesn't hold has no rows.
    """
    if not run_ids:
        return pd.DataFrame(columns=HISTORY_COLUMNS)
    rows = _source(uri).history(uri, run_ids, keys, after_step)
    return _tidy(rows, HISTORY_COLUMNS)


def latest(uri: str, run_ids: list[str], keys: list[str] | None = None) -> pd.DataFrame:
    """The value at the greatest step of each metric: run_id, agent, metric, step, value."""
    if not run_ids:
        return pd.DataFrame(columns=LATEST_COLUMNS)
    rows = _source(uri).latest(uri, run_ids, keys)
    return _tidy(rows, HISTORY_COLUMNS)[LATEST_COLUMNS]


def _source(uri: str):
    return reader_sqlite if reader_sqlite.knows(uri) else reader_client


def _tidy(rows: list[tuple], columns: list[str]) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=columns)
    frame = frame.astype({"step": "int64", "value": "float64", "time": "float64"})
    line = ["run_id", "agent", "metric", "step"]
    frame = frame.sort_values([*line, "time"], kind="stable")
    return frame.drop_duplicates(line, keep="last", ignore_index=True)
