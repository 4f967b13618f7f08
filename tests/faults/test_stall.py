"""What stands still without being dead: a suspended agent, one that hangs, a suspended supervisor, a clock that jumps."""

import signal
import time
from dataclasses import replace

import psutil
import pytest

from corl_core.runs import launch
from corl_core.runs.folder import Run, is_alive, read_status, start_of, write_status
from tests.faults.conftest import LOOK_S, assert_mirrored, assert_same_training


@pytest.mark.training
def test_what_is_suspended_is_named_and_goes_on_as_if_nothing_had_happened(faulty, undisturbed):
    fault = faulty(hold={"b.generation": 9, "a.exchange": 15})
    fault.reached("b", "generation")
    fault.agent("b").send_signal(signal.SIGSTOP)
    fault.wait(lambda: fault.run.status().state == "stalled", "the stall to be seen", LOOK_S)
    fault.wait(lambda: "agent 'b' is suspended in round 9" in fault.run.status().reason, "its name", LOOK_S)
    assert "agent 'a'" not in fault.run.status().reason, "who waits for a stalled peer is not stalled itself"
    fault.let_go("b", "generation")
    fault.agent("b").send_signal(signal.SIGCONT)
    fault.wait(lambda: fault.run.status().state == "running" and not fault.run.status().reason, "it to go on", LOOK_S)
    fault.reached("a", "exchange")
    supervisor = fault.supervisor()
    supervisor.send_signal(signal.SIGSTOP)
    fault.wait(lambda: fault.run.status().state == "stalled", "any reader to see it at once", 0.5)
    assert fault.run.status().reason.startswith("the supervisor is suspended")
    fault.let_go("a", "exchange")
    supervisor.send_signal(signal.SIGCONT)
    fault.ended("finished")
    fault.gone()
    assert_same_training(undisturbed().run, fault.run)
    assert_mirrored(fault.run, "FINISHED")


@pytest.mark.training
def test_an_agent_that_hangs_is_named_and_a_stop_ends_it(faulty):
    fault = faulty(hold={"b.update": 9}, settings={"corl_core.runs.supervisor": {"GRACE_S": 0.5}})
    fault.reached("b", "update")
    fault.wait(lambda: fault.run.status().state == "stalled", "the hang to be seen", 10)
    assert fault.run.status().reason.startswith("agent 'b' has made no progress for ")
    assert fault.run.status().reason.endswith(" in round 9")
    launch.stop(fault.run)
    assert fault.run.status().state == "stopping"
    fault.ended("stopped")
    fault.gone()
    assert_mirrored(fault.run, "KILLED")


@pytest.mark.training
def test_no_clock_that_is_set_changes_what_a_run_is_told_as(faulty, undisturbed, monkeypatch):
    """An hour forth and then two back, for all processes of the run while it trains, and for none of its readers."""
    monkeypatch.setenv("CORL_FAULTS_CLOCK", "1")
    fault = faulty(hold={"b.update": 6, "a.update": 14}, settings={"corl_core.runs.watched": {"SILENT_S": 60}})
    for agent, shift_s in (("b", 3600), ("a", -3600)):
        fault.reached(agent, "update")
        fault.wait(lambda: fault.run.status().state == "running", "the supervisor to have seen it train", LOOK_S)
        (fault.folder / "clock").write_text(str(shift_s))
        told, deadline = set(), time.monotonic() + LOOK_S
        while time.monotonic() < deadline:
            told.add(fault.run.status().state)
            time.sleep(0.1)
        assert told == {"running"}
        fault.let_go(agent, "update")
    fault.ended("finished")
    fault.gone()
    assert_same_training(undisturbed().run, fault.run)
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
