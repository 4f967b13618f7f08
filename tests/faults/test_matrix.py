"""Every fault at every place, each cell in a run of its own: `make faults`. The suite takes a sample of these, `test_kill.py`."""

from collections.abc import Callable

import pytest

from corl_core.runs import launch
from corl_core.runs.settle import settle
from tests.faults.conftest import STEPS, Fault, assert_mirrored, assert_same_training
from tests.faults.test_disk import vanish
from tests.faults.test_kill import (
    Cell,
    befall,
    kill_agent,
    kill_everything,
    kill_supervisor,
    terminate_agent,
    terminate_supervisor,
)
from tests.faults.test_stall import halted

pytestmark = pytest.mark.faults
PLACES = {"start": 0, "generation": 5, "exchange": 5, "update": 5, "checkpoint": 8, "logging": 7}  # place → step
WHERE = {"start": "while waiting for the peer"} | {place: f"in round {step}" for place, step in PLACES.items() if step}


def stop(fault: Fault) -> None:
    launch.stop(fault.run)


def cell(fault: Callable[[Fault], None], place: str) -> Cell:
    ends = {
        kill_agent: ("failed", "killed", f"agent 'b' was killed by SIGKILL {WHERE[place]}"),
        kill_supervisor: ("failed", "killed", "the supervisor was killed"),
        kill_everything: ("failed", "killed", "the supervisor was killed"),
        terminate_agent: ("stopped", "", "agent 'b' was told to end by SIGTERM"),
        terminate_supervisor: ("stopped", "", ""),
        stop: ("stopped", "", ""),
    }
    return Cell(place, PLACES[place], fault, *ends[fault])


FAULTS = (kill_agent, kill_supervisor, kill_everything, terminate_agent, terminate_supervisor, stop)


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_run_that_is_ended_says_so_leaves_nothing_and_goes_on(fault, place, faulty, undisturbed):
    harmed = faulty(hold={f"b.{place}": PLACES[place]})
    befall(harmed, cell(fault, place), attempt=1)
    harmed.resumed()
    assert settle(harmed.run).attempt == 2 and settle(harmed.run).step == STEPS
    assert_same_training(undisturbed(), harmed.run)
    assert_mirrored(harmed.run, "FINISHED")


@pytest.mark.parametrize("place", PLACES)
def test_an_agent_that_is_suspended_is_named_and_goes_on(place, faulty, undisturbed):
    harmed = faulty(hold={f"b.{place}": PLACES[place]})
    harmed.reached("b", place)
    suspended = harmed.agent("b")
    halted(harmed, suspended)
    harmed.within_a_heartbeat(lambda: harmed.run.status().state == "stalled", "the stall is seen")
    harmed.within_a_heartbeat(lambda: f"agent 'b' is suspended {WHERE[place]}" in harmed.run.status().reason, "its name is told")
    suspended.resume()
    harmed.within_a_heartbeat(lambda: harmed.run.status().state in ("starting", "running"), "it goes on")
    harmed.let_go("b", place)
    harmed.ended("finished")
    harmed.gone()
    assert_same_training(undisturbed(), harmed.run)
    assert_mirrored(harmed.run, "FINISHED")


@pytest.mark.parametrize("place", PLACES)
def test_a_run_whose_folder_is_deleted_leaves_nothing(place, faulty):
    harmed = faulty(hold={f"b.{place}": PLACES[place]})
    harmed.reached("b", place)
    vanish(harmed)
