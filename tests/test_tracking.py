"""Journals → MLflow: complete, once, whatever MLflow does meanwhile."""

import json
import time
from dataclasses import replace

import pytest

from corl_core.config import load_config
from corl_core.runs import launch
from corl_core.runs.folder import Run, read_status, write_status
from corl_core.runs.journal import Journal
from corl_core.tracking import log
from corl_core.tracking.log import RunLogger, Tracker, TrackingError, sync
from corl_core.tracking.store import EXPERIMENT, tracking_uri

STEPS = 70  # more than fits one call


@pytest.fixture
def run(tmp_path) -> Run:
    """A finished run, as its journals tell it."""
    made = launch.create(load_config("demo-pair", ["seed=3", "notes=hello"]), tmp_path)
    for index, path in enumerate(made.journal_paths().values()):
        journal = Journal(path)
        journal.write("phase", phase="loading")
        for step in range(STEPS):
            journal.write("step", step=step, metrics={"reward": step / 10 + index, "error_overlap/kappa/llama.qwen2": -0.5})
        journal.write("eval", step=STEPS, metrics={"eval/accuracy": 0.5, "loss": float("nan"), "grad_norm": float("inf")})
    write_status(made.path, replace(read_status(made.path), state="stopped", ended=time.time(), pid=1, pid_created=0.0))
    return made


def logged(run: Run, uri: str):
    """agent → its MLflow run ('' for the cohort)."""
    from mlflow import MlflowClient

    client = MlflowClient(uri)
    experiment = client.get_experiment_by_name(EXPERIMENT)
    found = client.search_runs([experiment.experiment_id], f"tags.`corl.run_id` = '{run.id}'")
    return client, {made.data.tags.get("corl.agent", ""): made for made in found}


def test_a_cohort_is_one_parent_with_a_child_an_agent(run):
    uri = tracking_uri(run.path.parent)
    sync(run, uri)
    _, made = logged(run, uri)
    assert set(made) == {"", "llama", "qwen2"}
    for agent in ("llama", "qwen2"):
        assert made[agent].data.tags["mlflow.parentRunId"] == made[""].info.run_id
        assert made[agent].data.tags["corl.families"] == f"tiny:{agent}"
    tags = made[""].data.tags
    assert (tags["corl.method"], tags["corl.preset"], tags["corl.seed"]) == ("corl", "demo-pair", "3")
    assert tags["corl.families"] == "tiny:llama × tiny:qwen2" and tags["mlflow.note.content"] == "hello"
    assert made[""].data.params["grpo.num_generations"] == str(run.config.grpo.num_generations)
    assert {made[agent].info.status for agent in made} == {"KILLED"}


def test_every_value_is_there_once_with_its_step(run):
    uri = tracking_uri(run.path.parent)
    sync(run, uri)
    client, made = logged(run, uri)
    for index, agent in enumerate(["", "llama", "qwen2"]):
        history = client.get_metric_history(made[agent].info.run_id, "reward")
        assert sorted((point.step, point.value) for point in history) == [(step, step / 10 + index) for step in range(STEPS)]
        (last,) = client.get_metric_history(made[agent].info.run_id, "eval/accuracy")
        assert (last.step, last.value) == (STEPS, 0.5)


def test_logging_again_after_a_crash_doubles_nothing(run):
    uri = tracking_uri(run.path.parent)
    logger = RunLogger(run, uri)
    logger.flush()
    logger._state["offsets"] = {}  # as if the process had died before it could note what was logged
    logger._save()
    sync(run, uri)
    client, made = logged(run, uri)
    assert len(client.get_metric_history(made["llama"].info.run_id, "reward")) == STEPS
    assert len(made) == 3


def test_a_run_can_be_replayed_into_another_store(run, tmp_path):
    first, second = tracking_uri(run.path.parent), f"sqlite:///{tmp_path / 'other.db'}"
    assert sync(run, first) == sync(run, second) == 3 * (STEPS + 2)
    for uri in (first, second):
        client, made = logged(run, uri)
        assert len(client.get_metric_history(made["qwen2"].info.run_id, "reward")) == STEPS


def test_runs_that_a_store_does_not_know_are_made_anew(run, tmp_path):
    uri = f"sqlite:///{tmp_path / 'other.db'}"
    sync(run, uri)
    state = json.loads((run.path / "tracking.json").read_text())
    state[uri]["runs"] = {agent: "0" * 32 for agent in state[uri]["runs"]}
    (run.path / "tracking.json").write_text(json.dumps(state))
    sync(run, uri)
    client, _ = logged(run, uri)
    newest = json.loads((run.path / "tracking.json").read_text())[uri]["runs"]
    assert len(client.get_metric_history(newest["llama"], "reward")) == STEPS


def test_params_that_failed_at_first_are_logged_later(run, monkeypatch):
    uri, real = tracking_uri(run.path.parent), RunLogger._log_params

    def failing(self, config):
        raise ConnectionError("gone")

    monkeypatch.setattr(RunLogger, "_log_params", failing)
    with pytest.raises(ConnectionError):
        RunLogger(run, uri).flush()
    monkeypatch.setattr(RunLogger, "_log_params", real)
    sync(run, uri)
    _, made = logged(run, uri)
    assert made[""].data.params["seed"] == "3"


@pytest.mark.parametrize("uri", ["http://127.0.0.1:9", "file:///no/such/folder"])
def test_a_store_that_cannot_be_used_is_one_sentence(run, uri):
    with pytest.raises(TrackingError, match=f"cannot log into {uri}: .*check MLFLOW_TRACKING_URI"):
        sync(run, uri)


def test_a_store_that_comes_back_gets_everything(run, monkeypatch, capfd):
    """MLflow refuses the first calls; the tracker tries again, and says so once."""
    uri, refusals, real = tracking_uri(run.path.parent), [0], log.ensure_store

    def refusing(uri, runs_dir):
        refusals[0] += 1
        if refusals[0] <= 3:
            raise ConnectionError("refused")
        return real(uri, runs_dir)

    monkeypatch.setattr(log, "ensure_store", refusing)
    monkeypatch.setattr(log, "RETRY_S", 0.05)
    tracker = Tracker(run)
    tracker.start()
    assert tracker.finish(run.status(), timeout_s=30)
    assert capfd.readouterr().out.count("will retry") == 1
    client, made = logged(run, uri)
    assert len(client.get_metric_history(made["llama"].info.run_id, "reward")) == STEPS


def test_a_store_that_stays_away_holds_nobody_up(run, monkeypatch, capfd):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")  # nothing listens there
    tries, flush = [], RunLogger.flush
    monkeypatch.setattr(RunLogger, "flush", lambda self: tries.append(1) or flush(self))
    tracker = Tracker(run)
    tracker.start()
    start = time.monotonic()
    assert not tracker.finish(run.status(), timeout_s=2)
    assert len(tries) <= 5, "it must wait between tries"
    assert time.monotonic() - start < 4
    assert f"run 'python -m corl_core sync {run.id}'" in capfd.readouterr().out


@pytest.mark.training
def test_training_without_mlflow_ends_well_and_is_logged_later(small_run, tmp_path, monkeypatch):
    from corl_core.runs import supervisor

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setattr(supervisor, "MLFLOW_GRACE_S", 1.0)
    run = launch.create(small_run(), tmp_path)
    assert supervisor.Supervisor(run).run().state == "finished"
    uri = f"sqlite:///{tmp_path / 'later.db'}"
    sync(run, uri)
    client, made = logged(run, uri)
    assert len(client.get_metric_history(made["a"].info.run_id, "reward_std")) >= 1
    assert len(client.get_metric_history(made[""].info.run_id, "agreement")) == run.config.grpo.max_steps
    assert {m.info.status for m in made.values()} == {"FINISHED"}
