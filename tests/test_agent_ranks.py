"""A run whose agent trains in two processes: stopped, harmed, and gone on with."""

import os

import psutil
import pytest

from corl_core.runs import checkpoints, launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import read

pytestmark = pytest.mark.training


@pytest.fixture
def run(small_run, base_models, tmp_path) -> Run:
    agents = f"[{{name: a, model: {base_models['llama']}, placement: {{processes: 2}}}}]"
    fields = {"grpo__max_steps": 400, "checkpoints__every_steps": 4, "eval__every_steps": 400, "grpo__questions_per_step": 2}
    return launch.launch(small_run("ttrl", agents=agents, **fields), tmp_path)


def ranks(run: Run) -> list[psutil.Process]:
    """The agent's processes, rank 0 first."""
    started = psutil.Process(run.status().pid).children(recursive=True)
    first = next(one for one in started if os.getsid(one.pid) == one.pid)
    return [first, *(one for one in first.children() if one.cmdline() == first.cmdline())]


def goes_on(run: Run) -> bool:
    status = run.status()
    return status.state == "running" and status.step > status.attempt_step > 0


def test_a_dead_rank_is_named_a_stop_stops_both_and_the_run_goes_on(run, wait_for):
    folder = run.agent_path("a")
    wait_for(lambda: checkpoints.complete(folder), "a checkpoint", timeout_s=180)
    processes = ranks(run)
    assert len(processes) == 2
    processes[1].kill()
    wait_for(lambda: run.status().final, "the loss to be seen", timeout_s=30)
    status = run.status()
    assert status.state == "failed" and "rank 1 of 2 was killed by SIGKILL" in status.reason
    wait_for(lambda: not any(one.is_running() for one in processes), "both ranks to be gone", timeout_s=10)

    launch.resume(run)
    wait_for(lambda: goes_on(run), "the run to go on", timeout_s=180)
    processes = ranks(run)
    launch.stop(run)
    wait_for(lambda: run.status().final, "the run to stop", timeout_s=60)
    assert (run.status().state, run.status().reason) == ("stopped", "")
    stopped_at = run.status().step
    assert checkpoints.complete(folder)[-1] == stopped_at and (folder / "model" / "model.safetensors").exists()
    states = sorted(path.name for path in checkpoints.path(folder, stopped_at).glob("rng_state*"))
    assert states == ["rng_state_0.pth", "rng_state_1.pth"], "each rank goes on from its own random state"
    wait_for(lambda: not any(one.is_running() for one in processes), "both ranks to be gone", timeout_s=10)

    lines = read(run.journal_paths()["a"])
    assert [line["step"] for line in lines if line["event"] == "step"] == list(range(stopped_at)), "one record, rank 0's"
    assert [line["step"] for line in lines if line["event"] == "eval"] == [0, stopped_at]
