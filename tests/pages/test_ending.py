"""A dashboard that is told to end, ends: also where a browser has asked for much and reads no more, as on a laptop asleep."""

import re
import signal
import socket
import time

import pytest

from pages.components.ending import END_S
from tests.dashboard_server import fetch, serving

SLACK_S = 30.0


@pytest.fixture
def server(tmp_path, wait_for):
    """A dashboard of its own: its process, address and log."""
    log = tmp_path / "log"
    with serving(tmp_path, log, wait_for) as (process, address):
        yield process, address, log


@pytest.mark.parametrize("sign", [signal.SIGTERM, signal.SIGINT])
def test_a_browser_that_reads_no_more_does_not_hold_the_server(server, sign):
    process, address, log = server
    script = re.search(rb'src="\.?/?(static/js/[^"]+)"', fetch(address)).group(1)
    with socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) as browser:
        browser.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        browser.sendall(b"GET /%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % script * 60)
        browser.recv(100)
        time.sleep(3)  # until all room between the two is full
        process.send_signal(sign)
        assert process.wait(END_S + SLACK_S) == 0
    assert f"Ended after {END_S:g} s" in log.read_text()


def test_a_server_that_nothing_holds_ends_at_once(server):
    process, _, log = server
    process.terminate()
    process.wait(SLACK_S)
    assert "Ended after" not in log.read_text()
