"""Runs that fail by themselves, for real: what their folder says of why. The words alone: `tests/test_causes.py`."""

import pytest

from corl_core.runs.folder import read_status

pytestmark = pytest.mark.training
ENDS = {  # place, step and harm → cause, reason
    "update 5 NaN": (
        "non-finite",
        "agent 'b' failed in round 6: grad_norm is nan at step 5; lower grpo.learning_rate or grpo.max_grad_norm",
    ),
    "generation 5 weights": (
        "non-finite",
        "agent 'b' failed in round 5: probability tensor contains either `inf`, `nan` or element < 0",
    ),
    "update 5 MemoryError": ("out of memory", "agent 'b' failed in round 5: MemoryError"),
    "update 5 OutOfMemoryError": ("out of memory", "agent 'b' failed in round 5: Tried to allocate 2.00 GiB"),
    "update 5 KeyError": ("unknown", "agent 'b' failed in round 5: KeyError: 'x'"),
    "update 5 exit": ("unknown", "agent 'b' ended with exit code 3 in round 5; the last line of its log: LibraryError: no way"),
}


@pytest.mark.parametrize("harm", ENDS)
def test_a_failure_is_told_with_its_cause_and_the_last_words(harm, faulty):
    place, what = harm.split(" ", 1)
    fault = faulty(hold={f"b.{place}.harm": what}, eval__num_questions=0)
    status = fault.ended("failed", ENDS[harm][0])
    assert status.reason == ENDS[harm][1]
    assert read_status(fault.run.path).reason == status.reason, "and it is written down"
    fault.gone()
