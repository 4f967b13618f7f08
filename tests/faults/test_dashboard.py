"""The dashboard goes, the tab is closed, an agent floods its stderr: the run, which the dashboard started, does not care."""

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from corl_core.runs.folder import Run
from corl_core.runs.launch import PROJECT
from tests.dashboard_server import free_port
from tests.faults.conftest import FIELDS, STEPS, Fault, assert_mirrored, assert_same_training, slowness

pytestmark = [pytest.mark.training, pytest.mark.browser]
NOISE_KB = 2048  # on stderr at each step, and every few seconds of an agent that is held; a pipe holds 64
CLOSED_S = 120.0


class Dashboard:
    """On a port that stays the same."""

    def __init__(self, fault_folder: Path, runs_dir: Path):
        self.port = free_port()
        self.site, self._log = f"http://127.0.0.1:{self.port}", fault_folder / "dashboard.log"
        self._runs_dir, self._process = runs_dir, None

    def start(self) -> None:
        command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.headless", "true"]
        command += ["--server.port", str(self.port), "--server.address", "127.0.0.1"]
        environment = os.environ | {"CORL_RUNS": str(self._runs_dir), "CORL_FAULTS_LAUNCH": "1"}
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(command, cwd=PROJECT, env=environment, stdout=log, stderr=log)

    def answers(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.site}/_stcore/health", timeout=2).status == 200
        except OSError:
            return False

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


@pytest.mark.parametrize("closed_s", [0, pytest.param(CLOSED_S, marks=pytest.mark.faults)])
def test_a_run_outlives_its_dashboard_and_its_tab_however_loud_it_is(
    closed_s, faulty_environment, small_run, tmp_path, browser, undisturbed
):
    folder, mark = faulty_environment({"b.update": 9})
    for agent in "ab":
        (folder / f"{agent}.noise").write_text(str(NOISE_KB))
    runs_dir = tmp_path / "runs"
    runs_dir.mkdir()
    dashboard = Dashboard(folder, runs_dir)
    dashboard.start()
    try:
        (folder / "launch.yaml").write_text(small_run(**FIELDS).to_yaml())
        fault = Fault(Run(runs_dir / "none"), folder, mark)
        fault.wait(lambda: (folder / "launched").exists() and (folder / "launched").read_text(), "the launch")
        fault.run = Run(Path((folder / "launched").read_text()))
        fault.wait(dashboard.answers, "the dashboard")
        tab = browser.new_page()
        tab.goto(f"{dashboard.site}/run?run={fault.run.id}")
        tab.get_by_text("small", exact=False).first.wait_for(timeout=60_000 * slowness())
        tab.close()
        fault.reached("b", "update")
        loud = fault.run.agent_path("b") / "log.txt"
        before = loud.stat().st_size
        time.sleep(closed_s)
        assert loud.stat().st_size - before >= closed_s / 10 * NOISE_KB * 1024, "it has not been silent meanwhile"
        dashboard.kill()
        fault.let_go("b", "update")
        fault.ended("finished")
        fault.gone()
        assert (fault.run.agent_path("a") / "log.txt").stat().st_size > STEPS * NOISE_KB * 1024
        (folder / "launch.yaml").unlink()
        dashboard.start()
        fault.wait(dashboard.answers, "the dashboard to be back")
        tab = browser.new_page()
        tab.goto(f"{dashboard.site}/run?run={fault.run.id}")
        tab.get_by_text("finished", exact=False).first.wait_for(timeout=60_000 * slowness())
    finally:
        dashboard.kill()
    assert_same_training(undisturbed(), fault.run)
    assert_mirrored(fault.run, "FINISHED")
