"""The command line, as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corl_core import preflight
from corl_core.cli import VERBS, main, parser
from corl_core.config import load_config
from corl_core.runs import launch
from corl_core.runs.folder import Status, start_of, write_status

ROOT = Path(__file__).resolve().parents[1]


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "corl_core", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=240,
        env=os.environ | environment,
    )  # fmt: skip


def test_each_module_of_the_command_line_adds_the_verbs_it_is_listed_with():
    """Only the module of the asked verb is imported, so a verb that is not listed could never be found."""
    for module, listed in VERBS.items():
        actions = [action for action in parser(listed[0])._actions if action.dest == "verb"]
        assert set(actions[0].choices) == set(listed), module


def test_a_light_command_starts_without_the_heavy_libraries():
    heavy = "{'pandas', 'plotly', 'matplotlib', 'mlflow', 'torch', 'scipy'}"
    script = f"import sys; from corl_core.cli import main; main(['list']); print(sorted({heavy} & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert told.stdout.splitlines()[-1] == "[]", told.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["launch", "demmo"], "did you mean 'demo'?"),
        (["launch", "demo", "--set", "grpo.num_generation=4"], "did you mean 'num_generations'?"),
        (["status", "nothing"], "no run 'nothing'"),
        (["results", "nothing"], "no run 'nothing'"),
        (["stop", "nothing"], "no run 'nothing'"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, message, tmp_path, capsys):
    assert main([*arguments, "--runs", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_listing_an_empty_folder_says_how_to_start(tmp_path, capsys):
    assert main(["list", "--runs", str(tmp_path)]) == 0
    assert "python -m corl_core launch demo" in capsys.readouterr().out
    assert main(["list", "--json", "--runs", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out) == []


def test_results_before_the_first_evaluation_are_empty_not_an_error(tmp_path, capsys):
    run = launch.create(load_config("demo-pair"), tmp_path)
    assert main(["results", run.id, "--json", "--runs", str(tmp_path)]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["state"] == "starting" and report["agents"]["llama"] == {"first": {}, "last": {}, "checkpoint": {}}


@pytest.mark.training
def test_a_background_run_from_launch_to_results(small_run, tmp_path, wait_for):
    path = tmp_path / "small.yaml"
    path.write_text(small_run().to_yaml())
    runs = str(tmp_path / "runs")
    started = json.loads(command("launch", str(path), "--runs", runs, "--json").stdout)
    assert started["state"] == "starting" and started["pid"] and started["step"] == 0

    def status() -> dict:
        return json.loads(command("status", started["id"], "--runs", runs, "--json").stdout)

    wait_for(lambda: status()["state"] == "finished", "the run to finish", every_s=1)
    assert status()["step"] == 4
    report = json.loads(command("results", "small", "--json", CORL_RUNS=runs).stdout)
    assert report["state"] == "finished" and report["agents"]["a"]["last"]["step"] == 4
    (row,) = json.loads(command("list", "--runs", runs, "--json").stdout)
    assert row["id"] == started["id"] and row["state"] == "finished"


@pytest.mark.training
def test_stop_leaves_no_process_behind(small_run, tmp_path, wait_for):
    import psutil

    path = tmp_path / "small.yaml"
    path.write_text(small_run(grpo__max_steps=5000).to_yaml())
    runs = str(tmp_path / "runs")
    started = json.loads(command("launch", str(path), "--runs", runs, "--json").stdout)
    family = [psutil.Process(started["pid"])]

    def running() -> bool:
        family[1:] = family[0].children(recursive=True)
        return json.loads(command("status", started["id"], "--runs", runs, "--json").stdout)["state"] == "running"

    wait_for(running, "the run to start training", every_s=1)
    assert len(family) >= 3
    assert json.loads(command("stop", started["id"], "--runs", runs, "--json").stdout)["state"] == "stopped"
    _, alive = psutil.wait_procs(family, timeout=15)
    assert alive == []


@pytest.mark.training
def test_a_killed_supervisor_takes_its_agents_along(small_run, tmp_path, wait_for):
    import psutil

    path = tmp_path / "small.yaml"
    path.write_text(small_run("ttrl", grpo__max_steps=5000).to_yaml())
    runs = str(tmp_path / "runs")
    started = json.loads(command("launch", str(path), "--runs", runs, "--json").stdout)
    run = launch.Run(Path(started["path"]))
    wait_for(lambda: run.status().state == "running", "the run to start training")
    supervisor = psutil.Process(started["pid"])
    family = supervisor.children(recursive=True)
    supervisor.kill()
    gone, alive = psutil.wait_procs(family, timeout=20)
    assert alive == [] and len(gone) >= 2
    assert (run.status().state, run.status().reason) == ("failed", "the supervisor was killed")


@pytest.mark.training
def test_train_in_the_foreground_prints_results(small_run, tmp_path):
    path = tmp_path / "small.yaml"
    path.write_text(small_run("ground_truth").to_yaml())
    done = command("train", str(path), "--runs", str(tmp_path / "runs"), "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["agents"]["b"]["last"]["step"] == 4


def test_one_unreadable_run_hides_no_other(tmp_path, capsys):
    good = launch.create(load_config("demo-pair"), tmp_path)
    bad = tmp_path / "20260101-000001-old-bbbb"
    bad.mkdir()
    (bad / "run.yaml").write_text("name: old\nfoo: 1\n")
    assert main(["list", "--json", "--runs", str(tmp_path)]) == 0
    captured = capsys.readouterr()
    assert [row["id"] for row in json.loads(captured.out)] == [good.id]
    assert "20260101-000001-old-bbbb is left out" in captured.err and "unknown key 'foo'" in captured.err
    assert main(["status", "demo-pair", "--runs", str(tmp_path)]) == 0
    assert main(["status", "20260101-000001-old-bbbb", "--runs", str(tmp_path)]) == 2
    assert "unknown key 'foo'" in capsys.readouterr().err


def test_stop_ends_a_supervisor_that_does_not_answer(tmp_path, capsys):
    """A stand-in for a supervisor that hangs: alive, but its last sign of life is minutes old."""
    import time

    import psutil

    run = launch.create(load_config("demo-pair"), tmp_path)
    hung = subprocess.Popen(["sleep", "60"])
    created, long_ago = start_of(psutil.Process(hung.pid)), time.time() - 300
    write_status(run.path, Status("running", long_ago, pid=hung.pid, pid_created=created, heartbeat=long_ago))
    assert main(["stop", run.id, "--json", "--runs", str(tmp_path)]) == 0
    assert hung.wait(5) == -9
    captured = capsys.readouterr()
    assert "does not answer" in captured.err and json.loads(captured.out)["state"] == "failed"


@pytest.mark.training
def test_a_run_that_is_stopped_while_a_base_model_is_made_is_stopped_not_failed(small_run, base_models, tmp_path, wait_for):
    path, runs = tmp_path / "small.yaml", str(tmp_path / "runs")
    agents = f"[{{name: a, model: {base_models['llama']}}}, {{name: b, model: 'tiny:qwen2'}}]"
    path.write_text(small_run(agents=agents).to_yaml())
    launched = command("launch", str(path), "--runs", runs, "--json", CORL_CACHE=str(tmp_path / "cache"))
    run = launch.Run(Path(json.loads(launched.stdout)["path"]))
    wait_for(lambda: "base model" in run.status().phase and "%" in run.status().phase, "the warm-up to begin")
    assert json.loads(command("stop", run.id, "--runs", runs, "--json").stdout)["state"] == "stopped"
    assert run.status().reason == ""
    assert list((tmp_path / "cache").glob("qwen2-*/")) == []


def test_a_dashboard_that_is_terminated_takes_streamlit_along(tmp_path, wait_for):
    import socket

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    arguments = [sys.executable, "-m", "corl_core", "app", "--port", str(port), "--no-browser", "--runs", str(tmp_path)]
    dashboard = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.DEVNULL)
    wait_for(answers, "the dashboard to listen")
    dashboard.terminate()
    dashboard.wait(20)
    wait_for(lambda: not answers(), "the port to be free", timeout_s=10)


@pytest.mark.parametrize("port", ["0", "99999", "http"])
def test_what_is_no_port_is_told_before_anything_starts(port, capsys):
    with pytest.raises(SystemExit):
        main(["app", "--port", port])
    assert "is not a port; give a number from 1 to 65535" in capsys.readouterr().err


def test_a_port_in_use_is_one_line_that_names_another(tmp_path):
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = command("app", "--port", str(port), "--no-browser", "--runs", str(tmp_path))
    assert done.returncode == 2
    assert done.stderr == f"error: port {port} is in use: close what uses it, or run: make app PORT={port + 1}\n"


def test_what_make_checks_before_it_installs():
    assert "Python 3.9 is too old: install Python 3.11" in preflight.problem((3, 9, 1), 2**40)
    assert "Only 1.0 GB free on this disk" in preflight.problem((3, 12, 0), 2**30)
    assert preflight.problem((3, 11, 0), 2**40) == ""
