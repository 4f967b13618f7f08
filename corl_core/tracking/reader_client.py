"""Reads any MLflow store through its public interface; this is the way to a tracking server.

A search tells which MLflow runs are ours and the last step of each of their metrics. Lines that have not moved since are
not asked for again; those that have are asked for from their next step, and whole once in a while, because a run that was
resumed writes earlier steps again. A server gives many lines a request (reader_http.py), other stores one a call.
"""

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pandas as pd

from corl_core.security import masked
from corl_core.tracking.errors import TrackingUnavailable
from corl_core.tracking.reader_rows import Written, in_time, restored, table, wanted

EXPERIMENT = "corl"
CONNECT_TIMEOUT_S = 3.0
WHOLE_AGAIN_S = 30.0
FEW = 3  # runs that are searched for one by one; MLflow can't search for a list of tags, so more are found among all


class ClientStore:
    """One store; safe to share between threads."""

    def __init__(self, uri: str):
        self.uri = uri
        self._lock = threading.Lock()
        self._owners: dict[str, tuple[str, str]] = {}  # MLflow run → (our run id, agent)
        self._over: dict[str, Any] = {}  # MLflow run → its record, once it has ended: it will not move
        self._lines: dict[tuple[str, str], Written] = {}
        self._seen: dict[tuple[str, str], tuple[int, int, float]] = {}  # line → last step, its time, when it was read whole
        self._client: Any = None

    def history(self, run_ids: list[str], keys: list[str] | None) -> pd.DataFrame:
        """Every value of the runs, as reader.history gives it."""
        with self._lock:
            asked: dict[tuple[str, str], Any] = {}
            for uuid, run in self._runs(run_ids):
                points = {point.key: point for point in run.data.to_proto().metrics}
                asked |= {(uuid, name): points[name] for name in wanted(points, keys)}
            self._refresh(asked)
            lines = [line for line in asked if line in self._lines]
            return table([((*self._owners[uuid], name), self._lines[uuid, name]) for uuid, name in lines])

    def latest(self, run_ids: list[str], keys: list[str] | None) -> list[tuple]:
        """Rows of run_id, agent, metric, step, value of the greatest step."""
        rows = []
        with self._lock:
            for uuid, run in self._runs(run_ids):
                points = run.data.to_proto().metrics
                names = set(wanted((point.key for point in points), keys))
                owner = self._owners[uuid]
                rows += [(*owner, point.key, point.step, _number(point.value)) for point in points if point.key in names]
        return rows

    def tags(self, run_ids: list[str]) -> dict[str, dict[str, str]]:
        """Run id → the tags of its cohort."""
        with self._lock:
            owned = [(self._owners[uuid], run) for uuid, run in self._runs(run_ids)]
        return {run_id: dict(run.data.tags) for (run_id, agent), run in owned if not agent}

    def _refresh(self, asked: dict[tuple[str, str], Any]) -> None:
        """Reads what has moved of the lines asked for, whose latest points these are."""
        now = time.monotonic()
        starts: dict[tuple[str, str], tuple[int, int]] = {}
        for line, point in asked.items():
            last, stamp, whole = self._seen.get(line, (-1, -1, -WHOLE_AGAIN_S))
            if (last, stamp) != (point.step, point.timestamp):
                start = 0 if now - whole > WHOLE_AGAIN_S or point.step <= last else last + 1
                starts[line] = (start, point.step)
        for line, new in self._read(starts).items():
            old = self._lines.get(line)
            self._lines[line] = new if old is None or starts[line][0] == 0 else old.then(new)
        for line, (start, _) in starts.items():
            whole = now if start == 0 else self._seen[line][2]
            self._seen[line] = (asked[line].step, asked[line].timestamp, whole)

    def _read(self, starts: dict[tuple[str, str], tuple[int, int]]) -> dict[tuple[str, str], Written]:
        if not starts:
            return {}
        if urlsplit(self.uri).scheme in ("http", "https"):
            from mlflow.tracking._tracking_service.utils import _get_store

            from corl_core.tracking.reader_http import bulk

            return _asked(self.uri, bulk, _get_store(self.uri).get_host_creds(), starts)
        found = {}
        for (uuid, name), (start, _) in starts.items():
            points = _asked(self.uri, self._connected().get_metric_history, uuid, name)
            rows = [(p.step, p.value, p.value != p.value, p.timestamp) for p in points if p.step >= start]
            found[uuid, name] = in_time(rows)
        return found

    def _runs(self, run_ids: list[str]) -> Iterator[tuple[str, Any]]:
        """(MLflow run, its record) of every run that is not deleted in MLflow; one that has ended is asked for once."""
        client, ours = self._connected(), set(run_ids)
        found = {uuid: run for uuid, run in self._over.items() if self._owners[uuid][0] in ours}
        experiment = _asked(self.uri, client.get_experiment_by_name, EXPERIMENT)
        if experiment is None:
            return
        settled = {self._owners[uuid][0] for uuid in found if not self._owners[uuid][1]}
        moving = sorted(run_id for run_id in ours - settled if "'" not in run_id)
        wheres = [f"= '{run_id}'" for run_id in moving] if len(moving) <= FEW else ["LIKE '%'"]
        for where in wheres:
            for run in self._search(experiment.experiment_id, f"tags.`corl.run_id` {where}"):
                uuid, tags = run.info.run_id, run.data.tags
                self._owners[uuid] = (tags["corl.run_id"], tags.get("corl.agent", ""))
                if tags["corl.run_id"] in ours:
                    found[uuid] = run
        cohorts_over = {self._owners[uuid][0] for uuid, run in found.items() if not self._owners[uuid][1] and run.info.end_time}
        for uuid, run in found.items():
            if self._owners[uuid][0] in cohorts_over:
                self._over[uuid] = run
            yield uuid, run

    def _search(self, experiment_id: str, where: str) -> Iterator[Any]:
        token = None
        while True:
            page = _asked(self.uri, self._client.search_runs, [experiment_id], where, 1, 1000, None, token)
            yield from page
            if not (token := page.token):
                return

    def _connected(self) -> Any:
        _check_reachable(self.uri)
        if self._client is None:
            from mlflow import MlflowClient

            self._client = MlflowClient(tracking_uri=self.uri)
        return self._client


def _number(value: float) -> float:
    return restored(value, value != value)


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
        raise TrackingUnavailable(masked(f"The metrics store {place} can't be read: {error}")) from error
