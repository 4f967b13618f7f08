"""MLflow's server: not there when the run starts, deaf, broken, slow, gone when the run ends, and back."""

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.dashboard_server import free_port
from tests.faults.conftest import journaled, logged, mlflow_states, slowness

pytestmark = pytest.mark.training
SERVER = Path(__file__).parent / "faulty_mlflow.py"
SOON = {"corl_core.tracking.log": {"RETRY_S": 0.3, "INTERVAL_S": 0.2}}


class Server:
    """A real MLflow server in a process of its own, on a port that stays the same."""

    def __init__(self, folder: Path):
        folder.mkdir()
        self.port = free_port()
        self.folder, self.uri, self._process = folder, f"http://127.0.0.1:{self.port}", None

    def start(self) -> None:
        log = (self.folder / "log.txt").open("ab")
        environment = {key: value for key, value in os.environ.items() if key not in ("CORL_FAULTS", "CORL_MARK")}
        command = [sys.executable, str(SERVER), str(self.port), str(self.folder)]
        self._process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def answers(self) -> bool:
        try:
            return urllib.request.urlopen(f"{self.uri}/health", timeout=2).status < 600
        except urllib.error.HTTPError:
            return True
        except OSError:
            return False

    def mode(self, mode: str) -> None:
        (self.folder / "mode").write_text(mode)

    def calls(self, mode: str, what: str = "") -> int:
        path = self.folder / "calls"
        return sum(line.startswith(mode) and what in line for line in path.read_text().split("\n")) if path.exists() else 0


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path / "mlflow")
    yield made
    made.kill()


def test_nothing_that_was_journaled_is_lost_or_doubled_whatever_mlflow_does(faulty, server, monkeypatch):
    monkeypatch.setenv("MLFLOW_TRACKING_URI", server.uri)
    fault = faulty(hold={"b.update": 9, "a.update": 14}, settings=SOON)
    fault.reached("b", "update")
    fault.within_a_heartbeat(lambda: fault.run.status().step == 9, "step 9: a server that is down holds nobody up")
    server.mode("deaf")
    server.start()
    fault.wait(server.answers, "the server")
    fault.wait(lambda: server.calls("deaf", "runs/create"), "a run to be made without a word of it")
    server.mode("slow")
    fault.wait(lambda: server.calls("slow", "log-batch"), "metrics to be logged")
    server.mode("deaf")
    fault.wait(lambda: server.calls("deaf", "log-batch"), "metrics to be logged without a word of it")
    fault.let_go("b", "update")
    fault.reached("a", "update")
    server.mode("error")
    before = server.calls("error")
    fault.wait(lambda: server.calls("error") > before + 2, "refusals")
    server.kill()
    fault.let_go("a", "update")
    status = fault.ended("finished")
    last = max(path.stat().st_mtime for agent, path in fault.run.journal_paths().items() if agent)
    assert status.ended - last < 2.0 * slowness(), "the end is told at once, not when MLflow has heard of it"
    assert status.untold and fault.processes(), "the supervisor goes on trying"
    server.mode("ok")
    server.start()
    fault.gone()
    assert not fault.run.status().untold
    store = server.folder / "server.db"
    assert logged(fault.run, store) == journaled(fault.run)
    assert mlflow_states(fault.run, store) == ["FINISHED"] * 3
    assert fault.run.log_tail().count("will retry") <= 5, "it says so once each time, not at each try"
