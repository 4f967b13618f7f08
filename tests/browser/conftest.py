"""A dashboard of its own on a free port, and a page to use it with."""

import os
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page(browser):
    """A fresh window of 1280 by 1000 pixels; a page error fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, accept_downloads=True)
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert not errors


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """A runs folder whose runs are all told to stop at the end."""
    from corl_core.runs.folder import all_runs
    from corl_core.runs.launch import stop

    folder = tmp_path / "runs"
    folder.mkdir()
    yield folder
    for run in all_runs(folder):
        stop(run)


@pytest.fixture
def dashboard(runs_dir: Path, wait_for) -> str:
    """The address of a dashboard on `runs_dir`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "pages.components.serve", "run", "app.py", "--server.headless", "true"]
    command += ["--server.port", str(port)]
    log = (runs_dir.parent / "dashboard.log").open("wb")
    server = subprocess.Popen(command, cwd=PROJECT, env=os.environ | {"CORL_RUNS": str(runs_dir)}, stdout=log, stderr=log)
    wait_for(lambda: _answers(f"{address}/_stcore/health"), "the dashboard to answer", 60)
    yield address
    server.terminate()
    server.wait(20)
    log.close()


def _answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(url, timeout=2).status == 200
    except (urllib.error.URLError, OSError):
        return False
