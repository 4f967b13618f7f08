"""Reads any MLflow store through MlflowClient: one request a run, agent and metric.

This is the way to a tracking server. Its cost is about 70 ms a line over HTTP, so pages ask
for few metrics and keep what they got.
"""

import socket
from typing import Any
from urllib.parse import urlsplit

from corl_core.tracking.reader_rows import TrackingUnavailable, restored, wanted

EXPERIMENT = "corl"
CONNECT_TIMEOUT_S = 3.0


def history(uri: str, run_ids: list[str], keys: list[str] | None, after_step: int | None) -> list[tuple]:
    """Rows of run_id, agent, metric, step, value, time."""
    client = _client(uri)
    rows = []
    for owner, run in _runs(uri, client, run_ids):
        for name in wanted(run.data.metrics, keys):
            points = _asked(uri, client.get_metric_history, run.info.run_id, name)
            rows += [_row(owner, point) for point in points if _later(point, after_step)]
    return rows


def latest(uri: str, run_ids: list[str], keys: list[str] | None) -> list[tuple]:
    """The same rows, of the greatest step only."""
    rows = []
    for owner, run in _runs(uri, _client(uri), run_ids):
        names = set(wanted(run.data.metrics, keys))
        rows += [_row(owner, point) for point in run.data.to_proto().metrics if point.key in names]
    return rows


def _runs(uri: str, client: Any, run_ids: list[str]) -> list[tuple[tuple[str, str], Any]]:
    """((our run id, agent), MLflow run) of every run that is not deleted in MLflow."""
    experiment = _asked(uri, client.get_experiment_by_name, EXPERIMENT)
    if experiment is None:
        return []
    found = []
    for run_id in run_ids:
        where = f"tags.`corl.run_id` = '{run_id}'"
        for run in _asked(uri, client.search_runs, [experiment.experiment_id], where):
            found.append(((run_id, run.data.tags.get("corl.agent", "")), run))
    return found


def _row(owner: tuple[str, str], point: Any) -> tuple:
    value = restored(point.value, point.value != point.value)
    return (*owner, point.key, point.step, value, point.timestamp / 1000)


def _later(point: Any, after_step: int | None) -> bool:
    return after_step is None or point.step > after_step


def _client(uri: str) -> Any:
    _check_reachable(uri)
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri=uri)


def _check_reachable(uri: str) -> None:
    """Fails within seconds: MLflow itself retries a dead server for minutes."""
    parts = urlsplit(uri)
    if parts.scheme not in ("http", "https"):
        return
    port = parts.port or (443 if parts.scheme == "https" else 80)
    try:
        socket.create_connection((parts.hostname or "", port), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        raise TrackingUnavailable(
            f"The tracking server {parts.hostname}:{port} does not answer ({error}). "
            "Check MLFLOW_TRACKING_URI and that the server runs."
        ) from error


def _asked(uri: str, call: Any, *arguments: Any) -> Any:
    from mlflow.exceptions import MlflowException

    try:
        return call(*arguments)
    except (MlflowException, OSError) as error:
        place = urlsplit(uri).hostname or uri
        raise TrackingUnavailable(f"The metrics store {place} can't be read: {error}") from error
