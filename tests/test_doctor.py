"""The doctor: each line by hand-made facts, and repairs that touch nothing but what they were shown."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from filelock import FileLock

from corl_core import doctor
from corl_core.cli import main
from corl_core.doctor import leftovers, machine, packages, ports, processes, store
from corl_core.doctor import queue as queued
from corl_core.doctor import runs as stale
from corl_core.doctor.ports import Listener
from corl_core.runs import queue, queue_dispatch
from corl_core.runs.folder import read_status, start_of, write_status
from tests.fake_queue import add
from tests.pages.made_runs import make_run, run_config

ROOT = Path(__file__).resolve().parents[1]


def test_packages_are_compared_with_the_pins_and_a_local_build_is_the_version():
    pinned = packages.pins("# why\nnumpy==2.4.6\nmath-verify[antlr4_13_2]==0.9.0\ntorch==2.13.0  # cpu\nloose>=1\n")
    assert pinned == {"numpy": "2.4.6", "math-verify": "0.9.0", "torch": "2.13.0"}
    there = {"numpy": "1.0", "torch": "2.13.0+cpu"}
    first, *wrong = packages.against_pins(pinned, there.get)
    assert first.found == "1 of 3 are the pinned versions"
    assert [(each.name, each.level) for each in wrong] == [("math-verify", "bad"), ("numpy", "note")]
    assert all("pip install" in each.remedy for each in wrong)


def test_an_old_python_and_too_many_threads_are_told():
    assert packages.python((3, 10)).level == "bad" and packages.python((3, 11)).level == "ok"
    assert machine.threads(2, {"OMP_NUM_THREADS": "8"}).remedy.startswith("unset OMP_NUM_THREADS")
    assert machine.threads(8, {"OMP_NUM_THREADS": "8"}).level == "ok"
    assert machine.threads(2, {"OMP_NUM_THREADS": "x"}).level == "ok"


def test_memory_and_disk_have_limits():
    assert [machine.memory_left(free * 1e9, 16e9).level for free in (1, 3)] == ["note", "ok"]
    assert [machine.disk(free, Path("runs")).level for free in (1e8, 1e9, 1e10)] == ["bad", "note", "ok"]


def test_gpus_are_read_from_the_drivers_table():
    said = "0, NVIDIA H200, 143771, 512, 3, 570.1\n1, NVIDIA H200, 143771, 0, 0, 570.1\n"
    assert [each.name for each in machine.gpu_lines(said)] == ["GPU 0", "GPU 1"]
    assert machine.gpu_lines(said)[0].found == "NVIDIA H200, 512 of 143771 MiB used, 3% busy, driver 570.1"
    assert machine.gpu_lines("")[0].level == "bad"


def test_the_newest_migration_is_the_one_that_none_comes_after():
    texts = ["revision = 'a'\ndown_revision = None\n", 'revision: str = "b"\ndown_revision: str | None = "a"\n']
    assert store.head(texts) == "b"
    assert store.head([*texts, "revision = 'c'\ndown_revision = 'a'\n"]) is None  # two heads: it cannot be told
    assert store.newest_revision()


def test_a_store_is_absent_sound_old_or_broken(tmp_path):
    file = tmp_path / "mlflow.db"
    assert store.sqlite_store(file, "b").found.endswith("the first run makes it")
    with sqlite3.connect(file) as made:
        made.execute("create table alembic_version (version_num text)")
        made.execute("insert into alembic_version values ('a')")
        made.execute("create table runs (lifecycle_stage text)")
    assert store.sqlite_store(file, "a").level == "ok"
    old = store.sqlite_store(file, "b")
    assert old.level == "bad" and "wants b" in old.found and "mlflow db upgrade" in old.remedy
    file.write_bytes(b"no database" * 100)
    assert "cannot be read" in store.sqlite_store(file, "a").found


def test_a_server_that_is_down_is_told_without_its_password(monkeypatch, tmp_path):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ada:s3cretpw@127.0.0.1:9/mlflow")
    (finding,) = store.check(tmp_path)
    assert finding.level == "bad" and "127.0.0.1:9/mlflow does not answer" in finding.found
    assert "s3cretpw" not in str(finding) and "ada" not in str(finding)


def dead_run(runs_dir: Path, logged: bool = False):
    """A run whose supervisor was killed: it says 'running', and its process is nobody's."""
    run = make_run(runs_dir, run_config(steps=3), "running", 2, logged=logged)
    write_status(run.path, replace(read_status(run.path), pid=2**22 - 1, pid_created=1.0))
    return run


def test_a_dead_run_is_found_written_down_and_closed_in_mlflow(tmp_path, capsys):
    from mlflow import MlflowClient

    from corl_core.tracking.store import tracking_uri

    run = dead_run(tmp_path, logged=True)
    (finding,) = [each for each in stale.check(tmp_path) if each.repair]
    assert finding.name == run.id and "says 'running', but the supervisor was killed" in finding.found
    assert read_status(run.path).state == "running"  # looking changes nothing
    main(["doctor", "--runs", str(tmp_path), "--json", "--repair"])
    said = json.loads(capsys.readouterr().out)
    assert said["repaired"] == [f"{run.id}: written down as failed", f"{run.id}: its MLflow runs are closed"]
    assert read_status(run.path).state == "failed"
    assert {each.info.status for each in MlflowClient(tracking_uri(tmp_path)).search_runs(["1"])} == {"FAILED"}
    assert not [each for each in stale.check(tmp_path) if each.repair]


def test_a_run_that_lives_after_all_is_left_alone(tmp_path):
    run = dead_run(tmp_path)
    (finding,) = [each for each in stale.check(tmp_path) if each.repair]
    me = psutil.Process()
    write_status(run.path, replace(read_status(run.path), pid=me.pid, pid_created=start_of(me)))
    assert doctor.repair([finding], tmp_path) == [f"{run.id} is running: left as it is"]


def test_runs_that_wait_without_a_dispatcher_are_told_and_a_repair_starts_one(tmp_path, monkeypatch):
    started = []

    class Started:
        pid = os.getpid()  # a process that lives

        def __init__(self, command, **options):
            started.append(command[-1])

    monkeypatch.setattr(queue_dispatch.subprocess, "Popen", Started)
    assert queued.check(tmp_path) == [], "nobody has used the queue"
    a, b = add(tmp_path, "a", "b")
    queue.hold(a)
    (finding,) = queued.check(tmp_path)
    assert (finding.level, finding.repair) == ("bad", "wake dispatcher")
    assert finding.found == "2 runs wait, 1 of them held, and no dispatcher works"
    assert doctor.repair([finding], tmp_path) == ["queue: its dispatcher works"] and started == [str(tmp_path)]
    (finding,) = queued.check(tmp_path)
    assert (finding.level, finding.found) == ("ok", "2 runs wait, 1 of them held; its dispatcher works")
    (tmp_path / "queue" / "dispatcher.json").unlink()
    queue.hold(b)
    (finding,) = queued.check(tmp_path)
    assert (finding.level, finding.repair) == ("ok", "") and finding.found == "2 runs wait, 2 of them held"
    assert queued.wake(finding, tmp_path) == ["queue: nothing waits that could be started"] and len(started) == 1


@pytest.fixture
def sleeper():
    """Starts a process with a command line of our choosing, which sleeps; ended afterwards."""
    started = []

    def start(*arguments: str, **options) -> psutil.Process:
        made = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", *arguments], **options)
        started.append(made)
        process = psutil.Process(made.pid)
        while not process.cmdline():  # Linux tells of none for a moment after a program has begun
            time.sleep(0.01)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def over(runs_dir: Path, ended: float):
    run = make_run(runs_dir, run_config(steps=3), "finished", logged=False)
    write_status(run.path, replace(read_status(run.path), ended=ended))
    return run


def test_a_supervisor_whose_run_is_gone_or_long_over_is_ended_even_when_it_is_stopped(tmp_path, sleeper):
    gone = sleeper("-m", "corl_core", "supervise", str(tmp_path / "20260101-000000-gone-0000"))
    run = over(tmp_path, time.time() - 3600)
    late = sleeper("-m", "corl_core", "supervise", str(run.path))
    late.send_signal(signal.SIGSTOP)
    found = [each for each in processes.check(tmp_path) if each.repair]
    assert {each.about["pid"] for each in found} == {gone.pid, late.pid}
    assert sorted(each.found.rpartition(": ")[2] for each in found) == ["its run is finished", "its run is gone"]
    assert all(sentence.endswith(": ended") for sentence in doctor.repair(found, tmp_path))
    assert not [each for each in (gone, late) if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]


def test_a_sampler_and_a_dispatcher_go_with_their_folder(tmp_path, sleeper):
    (tmp_path / "diversity" / "there").mkdir(parents=True)
    (tmp_path / "diversity" / "there" / "request.yaml").touch()
    (tmp_path / "diversity" / "there" / "status.json").write_text('{"state": "running", "created": 1}')
    for folder in ("there", "gone"):
        last = sleeper("-m", "corl_core.training.candidates", str(tmp_path / "diversity" / folder))
    sleeper("-m", "corl_core.runs.queue_dispatch", str(tmp_path))
    lost = sleeper("-m", "corl_core.runs.queue_dispatch", str(tmp_path / "gone"))
    assert {each.about["pid"] for each in processes.check(tmp_path) if each.repair} == {last.pid, lost.pid}


def test_an_agent_is_known_by_the_log_it_writes(tmp_path, sleeper):
    run = over(tmp_path, time.time() - 3600)
    with (run.agent_path("llama") / "log.txt").open("ab") as log:
        agent = sleeper("corl_core.training.process", stdout=log)
        stranger = sleeper("something else", stdout=log)
    (finding,) = [each for each in processes.check(tmp_path) if each.repair]
    assert finding.about["pid"] == agent.pid and "agent of" in finding.found
    doctor.repair([finding], tmp_path)
    assert stranger.is_running() and not agent.is_running()


def test_who_is_needed_or_elsewhere_or_not_ours_is_no_orphan(tmp_path, sleeper):
    just_over = over(tmp_path / "runs", time.time())
    running = make_run(tmp_path / "runs", run_config(), "running", 2, 5, logged=False)
    sleeper("-m", "corl_core", "supervise", str(just_over.path))  # still tells MLflow
    sleeper("-m", "corl_core", "supervise", str(running.path))
    sleeper("-m", "corl_core", "supervise", str(tmp_path / "other" / "20260101-000000-gone-0000"))
    sleeper("-m", "other", "supervise", str(tmp_path / "runs" / "20260101-000000-gone-0000"))
    assert [each.repair for each in processes.check(tmp_path / "runs")] == [""]


def test_a_number_that_is_somebody_elses_by_now_is_left_alone(tmp_path, sleeper):
    process = sleeper("-m", "corl_core", "supervise", str(tmp_path / "20260101-000000-gone-0000"))
    (finding,) = [each for each in processes.check(tmp_path) if each.repair]
    for change in ({"created": finding.about["created"] - 5}, {"command": ["python"]}):
        other = replace(finding, about=finding.about | change)
        assert doctor.repair([other], tmp_path) == [f"process {process.pid}: no longer the one that was seen; left alone"]
    assert process.is_running() and process.status() != psutil.STATUS_ZOMBIE


def old(path: Path, content: bytes = b"x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    os.utime(path, (time.time() - 7200,) * 2)
    return path


def test_old_locks_and_unfinished_files_go_and_what_is_new_held_or_written_stays(tmp_path):
    goes = [old(tmp_path / ".mlflow.lock"), old(tmp_path / "r" / ".resume.lock"), old(tmp_path / "uploads" / "a.part"),
            old(tmp_path / "r" / f".status.json.{2**22 - 1}")]  # fmt: skip
    stays = [old(tmp_path / ".held.lock"), old(tmp_path / "r" / f".status.json.{os.getpid()}"), old(tmp_path / "r" / "run.yaml"),
             old(tmp_path / "r" / "status.json"), old(tmp_path / "mlflow.db")]  # fmt: skip
    (tmp_path / "r" / ".new.lock").touch()
    with FileLock(tmp_path / ".held.lock"):
        os.utime(tmp_path / ".held.lock", (time.time() - 7200,) * 2)
        found = leftovers.check(tmp_path)
        said = doctor.repair(found, tmp_path)
    assert said == ["lock files: 2 removed", "unfinished files: 2 removed"]
    assert not [path for path in goes if path.exists()]
    assert all(path.exists() for path in [*stays, tmp_path / "r" / ".new.lock"])


def test_a_repair_removes_nothing_outside_the_runs_folder(tmp_path):
    outside = old(tmp_path / "precious.part")
    finding = doctor.Finding("unfinished files", "note", "", "", "remove", {"paths": [str(outside)]})
    doctor.repair([finding], tmp_path / "runs")
    assert outside.exists()


def test_a_dashboard_beyond_this_machine_is_pointed_at():
    lines = ports.report([Listener(1, "0.0.0.0", 8600, True), Listener(2, "127.0.0.1", 8501, False)])
    assert [(each.name, each.level) for each in lines] == [("port 8600", "note"), ("port 8501", "note")]
    assert "--port 8502" in lines[1].remedy
    assert ports.report([])[0].found == "free"
    assert ports.report([Listener(1, "127.0.0.1", 8501, True)])[0].level == "ok"


def test_a_check_that_breaks_down_is_a_line_and_hides_no_other(tmp_path, monkeypatch):
    def broken(runs_dir):
        raise OSError("no such device")

    broken.__module__ = "corl_core.doctor.machine"
    monkeypatch.setattr(doctor, "CHECKS", (broken, packages.check))
    first, *others = doctor.examine(tmp_path)
    assert first.level == "bad" and "no such device" in first.found and others


def test_the_command_says_what_to_do_and_repairs_only_when_asked(tmp_path, capsys):
    run = dead_run(tmp_path)
    main(["doctor", "--runs", str(tmp_path)])
    said = capsys.readouterr().out
    assert f"note  {run.id}: says 'running'" in said and "→ write the state down" in said and "(--repair does it)" in said
    assert read_status(run.path).state == "running"


def test_the_doctor_loads_no_training_library():
    code = "import sys; from pathlib import Path; from corl_core import doctor; doctor.examine(Path('nowhere')); " \
           "print(sorted(set(sys.modules) & {'torch', 'transformers', 'mlflow', 'streamlit'}))"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
