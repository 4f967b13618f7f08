"""Journals → MLflow. Only a run's supervisor (or `sync`) writes, in batches, from what the journals say.

One parent run a cohort, one child run an agent. What has been logged is remembered as byte offsets into the journals in
tracking.json, written after MLflow has confirmed; a line logged twice after a crash is the same row with the same time
stamp, which MLflow keeps once, and a run that MLflow made before it could be noted is found by its tags. When MLflow is down or
slow the journals simply wait.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from corl_core.config import RunConfig
from corl_core.runs.folder import QUEUED, Run, Status, locked, write_atomically
from corl_core.runs.journal import Tail, whole_bytes
from corl_core.runs.settle import mark_told, settle
from corl_core.security import masked
from corl_core.tracking.run_tags import filter_of, run_tags
from corl_core.tracking.store import EXPERIMENT, ensure_store, tracking_uri

INTERVAL_S = 2.0
RETRY_S = 5.0
BATCH = 1000  # MLflow's limit on metrics in one call
LINES_AT_ONCE = 30  # journal lines in one call; a line holds about 25 metrics
TAG_LENGTH = 5000  # the least that MLflow's stores take
MLFLOW_STATES = {"finished": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}


class TrackingError(RuntimeError):
    """A tracking store that cannot be logged into; the text says which and what to do."""


class RunLogger:
    """Logs one run into one tracking store, from where it left off."""

    def __init__(self, run: Run, uri: str):
        self.run, self.uri = run, uri
        self._path = run.path / "tracking.json"
        self._state: dict[str, Any] = {}
        self._client: Any = None
        self._load()

    def flush(self) -> None:
        """Logs every whole journal line not yet logged. Raises whatever MLflow raises; nothing is lost by that."""
        with self._alone():
            self._flush()

    def _flush(self) -> None:
        self._connect()
        for agent, path in self.run.journal_paths().items():
            tail = Tail(path, self._state["offsets"].get(agent, 0))
            while lines := tail.read(LINES_AT_ONCE):
                self._log(self._state["runs"][agent], lines)
                self._state["offsets"][agent] = tail.offset
                self._save()

    def rewind(self) -> None:
        """Before anybody writes on: a journal that has lost lines, with the machine say, is logged again from its beginning."""
        paths = self.run.journal_paths()
        lost = [agent for agent, offset in self._state["offsets"].items() if offset > whole_bytes(paths[agent])]
        if lost:
            self._state["offsets"] |= dict.fromkeys(lost, 0)
            self._save()

    def reopen(self) -> None:
        """Marks the MLflow runs as running again: the run is resumed."""
        with self._alone():
            self._connect()
            for run_id in self._state["runs"].values():
                self._client.update_run(run_id, status="RUNNING")
                self._client.set_tag(run_id, "corl.attempt", str(self.run.status().attempt))

    def end(self, status: Status) -> None:
        """Closes the MLflow runs with the state that the run ended in."""
        with self._alone():
            self._connect()
            self._close(status)

    def _close(self, status: Status) -> None:
        for run_id in self._state["runs"].values():
            self._client.set_tag(run_id, "corl.state", status.state)
            if status.reason:
                self._client.set_tag(run_id, "corl.reason", masked(status.reason)[:500])
            if status.cause:
                self._client.set_tag(run_id, "corl.cause", status.cause)
            self._client.set_terminated(run_id, MLFLOW_STATES[status.state], int((status.ended or time.time()) * 1000))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No two processes log one run at once; each goes on where the other left off. A folder that was deleted is nobody's."""
        if not self.run.is_there:
            yield
            return
        lock = self.run.path / ".tracking.lock"
        with suppress(FileExistsError):
            lock.touch(exist_ok=False)
        with locked(lock):
            self._load()
            yield

    def _load(self) -> None:
        everything = json.loads(self._path.read_text()) if self._path.exists() else {}
        self._state = everything.get(masked(self.uri, {}), self._state or {"runs": {}, "offsets": {}})

    def _connect(self) -> None:
        if self._client is None:
            self._client = ensure_store(self.uri, self.run.path.parent)
            self._forget_a_store_that_was_remade()
        config = self.run.config
        if len(self._state["runs"]) < 1 + len(config.agents):
            self._create_runs(config)
        if not self._state.get("params"):
            self._log_params(config)
            self._state["params"] = True
            self._save()

    def _forget_a_store_that_was_remade(self) -> None:
        """Starts over when the store does not have the runs that were made in it."""
        from mlflow.exceptions import MlflowException

        try:
            for run_id in self._state["runs"].values():
                self._client.get_run(run_id)
        except MlflowException as error:
            if error.error_code != "RESOURCE_DOES_NOT_EXIST":
                raise
            self._state = {"runs": {}, "offsets": {}}
            self._save()

    def _create_runs(self, config: RunConfig) -> None:
        experiment = self._client.get_experiment_by_name(EXPERIMENT).experiment_id
        for agent in ["", *(agent.name for agent in config.agents)]:
            if agent not in self._state["runs"]:
                tags = run_tags(self.run, agent, self._state["runs"].get(""))
                name = f"{config.name} · {agent}" if agent else config.name
                started = int(self.run.status().created * 1000)
                known = self._client.search_runs([experiment], filter_of(tags))
                made = known or [self._client.create_run(experiment, start_time=started, tags=tags, run_name=name)]
                mine = made[0].info.run_id
                for other in self._client.search_runs([experiment], filter_of(tags)):
                    if other.info.run_id != mine:  # MLflow made one and failed to say so; the request was repeated
                        self._client.delete_run(other.info.run_id)
                self._state["runs"][agent] = mine
                self._save()

    def _log_params(self, config: RunConfig) -> None:
        from mlflow.entities import Param

        params = [Param(key, str(value)[:6000]) for key, value in config.flat().items()]
        for start in range(0, len(params), 100):  # MLflow's limit on parameters in one call
            self._client.log_batch(self._state["runs"][""], params=params[start : start + 100])

    def _log(self, run_id: str, lines: list[dict[str, Any]]) -> None:
        from mlflow.entities import Metric

        metrics = [
            Metric(name, value, int(line["time"] * 1000), line["step"])
            for line in lines
            for name, value in line.get("metrics", {}).items()
        ]
        for start in range(0, len(metrics), BATCH):
            self._client.log_batch(run_id, metrics=metrics[start : start + BATCH])
        for line in lines:
            if line["event"] in ("alarm", "alarm_end"):
                self._log_alarm(line)
            if line["event"] == "checkpoint":
                for key in ("rule", "step", "value", "uses_truth"):
                    self._client.set_tag(run_id, f"corl.checkpoint.{key}", str(line[key]))

    def _log_alarm(self, line: dict[str, Any]) -> None:
        """On the agent's run: `alarm/<kind>` is 1 at the step that raised it and 0 where it ended; the evidence is a tag."""
        from mlflow.entities import Metric

        run_id, kind, raised = self._state["runs"][line["agent"]], line["kind"], line["event"] == "alarm"
        self._client.log_batch(run_id, [Metric(f"alarm/{kind}", float(raised), int(line["time"] * 1000), line["step"])])
        if raised:
            told = {"step": line["step"], "evidence": line["evidence"]}
            self._client.set_tag(run_id, f"corl.alarm.{kind}", json.dumps(told)[:TAG_LENGTH])

    def _save(self) -> None:
        if not self.run.is_there:
            return
        everything = json.loads(self._path.read_text()) if self._path.exists() else {}
        write_atomically(self._path, json.dumps(everything | {masked(self.uri, {}): self._state}))


class Tracker(threading.Thread):
    """The supervisor's logging thread: it may fail or hang as MLflow does, and training goes on."""

    def __init__(self, run: Run):
        super().__init__(daemon=True, name="tracker")
        self._run, self._uri = run, tracking_uri(run.path.parent)
        self._ended: Status | None = None
        self._logger = RunLogger(self._run, self._uri)
        self._logger.rewind()
        self._wake, self.done = threading.Event(), threading.Event()

    def run(self) -> None:
        logger, told = self._logger, False
        reopen = self._run.status().attempt > 1
        while True:
            ended = self._ended
            try:
                if reopen:
                    logger.reopen()
                    reopen = False
                logger.flush()
                if ended is not None:
                    logger.end(ended)
                    self.done.set()
                    return
                delay, told = INTERVAL_S, False
            except Exception as error:  # MLflow raises many kinds; each means: try again later
                if not self._run.is_there:
                    return  # deleted before MLflow had heard of it
                if not told:
                    _say(f"{masked(self._uri)} does not answer, will retry: {masked(str(error)[:300])}")
                delay, told = RETRY_S, True
            self._wake.wait(delay if ended is None else min(delay, 1.0))
            self._wake.clear()

    def finish(self, status: Status, timeout_s: float, is_followed: Callable[[], bool] = lambda: False) -> bool:
        """Logs what is left and closes the MLflow runs; False when MLflow did not answer in time (see `sync`), or another
        supervisor goes on with the run."""
        if find_spec("mlflow") is None:
            _say("the package mlflow is not installed; nothing was logged")
            return False
        self._ended = status
        if self.ident is None:
            self.start()
        self._wake.set()
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline and self.is_alive() and not is_followed():
            if self.done.wait(min(0.5, max(0.0, deadline - time.monotonic()))):
                return True
        if self.done.is_set():
            return True
        _say(f"{masked(self._uri)} did not answer; run 'python -m corl_core sync {self._run.id}' when it is back")
        return False


def _say(text: str) -> None:
    """Into the supervisor's log, if there is room."""
    with suppress(OSError):
        print(f"tracking: {text}", flush=True)


def sync(run: Run, uri: str) -> int:
    """Logs into `uri` what it does not have of this run yet; returns the number of journal lines it has now.

    A run that has ended is closed there with its state. Raises TrackingError.
    """
    if run.status().state == QUEUED:
        raise TrackingError(f"{run.id} waits in the queue: there is nothing to log before it starts")
    logger = RunLogger(run, uri)
    try:
        logger.flush()
        if (status := settle(run)).final:
            logger.end(status)
            if uri == tracking_uri(run.path.parent):
                mark_told(run, status.attempt)
    except Exception as error:  # MLflow's many kinds, its drivers' and the network's
        why = masked(" ".join(str(error).split()))[:300]
        remedy = "check MLFLOW_TRACKING_URI and try again, nothing is lost"
        raise TrackingError(f"cannot log into {masked(uri)}: {why}; {remedy}") from error
    return sum(len(Tail(path).read()) for path in run.journal_paths().values())
