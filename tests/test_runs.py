"""Run folders, journals and states, without training."""

import json
import os
import shutil
import time

import psutil
import pytest

from corl_core.config import load_config
from corl_core.runs import folder, launch
from corl_core.runs.cohort import WINDOW, CohortMetrics
from corl_core.runs.folder import Run, RunNotFound, Status, all_runs, find_run, find_runs, start_of, write_status
from corl_core.runs.inside import make_folder
from corl_core.runs.journal import Journal, Tail
from corl_core.runs.labels import rename
from corl_core.runs.supervisor import GRACE_S, Supervisor, _Agent
from corl_core.training.recorder import Recorder


@pytest.fixture
def run(tmp_path) -> Run:
    return launch.create(load_config("demo-pair"), tmp_path)


def test_a_tail_reads_whole_lines_only_and_goes_on_where_it_was(tmp_path):
    path = tmp_path / "journal.jsonl"
    tail, journal = Tail(path), Journal(path)
    assert tail.read() == []
    journal.write("step", step=0, metrics={"x": float("nan")})
    journal.write("step", step=1, metrics={"x": float("inf")})
    with path.open("a") as file:
        file.write('{"event": "step", "step": 2')
    lines = tail.read()
    assert [line["step"] for line in lines] == [0, 1]
    assert lines[0]["metrics"]["x"] != lines[0]["metrics"]["x"] and lines[1]["metrics"]["x"] == float("inf")
    assert tail.read() == []
    with path.open("a") as file:
        file.write("}\n")
    assert [line["step"] for line in tail.read()] == [2]


def test_a_tail_reads_in_portions(tmp_path):
    journal = Journal(tmp_path / "j.jsonl")
    for step in range(5):
        journal.write("step", step=step)
    tail = Tail(tmp_path / "j.jsonl")
    assert [[line["step"] for line in tail.read(2)] for _ in range(4)] == [[0, 1], [2, 3], [4], []]


def test_a_new_run_is_starting_and_knows_its_configuration(run):
    assert run.status().state == "starting"
    assert run.config == load_config("demo-pair")


def test_a_run_whose_supervisor_is_gone_has_failed(run):
    me = psutil.Process()
    alive = Status("running", time.time(), pid=me.pid, pid_created=start_of(me), heartbeat=time.time())
    write_status(run.path, alive)
    assert run.status().state == "running"
    for pid, created in ((me.pid, start_of(me) - 100), (2**22 + 1, start_of(me))):  # a reused pid; no such pid
        write_status(run.path, Status("running", time.time(), pid=pid, pid_created=created, heartbeat=time.time()))
        assert (run.status().state, run.status().reason) == ("failed", "the supervisor was killed")


def test_a_final_state_stays_whatever_happened_to_the_process(run):
    write_status(run.path, Status("finished", time.time(), pid=2**22 + 1, pid_created=0.0))
    assert run.status().state == "finished"


def test_a_supervisor_that_never_came_up_has_failed(run):
    write_status(run.path, Status("starting", time.time() - folder.STARTED_WITHIN_S - 1))
    assert run.status().state == "failed"


def test_a_run_without_heartbeat_is_stalled_and_a_stop_shows_at_once(run):
    me = psutil.Process()
    claim = Status("running", time.time(), pid=me.pid, pid_created=start_of(me), heartbeat=time.time())
    write_status(run.path, claim)
    launch.stop(run)
    assert run.status().state == "stopping"
    write_status(run.path, Status(**{**claim.__dict__, "heartbeat": time.time() - folder.STALLED_AFTER_S - 1}))
    assert run.status().state == "stalled"


def test_a_damaged_status_is_told_not_raised(run):
    (run.path / "status.json").write_text('{"state": "runn')
    assert run.status().state == "failed" and "damaged" in run.status().reason


def test_time_left_follows_the_pace():
    status = Status("running", 0.0, step=10, max_steps=40, started=100.0, heartbeat=120.0)
    assert status.seconds_left == 60.0
    assert Status("running", 0.0, step=0, max_steps=40, started=100.0, heartbeat=120.0).seconds_left is None


def test_runs_are_found_by_id_start_or_name(tmp_path):
    first = launch.create(load_config("demo-pair"), tmp_path)
    second = launch.create(load_config("demo-pair", ["name=other"]), tmp_path)
    assert find_run(tmp_path, first.id) == first
    assert find_run(tmp_path, "other") == second
    assert find_run(tmp_path, second.id[:-1]) == second
    assert set(all_runs(tmp_path)) == {first, second}
    with pytest.raises(RunNotFound, match="no run 'x'"):
        find_run(tmp_path, "x")
    with pytest.raises(RunNotFound, match="2 runs start with '20"):
        find_run(tmp_path, "20")
    with pytest.raises(RunNotFound):
        find_run(tmp_path, "../..")


def test_an_agents_name_never_becomes_a_path(run):
    with pytest.raises(KeyError):
        run.log_tail("../../etc")


def test_a_name_with_markup_makes_a_plain_folder(tmp_path):
    run = launch.create(load_config("demo-pair", ["name=<b>../../x & ü</b>"]), tmp_path)
    assert run.path.parent == tmp_path and "b-x-b" in run.id


def test_only_a_run_that_has_ended_is_deleted(run):
    with pytest.raises(launch.LaunchError, match="stop it first"):
        launch.delete(run)
    write_status(run.path, Status("stopped", time.time()))
    launch.delete(run)
    assert not run.path.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(launch.LaunchError, match="use --runs DIR"):
        launch.create(load_config("demo"), tmp_path / "runs")


def test_a_full_disk_is_an_error_that_says_what_to_do(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "MIN_FREE_BYTES", 2**62)
    with pytest.raises(launch.LaunchError, match="free some disk or use --runs DIR"):
        launch.create(load_config("demo"), tmp_path)


def step_line(step, votes, truths=("1", "2")):
    return {"event": "step", "step": step, "votes": list(votes), "truths": list(truths)}


def test_cohort_metrics_come_once_every_agent_has_reached_the_step():
    cohort = CohortMetrics(load_config("demo-pair"))
    assert cohort.add("llama", step_line(0, "12")) == []
    assert cohort.add("llama", step_line(1, "11")) == []
    (line,) = cohort.add("qwen2", step_line(0, "13"))
    assert (line["step"], line["metrics"]["agreement"]) == (0, 0.5)
    (line,) = cohort.add("qwen2", step_line(1, "11"))
    assert (line["step"], line["metrics"]["agreement"]) == (1, 1.0)
    # Over both steps: llama right on 3 of 4, qwen2 on 2 of 4, both wrong on 1 of 4 with the same answer.
    assert line["metrics"]["error_overlap/both_wrong"] == line["metrics"]["error_overlap/same_wrong"] == 1 / 4
    assert line["metrics"]["error_overlap/jaccard"] == 1 / 2


def test_error_overlap_forgets_steps_beyond_its_window():
    cohort = CohortMetrics(load_config("demo-pair"))
    for step in range(WINDOW + 1):
        votes = "99" if step == 0 else "12"
        cohort.add("llama", step_line(step, votes))
        (line,) = cohort.add("qwen2", step_line(step, votes))
    assert line["metrics"]["error_overlap/both_wrong"] == 0


def test_without_truth_only_agreement_is_known():
    cohort = CohortMetrics(load_config("demo-pair"))
    cohort.add("llama", step_line(0, "12", (None, None)))
    (line,) = cohort.add("qwen2", step_line(0, "12", (None, None)))
    assert set(line["metrics"]) == {"agreement", "agreement/llama.qwen2"}


def test_status_json_is_plain_json(run):
    assert json.loads((run.path / "status.json").read_text())["state"] == "starting"


def test_a_stop_gives_slow_models_time_for_their_step(run):
    supervisor = Supervisor(run)
    supervisor._agents = {name: _Agent(None, None, longest_step_s=seconds) for name, seconds in (("a", 2.0), ("b", 40.0))}
    assert supervisor._stop_limit_s() == 3 * GRACE_S + 10 * 40


def test_a_name_means_every_run_of_that_name_also_one_that_was_given_later(tmp_path):
    first, second = (launch.create(load_config("demo", [f"seed={seed}"]), tmp_path) for seed in (0, 1))
    other = launch.create(load_config("demo-pair"), tmp_path)
    assert {run.id for run in find_runs(tmp_path, "demo")} == {first.id, second.id}
    rename(other, "the pair of the paper")
    assert find_run(tmp_path, "the pair of the paper") == other
    assert find_runs(tmp_path, "demo-pair") == [other]


def test_a_status_that_a_newer_version_wrote_is_read_as_far_as_it_is_known(tmp_path):
    run = launch.create(load_config("demo"), tmp_path)
    (run.path / "status.json").write_text('{"state": "stopped", "created": 5.0, "step": 7, "mood": "good"}')
    assert (run.status().state, run.status().step) == ("stopped", 7)
    (run.path / "status.json").write_text("[1]")
    assert run.status().state == "failed" and "damaged" in run.status().reason


def test_a_run_folder_that_is_gone_is_not_made_again(tmp_path):
    run = tmp_path / "run"
    run.mkdir()
    make_folder(run / "agents" / "a" / "rollouts", within=run)
    make_folder(run / "agents" / "a", within=run)
    assert (run / "agents" / "a" / "rollouts").is_dir()
    shutil.rmtree(run)
    for make in (lambda: make_folder(run / "agents" / "a", within=run), lambda: Recorder(run / "agents" / "a", "a")):
        with pytest.raises(FileNotFoundError):
            make()
    assert not run.exists()
