"""Stops that come before there is anything to stop, and clicks that come twice.

A stop while a base model is being made: `tests/test_cli.py`. Two clicks on Launch: `tests/pages/test_new_run.py`; on Resume:
`tests/test_resume.py`.
"""

import threading

import psutil
import pytest

from corl_core.runs import launch
from corl_core.runs.folder import locked, read_status, update_status, write_status
from corl_core.runs.settle import settle
from tests.faults.conftest import assert_mirrored, slowness

pytestmark = pytest.mark.training


def test_a_stop_reaches_an_agent_that_waits_for_a_peer_who_is_not_there_yet(faulty):
    fault = faulty(hold={"b.loading": 0})
    fault.reached("b", "loading")
    fault.wait(lambda: "waiting for the peer" in fault.run.status().phase, "a to wait")
    launch.stop(fault.run)
    assert fault.run.status().state == "stopping"
    fault.let_go("b", "loading")
    assert fault.ended("stopped").reason == ""
    fault.gone()
    assert_mirrored(fault.run, "KILLED")


def test_a_stop_in_the_first_moment_is_not_forgotten(faulty):
    fault = faulty()
    launch.stop(fault.run)
    assert fault.run.status().state == "stopping"
    fault.ended("stopped")
    fault.gone()
    fault.told()
    assert_mirrored(fault.run, "KILLED")


def test_many_readers_write_the_end_down_once_and_no_late_word_changes_it(faulty):
    fault = faulty(hold={"b.loading": 0})
    fault.reached("b", "loading")
    alive = read_status(fault.run.path)
    killed = fault.processes()
    for process in killed:
        process.kill()
    psutil.wait_procs(killed, timeout=5 * slowness())
    seen: list = []
    readers = [threading.Thread(target=lambda: seen.append(settle(fault.run))) for _ in range(8)]
    [reader.start() for reader in readers]
    [reader.join() for reader in readers]
    assert {(status.state, status.cause) for status in seen} == {("failed", "killed")}
    stored = read_status(fault.run.path)
    assert stored.state == "failed" and stored.untold
    assert not update_status(fault.run.path, alive), "a supervisor that wakes up late"
    assert read_status(fault.run.path) == stored
    with locked(fault.run.path):  # only a resume may, and it counts as another attempt
        write_status(fault.run.path, stored)
    fault.told()
    assert not read_status(fault.run.path).untold and read_status(fault.run.path).state == "failed"
