"""The command line, as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from corl_core import preflight
from corl_core.cli import main
from corl_core.config import load_config
from corl_core.runs import launch

ROOT = Path(__file__).resolve().parents[1]


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-m", "corl_core", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=240,
        env=os.environ | environment,
    )  # fmt: skip


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
    assert report["state"] == "starting" and report["agents"]["llama"] == {"first": {}, "last": {}}


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
