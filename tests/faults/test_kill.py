"""Processes that are killed, or told to end, wherever it hurts: the run says so, leaves nothing behind, and can go on.

A cell is a place and a fault. Faults differ by who dies and how; places by what is half done then. Each place is met once by a
SIGKILL, and each fault once: a second fault at the same place ends through the same code.
"""

import signal

import psutil
import pytest

from corl_core.runs import checkpoints
from corl_core.runs.folder import read_status
from corl_core.runs.journal import whole_bytes
from corl_core.runs.settle import settle
from tests.faults.conftest import LOOK_S, STEPS, Fault, assert_mirrored, assert_rollouts_kept, assert_same_training

pytestmark = pytest.mark.training


def kill_agent(fault: Fault) -> None:
    fault.agent("b").kill()


def kill_supervisor(fault: Fault) -> None:
    fault.supervisor().kill()


def kill_supervisor_of_a_suspended_agent(fault: Fault) -> None:
    fault.agent("b").send_signal(signal.SIGSTOP)
    fault.supervisor().kill()


def kill_everything(fault: Fault) -> None:
    for process in fault.processes():
        process.kill()


def terminate_agent(fault: Fault) -> None:
    fault.agent("b").send_signal(signal.SIGTERM)


def terminate_supervisor(fault: Fault) -> None:
    fault.supervisor().send_signal(signal.SIGTERM)


CELLS = [
    # place, step, fault, state, cause, reason
    ("start", 0, kill_supervisor_of_a_suspended_agent, "failed", "killed", "the supervisor was killed"),
    ("generation", 9, kill_agent, "failed", "killed", "agent 'b' was killed by SIGKILL in round 9"),
    ("exchange", 9, kill_everything, "failed", "killed", "the supervisor was killed"),
    ("update", 9, terminate_agent, "stopped", "", "agent 'b' was told to end by SIGTERM"),
    ("checkpoint", 12, kill_agent, "failed", "killed", "agent 'b' was killed by SIGKILL in round 12"),
    ("logging", 9, kill_supervisor, "failed", "killed", "the supervisor was killed"),
    ("exchange", 13, terminate_supervisor, "stopped", "", ""),
]

NAMES = [f"{cell[0]}-{cell[2].__name__}" for cell in CELLS]


@pytest.mark.parametrize(("place", "step", "fault", "state", "cause", "reason"), CELLS, ids=NAMES)
def test_a_run_that_is_harmed_says_so_and_goes_on(place, step, fault, state, cause, reason, faulty, undisturbed):
    harmed = faulty(hold={f"b.{place}": step})
    harmed.reached("b", place)
    if place != "start":
        harmed.wait(lambda: harmed.run.status().state in ("running", "stalled"), "a run under way to be told as one", LOOK_S)
    fault(harmed)
    if state == "stopped":
        harmed.let_go("b", place)
    elif fault is not kill_agent:
        psutil.wait_procs(harmed.processes(), timeout=2)
        assert harmed.run.status().final, "a reader need not wait for any heartbeat"
    status = harmed.ended(state, cause, within_s=20)
    assert status.reason == reason and status.ended is not None
    assert read_status(harmed.run.path).state == state, "whoever saw it has written it down"
    harmed.gone()
    if place == "checkpoint":
        whole = checkpoints.complete(harmed.run.agent_path("b"))
        assert checkpoints.path(harmed.run.agent_path("b"), 12).exists() and whole == [4, 8][-len(whole) :]
    if place == "logging":
        journal = harmed.run.journal_paths()["b"]
        assert whole_bytes(journal) < journal.stat().st_size, "the last line is cut in half"
    harmed.told()
    assert_rollouts_kept(harmed.run)
    assert_mirrored(harmed.run, "KILLED" if state == "stopped" else "FAILED")
    harmed.resumed()
    assert settle(harmed.run).attempt == 2 and settle(harmed.run).step == STEPS
    assert_same_training(undisturbed().run, harmed.run)
    assert_mirrored(harmed.run, "FINISHED")
