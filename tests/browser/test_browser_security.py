"""A server that other machines could reach: what it says to a browser, and to which names it answers."""

import http.client
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
def started(tmp_path, wait_for):
    """Starts a server by a command line that ends in its port; returns the port once it answers, and ends it afterwards."""
    servers = []

    def start(*command: str, **environment: str) -> int:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        log = (tmp_path / "server.log").open("wb")
        environment = os.environ | {"CORL_RUNS": str(tmp_path / "runs")} | environment
        server = subprocess.Popen([sys.executable, *command, str(port)], cwd=PROJECT, env=environment, stdout=log, stderr=log)
        servers.append(server)
        wait_for(lambda: healthy(port), "the server to answer", 60)
        return port

    yield start
    for server in servers:
        server.terminate()
        server.wait(20)


def healthy(port: int) -> bool:
    try:
        return urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2).status == 200
    except (urllib.error.URLError, OSError):
        return False


def handshake(port: int, host: str) -> int:
    """The status of a WebSocket handshake under this name, from a page of the same name."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {
        "Host": f"{host}:{port}", "Origin": f"http://{host}:{port}", "Upgrade": "websocket", "Connection": "Upgrade",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version": "13",
    }  # fmt: skip
    connection.request("GET", "/_stcore/stream", headers=headers)
    try:
        return connection.getresponse().status
    finally:
        connection.close()


STREAMLIT = ("-m", "streamlit", "run", "app.py", "--server.headless", "true", "--server.address", "0.0.0.0", "--server.port")


def test_streamlit_run_on_all_addresses_shows_a_refusal_on_every_page(page, started, tmp_path):
    port = started(*STREAMLIT)
    for path in ("", "doctor", "new_run", "run?run=x"):
        page.goto(f"http://127.0.0.1:{port}/{path}")
        page.get_by_text("Nothing is shown").wait_for()
        assert page.get_by_role("button", name="Launch").count() == 0
    assert not (tmp_path / "runs").exists() or not list((tmp_path / "runs").iterdir())


def test_in_so_many_words_it_starts_and_answers_to_names_of_this_machine_alone(page, started):
    port = started("-m", "corl_core", "app", "--no-browser", "--address", "0.0.0.0", "--allow-anyone-on-the-network",
                   "--host", "lab.example.org", "--port")  # fmt: skip
    page.goto(f"http://127.0.0.1:{port}/doctor")
    page.get_by_text("Runs from elsewhere").wait_for()
    known = ("127.0.0.1", "localhost", "lab.example.org", socket.gethostname())
    assert [handshake(port, host) for host in known] == [101] * len(known)
    assert handshake(port, "evil.example.org") == 403  # a foreign name pointed at this machine


def test_a_name_of_elsewhere_is_refused_on_this_machine_too(started):
    port = started("-m", "corl_core", "app", "--no-browser", "--port")
    assert (handshake(port, "127.0.0.1"), handshake(port, "evil.example.org")) == (101, 403)
