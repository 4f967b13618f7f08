"""A run's alarms: rung as journals grow, written into its own journal, told to MLflow, worked out again by a command."""

import json
import signal
import time

import pytest

from corl_core.cli import main
from corl_core.config import ConfigError, load_config
from corl_core.metrics import describe
from corl_core.runs import launch, supervisor
from corl_core.runs.alarms import Bell, replayed
from corl_core.runs.folder import Run, Status, read_status, write_status
from corl_core.runs.journal import Journal, Tail
from corl_core.tracking.log import RunLogger, sync
from corl_core.tracking.store import EXPERIMENT, tracking_uri

EVIDENCE = {"parse_rate": 0.1, "parse_rate_first": 1.0}
STEPS = 45


def parse_rate(step: int) -> float:
    return 1.0 if step < 10 else 0.1


@pytest.fixture
def run(tmp_path) -> Run:
    """A finished run of two agents whose first one loses its answers after ten steps."""
    made = launch.create(load_config("demo-pair"), tmp_path)
    for agent in ("llama", "qwen2"):
        journal = Journal(made.agent_path(agent) / "journal.jsonl")
        for step in range(STEPS):
            rate = parse_rate(step) if agent == "llama" else 1.0
            metrics = {"parse_rate": rate, "vote_share": 0.7, "reward": 0.5, "step_time_s": 0.1}
            journal.write("step", step=step, metrics=metrics, votes=["1"], questions=[f"q{step}"], truths=[None])
    write_status(made.path, Status(state="finished", created=time.time(), ended=time.time()))
    return made


def test_a_bell_keeps_the_alarms_and_gives_their_lines():
    bell, written = Bell(load_config("demo-pair")), []
    for step in range(STEPS):
        written += bell.add("llama", {"event": "step", "step": step, "metrics": {"parse_rate": parse_rate(step)}})
    (line,) = written
    assert (line["event"], line["kind"], line["agent"], line["step"]) == ("alarm", "parse_drop", "llama", 34)
    (alarm,) = bell.alarms
    assert (alarm.kind, alarm.step, alarm.ended) == ("parse_drop", 34, None) and "An answer can be read from 10%" in alarm.text
    for step in range(STEPS, 120):
        written += bell.add("llama", {"event": "step", "step": step, "metrics": {"parse_rate": 1.0}})
    assert written[-1]["event"] == "alarm_end" and bell.alarms[0].ended == written[-1]["step"]


def test_a_bell_that_is_fed_again_tells_nothing_twice():
    config = load_config("demo-pair")
    lines = [{"event": "step", "step": step, "metrics": {"parse_rate": parse_rate(step)}} for step in range(STEPS)]
    first = Bell(config)
    told = [event for line in lines for event in first.add("llama", line)]
    again = Bell(config, told)
    assert [event for line in lines for event in again.add("llama", line)] == []
    assert again.alarms == first.alarms and len(again.alarms) == 1


def test_a_bell_is_silent_when_alarms_are_off():
    bell = Bell(load_config("demo-pair", ["alarms.action=off"]))
    assert all(bell.add("llama", {"event": "step", "step": s, "metrics": {"loss": float("nan")}}) == [] for s in range(3))


def test_the_window_and_the_kinds_to_ignore_are_settings():
    lines = [{"event": "step", "step": step, "metrics": {"parse_rate": parse_rate(step)}} for step in range(STEPS)]
    shorter = Bell(load_config("demo-pair", ["alarms.window=10"]))
    told = [event for line in lines for event in shorter.add("llama", line)]
    assert [event["step"] for event in told] == [19]  # the first window of ten without any of the first ten steps
    ignoring = Bell(load_config("demo-pair", ["alarms.ignore=[parse_drop]"]))
    assert not any(ignoring.add("llama", line) for line in lines)
    with pytest.raises(ConfigError, match=r"alarms\.ignore.*'parse_dorp'"):
        load_config("demo-pair", ["alarms.ignore=[parse_dorp]"])
    with pytest.raises(ConfigError, match=r"alarms\.window.*greater than or equal to 10"):
        load_config("demo-pair", ["alarms.window=9"])


def test_the_command_works_out_the_alarms_of_a_run_again(run, capsys):
    assert main(["alarms", run.id, "--runs", str(run.path.parent), "--json"]) == 0
    (alarm,) = json.loads(capsys.readouterr().out)["alarms"]
    assert (alarm["kind"], alarm["agent"], alarm["step"], alarm["ended"]) == ("parse_drop", "llama", 34, None)
    assert alarm["evidence"] == pytest.approx(EVIDENCE)
    assert main(["alarms", run.id, "--runs", str(run.path.parent)]) == 0
    assert f"{run.id}: 1 alarm\n  step 34  parse_drop  An answer can be read" in capsys.readouterr().out
    assert [alarm.kind for alarm in replayed(run)] == ["parse_drop"]


def test_status_and_results_tell_the_alarms(run, capsys):
    told = {"kind": "parse_drop", "agent": "llama", "step": 34, "evidence": EVIDENCE, "text": "unreadable", "ended": None}
    write_status(run.path, Status(state="finished", created=0.0, alarms=[told]))
    for verb in ("status", "results"):
        assert main([verb, run.id, "--runs", str(run.path.parent), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["alarms"] == [told]
    assert read_status(run.path).raised[0].title == "Answers unreadable"


def logged(run: Run, agent: str):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri(run.path.parent))
    experiment = client.get_experiment_by_name(EXPERIMENT)
    (found,) = client.search_runs([experiment.experiment_id], f"tags.`corl.agent` = '{agent}'")
    points = client.get_metric_history(found.info.run_id, "alarm/parse_drop")
    return [(point.step, point.value) for point in points], found.data.tags


def test_mlflow_has_an_alarm_once_with_its_step_and_evidence(run):
    journal = Journal(run.path / "journal.jsonl")
    journal.write("alarm", step=34, kind="parse_drop", agent="llama", evidence=EVIDENCE, text="unreadable")
    journal.write("alarm_end", step=44, kind="parse_drop", agent="llama")
    uri = tracking_uri(run.path.parent)
    sync(run, uri)
    logger = RunLogger(run, uri)
    logger._state["offsets"] = {}  # as if it had died before it could note what was logged
    logger.flush()
    points, tags = logged(run, "llama")
    assert sorted(points) == [(34, 1.0), (44, 0.0)]
    assert json.loads(tags["corl.alarm.parse_drop"]) == {"step": 34, "evidence": EVIDENCE}
    points, tags = logged(run, "qwen2")
    assert points == [] and not any(tag.startswith("corl.alarm") for tag in tags)
    assert describe("alarm/parse_drop").label == "Alarm: Answers unreadable"


class _Process:
    """An agent's process that runs for ever, and what it was sent."""

    exitcode, node, lost, hint = None, "", False, ""

    def __init__(self, sent: list[tuple[int, bool]]):
        self.sent = sent

    def signal(self, number: int, alone: bool = False) -> None:
        self.sent.append((number, alone))


@pytest.fixture
def watched(run):
    """A function: the supervisor of `run`, as it is once it has read the journals, and the signals that it sent."""
    sent: list[tuple[int, bool]] = []

    def made(action: str):
        config = load_config("demo-pair", [f"alarms.action={action}"])
        (run.path / "run.yaml").write_text(config.to_yaml())
        write_status(run.path, Status(state="starting", created=time.time()))  # no supervisor may touch what has ended
        watching = supervisor.Supervisor(Run(run.path))
        watching._journal = Journal(run.path / "journal.jsonl")
        watching._cohort, watching._bell = supervisor.CohortMetrics(config), Bell(config)
        tails = {agent.name: Tail(run.agent_path(agent.name) / "journal.jsonl") for agent in config.agents}
        watching._agents = {name: supervisor._Agent(_Process(sent), tail) for name, tail in tails.items()}
        watching._read_journals()
        watching._beat()
        return watching, sent

    return made


@pytest.mark.parametrize(("action", "signals", "stops"), [("warn", 0, False), ("checkpoint", 2, False), ("stop", 0, True)])
def test_a_supervisor_does_what_the_run_asks_for(watched, run, action, signals, stops):
    watching, sent = watched(action)
    assert watching.stop_requested is stops
    assert sent == [(signal.SIGUSR1, True)] * signals  # both agents save, and only they
    lines = [line for line in Tail(run.path / "journal.jsonl").read() if line["event"] == "alarm"]
    assert [(line["kind"], line["agent"], line["step"]) for line in lines] == [("parse_drop", "llama", 34)]
    assert [alarm.kind for alarm in read_status(run.path).raised] == ["parse_drop"]
    assert watching._stop_reason.startswith("alarm parse_drop at step 34: An answer can be read") is stops


@pytest.mark.parametrize(("method", "ends"), [("corl", False), ("ttrl", False), ("ground_truth", True)])
def test_what_was_seen_by_true_answers_ends_supervised_runs_alone(method, ends):
    bell, written = Bell(load_config("demo", [f"method={method}"])), []
    for number, majority in enumerate((0.8, 0.7, 0.7)):
        step = 20 * number
        written += bell.add("llama", {"event": "step", "step": step, "metrics": {"vote_share": 0.95}})
        written += bell.add("llama", {"event": "eval", "step": step, "metrics": {"eval/majority_accuracy": majority}})
    (line,) = written
    assert line["kind"] == "label_lock_in" and line["uses_truth"] and bell.alarms[0].uses_truth
    assert (bell.first_that_ends([line]) is line) is ends
    other = {"event": "alarm", "kind": "parse_drop", "agent": "llama", "step": 40, "evidence": {}, "text": "unreadable"}
    assert bell.first_that_ends([line, other]) is (line if ends else other)


@pytest.mark.training
def test_a_run_that_is_told_to_stops_itself_and_names_the_alarm(small_run, tmp_path, monkeypatch):
    """Every step sets off an alarm here: a window of ten steps, and a limit that any completion's length exceeds."""
    from corl_core.alarms import lengths

    monkeypatch.setattr(lengths, "CLIPPED", -1.0)
    config = small_run(alarms__action="stop", alarms__window=10, grpo__max_steps=400, eval__num_questions=0)
    status = supervisor.Supervisor(launch.create(config, tmp_path)).run()
    assert status.state == "stopped" and status.reason.startswith("alarm length_blow_up at step 9: ")
    assert 10 <= status.step < 400 and status.raised[0].agent in ("a", "b")


@pytest.mark.training
def test_an_alarm_can_save_the_weights_and_training_goes_on(small_run, tmp_path, monkeypatch):
    from corl_core.alarms import lengths

    monkeypatch.setattr(lengths, "CLIPPED", -1.0)
    config = small_run(alarms__action="checkpoint", grpo__max_steps=60, eval__num_questions=0)
    run = launch.create(config, tmp_path)
    assert supervisor.Supervisor(run).run().state == "finished"
    for agent in ("a", "b"):
        saved = list((run.agent_path(agent) / "weights").glob("step-*/model.safetensors"))
        assert saved, f"{agent} saved nothing"
