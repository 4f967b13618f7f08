"""What stands still without being dead: a suspended agent, one that hangs, a suspended supervisor, a clock that jumps."""

import re
import signal
import time
from dataclasses import replace

import psutil
import pytest

from corl_core.runs import launch
from corl_core.runs.folder import Run, is_alive, read_status, start_of, write_status
from tests.faults.conftest import BEATS, assert_mirrored, assert_same_training


def halted(fault, process) -> None:
    """Suspends a process, and waits until the system has done so."""
    process.send_signal(signal.SIGSTOP)
    fault.wait(lambda: process.status() == psutil.STATUS_STOPPED, "the process to be suspended")


@pytest.mark.training
def test_what_is_suspended_is_named_and_goes_on_as_if_nothing_had_happened(faulty, undisturbed):
    fault = faulty(hold={"b.generation": 5, "a.exchange": 9})
    fault.reached("b", "generation")
    suspended = fault.agent("b")
    halted(fault, suspended)
    fault.within_a_heartbeat(lambda: fault.run.status().state == "stalled", "the stall is seen")
    fault.within_a_heartbeat(lambda: "agent 'b' is suspended in round 5" in fault.run.status().reason, "its name is told")
    assert "agent 'a'" not in fault.run.status().reason, "who waits for a stalled peer is not stalled itself"
    fault.let_go("b", "generation")
    suspended.send_signal(signal.SIGCONT)
    fault.wait(lambda: suspended.status() != psutil.STATUS_STOPPED, "the process to go on")
    fault.within_a_heartbeat(lambda: fault.run.status().state == "running" and not fault.run.status().reason, "it goes on")
    fault.reached("a", "exchange")
    supervisor = fault.supervisor()
    halted(fault, supervisor)
    assert fault.run.status().state == "stalled", "any reader sees it at once"
    assert fault.run.status().reason.startswith("the supervisor is suspended")
    fault.let_go("a", "exchange")
    supervisor.send_signal(signal.SIGCONT)
    fault.ended("finished")
    fault.gone()
    assert_same_training(undisturbed(), fault.run)
    assert_mirrored(fault.run, "FINISHED")


@pytest.mark.training
def test_an_agent_that_hangs_is_named_and_a_stop_ends_it(faulty):
    settings = {"corl_core.runs.supervisor": {"GRACE_S": 0.5}, "corl_core.runs.watched": {"SILENT_S": 2.0}}
    fault = faulty(hold={"b.update": 5}, settings=settings)
    fault.reached("b", "update")
    named = re.compile(r"agent 'b' has made no progress for \d+ s in round 5")
    fault.wait(lambda: named.search(fault.run.status().reason), "the hang to be seen and named")
    assert fault.run.status().state == "stalled"
    launch.stop(fault.run)
    assert fault.run.status().state == "stopping"
    fault.ended("stopped")
    fault.gone()
    assert_mirrored(fault.run, "KILLED")


@pytest.mark.training
def test_no_clock_that_is_set_changes_what_a_run_is_told_as(faulty, undisturbed, monkeypatch):
    """An hour forth and then two back, for all processes of the run while it trains, and for none of its readers."""
    monkeypatch.setenv("CORL_FAULTS_CLOCK", "1")
    fault = faulty(hold={"b.update": 5, "a.update": 9})
    for agent, shift_s in (("b", 3600), ("a", -3600)):
        fault.reached(agent, "update")
        fault.within_a_heartbeat(lambda: fault.run.status().state == "running", "the supervisor has seen it train")
        (fault.folder / "clock").write_text(str(shift_s))
        told, beats = set(), set()
        while len(beats) <= BEATS + 1:
            told.add(fault.run.status().state)
            beats.add(read_status(fault.run.path).beat)
            time.sleep(0.1)
        assert told == {"running"}
        fault.let_go(agent, "update")
    fault.ended("finished")
    fault.gone()
    assert_same_training(undisturbed(), fault.run)
    assert_mirrored(fault.run, "FINISHED")


@pytest.fixture
def living(tmp_path) -> Run:
    """A run whose supervisor is this process, one second after a heartbeat."""
    from corl_core.config import load_config

    run, me = launch.create(load_config("demo-pair"), tmp_path), psutil.Process()
    beat = {"heartbeat": time.time() - 1, "beat": time.monotonic() - 1}
    write_status(run.path, replace(read_status(run.path), state="running", pid=me.pid, pid_created=start_of(me), **beat))
    return run


@pytest.mark.parametrize("shift_s", [86_400.0, -86_400.0])
def test_a_readers_clock_does_not_matter_either(living, monkeypatch, shift_s):
    import psutil._pslinux as linux

    now, boot_time = time.time, linux.boot_time
    monkeypatch.setattr(time, "time", lambda: now() + shift_s)
    monkeypatch.setattr(linux, "boot_time", lambda: boot_time() + shift_s)
    assert living.status().state == "running"
    me = psutil.Process()
    assert is_alive(me.pid, start_of(me)) and not is_alive(me.pid, start_of(me) - 100)


def test_a_heartbeat_that_is_old_by_the_clock_that_nobody_sets_is_a_stall(living):
    write_status(living.path, replace(read_status(living.path), beat=time.monotonic() - 61, heartbeat=time.time() + 3600))
    assert living.status().state == "stalled" and "no sign of life for 61 s" in living.status().reason
