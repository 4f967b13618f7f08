"""Processes that are killed, told to end, or refused a write, wherever it hurts: the run says so, leaves nothing behind, and can
go on.

A cell is a place and a fault. Faults differ by who dies and how; places by what is half done then. Each place is met once by a
SIGKILL, and each fault once: a second fault at the same place ends through the same code. The cells of a chain befall one run,
one after the other, each in the attempt that goes on after the last; what is left at the end is the undisturbed run.
"""

import resource
import signal
from collections.abc import Callable
from dataclasses import dataclass

import psutil
import pytest

from corl_core.runs import checkpoints
from corl_core.runs.folder import read_status
from corl_core.runs.journal import whole_bytes
from corl_core.runs.settle import settle
from tests.faults.conftest import STEPS, Fault, assert_mirrored, assert_rollouts_kept, assert_same_training, slowness

pytestmark = pytest.mark.training
LARGEST_FILE = 65_536  # bytes: more than a journal has by then, and less than any weights


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


def limit_the_files_of_an_agent(fault: Fault) -> None:
    fault.agent("b").rlimit(resource.RLIMIT_FSIZE, (LARGEST_FILE, LARGEST_FILE))


KILLS_SUPERVISOR = (kill_supervisor, kill_supervisor_of_a_suspended_agent, kill_everything)
KILLS = (kill_agent, *KILLS_SUPERVISOR)
KNOWN_BY_ITS_AGENT = (terminate_agent, limit_the_files_of_an_agent)  # until that ends


@dataclass(frozen=True)
class Cell:
    """Where `b` is held, in which step, what befalls the run then, and what it says of it."""

    place: str
    step: int
    fault: Callable[[Fault], None]
    state: str = "failed"
    cause: str = "killed"
    reason: str = "the supervisor was killed"


CHAINS = {
    "cores": (
        Cell("start", 0, kill_supervisor_of_a_suspended_agent),
        Cell("generation", 5, kill_agent, reason="agent 'b' was killed by SIGKILL in round 5"),
        Cell("exchange", 9, kill_everything),
        Cell("update", 13, terminate_agent, "stopped", "", "agent 'b' was told to end by SIGTERM"),
    ),
    "gpu": (
        Cell("checkpoint", 8, kill_agent, reason="agent 'b' was killed by SIGKILL in round 8"),
        Cell("logging", 7, kill_supervisor),
        Cell("update", 11, limit_the_files_of_an_agent, cause="file size limit", reason="agent 'b' failed in round 12: "),
        Cell("exchange", 14, terminate_supervisor, "stopped", "", ""),
    ),
}


@pytest.mark.parametrize("slots", CHAINS)
def test_a_run_that_is_harmed_says_so_and_goes_on(slots, faulty, undisturbed, monkeypatch):
    if slots == "gpu":  # one that the queue counts, and that torch does not find
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    first, *others = CHAINS[slots]
    harmed = faulty(hold={f"b.{first.place}": first.step}, device="cpu" if slots == "cores" else "auto")
    befall(harmed, first, attempt=1)
    for attempt, cell in enumerate(others, 2):
        harmed.go_on({f"b.{cell.place}": cell.step})
        befall(harmed, cell, attempt)
    harmed.resumed()
    assert settle(harmed.run).attempt == len(CHAINS[slots]) + 1 and settle(harmed.run).step == STEPS
    assert_same_training(undisturbed(), harmed.run)
    assert_mirrored(harmed.run, "FINISHED")


def befall(harmed: Fault, cell: Cell, attempt: int) -> None:
    """One cell, from a run under way to one that has ended and of which nothing is left."""
    harmed.reached("b", cell.place)
    if cell.place != "start":
        harmed.within_a_heartbeat(lambda: harmed.run.status().state == "running", "a run under way is told as one")
    assert harmed.taken() > 0 and harmed.run.status().attempt == attempt
    supervisor, agent = harmed.supervisor(), harmed.agent("b")
    cell.fault(harmed)
    if cell.fault in KILLS_SUPERVISOR:
        psutil.wait_procs([supervisor], timeout=10 * slowness())
        assert harmed.run.status().final, "a reader need not wait for any heartbeat"
    elif cell.fault not in KNOWN_BY_ITS_AGENT:
        harmed.is_told_to_end()
    if cell.fault not in KILLS:
        harmed.let_go("b", cell.place)
    if cell.fault in KNOWN_BY_ITS_AGENT:
        psutil.wait_procs([agent], timeout=60 * slowness())
        harmed.is_told_to_end()
    status = harmed.ended(cell.state, cell.cause)
    assert status.reason == cell.reason or (cell.reason.endswith(": ") and status.reason.startswith(cell.reason)), status.reason
    assert status.ended is not None
    assert read_status(harmed.run.path).state == cell.state, "whoever saw it has written it down"
    harmed.gone()
    _look_at_what_was_half_done(harmed, cell)
    harmed.told()
    assert_rollouts_kept(harmed.run)
    assert_mirrored(harmed.run, "KILLED" if cell.state == "stopped" else "FAILED")


def _look_at_what_was_half_done(harmed: Fault, cell: Cell) -> None:
    if cell.fault not in KILLS:
        return
    if cell.place == "checkpoint":
        folder = harmed.run.agent_path("b")
        assert checkpoints.path(folder, cell.step).exists() and checkpoints.complete(folder) == [cell.step - 4]
    if cell.place == "logging":
        journal = harmed.run.journal_paths()["b"]
        assert whole_bytes(journal) < journal.stat().st_size, "the last line is cut in half"
