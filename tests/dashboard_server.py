"""A dashboard of its own on a free port."""

import os
import random
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

PORTS = range(20_000, 32_000)  # none that the system gives to outgoing connections
PROJECT = Path(__file__).resolve().parents[1]
END_S = 60.0  # for a dashboard to end on a busy machine


def free_port() -> int:
    """A port to listen on, now and again after a restart."""
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no free port")


@contextmanager
def serving(
    runs_dir: Path, log: Path, wait_for, port: int | None = None, more: Sequence[str] = ()
) -> Iterator[tuple[subprocess.Popen, str]]:  # fmt: skip
    """The server's process and address; `more` words for its command line. One that does not end when it is told to fails, with
    what its threads were doing."""
    port = port or free_port()
    command = [sys.executable, "-m", "pages.components.serve", "run", "app.py", "--server.headless", "true", *more]
    settings = os.environ | {"CORL_RUNS": str(runs_dir), "PYTHONFAULTHANDLER": "1"}
    with log.open("wb") as out:
        server = subprocess.Popen([*command, "--server.port", str(port)], cwd=PROJECT, env=settings, stdout=out, stderr=out)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_for(lambda: fetch(f"{address}/_stcore/health"), "the dashboard to answer", 60)
        yield server, address
    finally:
        _end(server, log)


def _end(server: subprocess.Popen, log: Path) -> None:
    server.terminate()
    try:
        server.wait(END_S)
    except subprocess.TimeoutExpired:
        server.send_signal(signal.SIGABRT)  # the log gets what each thread was doing
        server.wait()
        raise AssertionError(f"the dashboard did not end in {END_S} s:\n{log.read_text(errors='replace')[-6000:]}") from None


def fetch(url: str) -> bytes:
    """What is there; empty where nothing answers."""
    with suppress(OSError), urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read()
    return b""
