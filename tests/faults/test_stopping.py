"""What a run says between the moment that it is to end, and its end: its agents may take their time."""

import pytest

from corl_core.runs.folder import read_status
from tests.faults.conftest import FINAL, assert_mirrored

pytestmark = pytest.mark.training
WHY = "agent 'b' was killed by SIGKILL in round 5"


def kill_one_while_the_other_is_in_a_long_step(fault) -> None:
    fault.reached("a", "update")
    fault.reached("b", "update")
    fault.within_a_heartbeat(lambda: fault.run.status().state == "running", "a run under way is told as one")
    fault.agent("b").kill()
    fault.is_told_to_end()
    told = read_status(fault.run.path)
    assert (told.state, told.cause, told.reason) == ("stopping", "killed", WHY), "not final yet, for the other agent lives"
    assert fault.agent("a").is_running()


def test_a_failure_is_told_at_once_even_if_the_supervisor_does_not_live_to_see_the_end(faulty):
    fault = faulty(hold={"a.update": 5, "b.update": 5}, settings={"corl_core.runs.supervisor": {"GRACE_S": 120.0}})
    kill_one_while_the_other_is_in_a_long_step(fault)
    fault.supervisor().kill()
    assert fault.ended("failed", "killed").reason == WHY
    fault.gone()
    fault.told()
    assert_mirrored(fault.run, "FAILED")


def test_a_peer_that_does_not_end_in_time_changes_nothing_of_what_is_told(faulty):
    fault = faulty(hold={"a.update": 5, "b.update": 5})
    kill_one_while_the_other_is_in_a_long_step(fault)
    seen = {fault.run.status().state}
    fault.wait(lambda: seen.add(fault.run.status().state) or seen & set(FINAL), "the end")
    assert seen <= {"stopping", "failed"} and fault.ended("failed", "killed").reason == WHY
    fault.gone()
    assert_mirrored(fault.run, "FAILED")
