"""A run that dies and is resumed is, from its last checkpoint on, the run that nobody disturbed: bit for bit on CPU."""

import json
import os
import shutil
import signal
import threading
from pathlib import Path

import pandas as pd
import pytest
from safetensors.torch import load_file

from corl_core.config import RunConfig
from corl_core.runs import checkpoints, launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import Journal, Tail, current, read
from corl_core.runs.launch import LaunchError
from corl_core.runs.supervisor import Supervisor

pytestmark = pytest.mark.training
STEPS = 72
FIELDS = {
    "grpo__max_steps": STEPS, "grpo__questions_per_step": 2, "grpo__num_generations": 4, "checkpoints__every_steps": 8,
    "eval__every_steps": 12, "eval__num_questions": 6,
}  # fmt: skip
METHODS = (
    "corl", "ttrl", "intuitor", "co_rewarding_1", "co_rewarding_2",
    *(pytest.param(method, marks=pytest.mark.faults) for method in ("ground_truth", "rent", "random", "format", "weighted")),
)  # fmt: skip
"""The first keep something from step to step, or sample in their own way; the others differ from these in the reward alone."""
TIMES = ("time_s", "wait_s")


def finish(run: Run) -> None:
    status = Supervisor(run).run()
    assert (status.state, status.reason, status.step) == ("finished", "", STEPS), run.log_tail("a")


def die_at(config: RunConfig, runs_dir: Path, step: int, wait_for, tries: int = 3) -> Run:
    """A run that trains until both agents are past a step, and whose processes then are killed. An agent that is ahead is held
    there: without an exchange it could be through before the other has begun. On a busy machine it may be through before it
    can be held; then another run is tried."""
    for _ in range(tries):
        run = launch.create(config, runs_dir)
        if _is_killed_at(run, step, wait_for):
            return run
    raise AssertionError(f"{tries} runs were over before they could be harmed")


def _is_killed_at(run: Run, step: int, wait_for) -> bool:
    supervisor = Supervisor(run)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    tails = {name: Tail(path) for name, path in run.journal_paths().items() if name}
    held, through = set(), set()

    def reached() -> bool:
        for name in tails.keys() - held:
            if any(line["step"] >= step for line in tails[name].read() if line["event"] == "step"):
                signalled(name, signal.SIGSTOP)
                held.add(name)
        return held == tails.keys()

    def signalled(name: str, number: int) -> None:
        try:
            os.kill(supervisor._agents[name].process.process.pid, number)
        except ProcessLookupError:
            through.add(name)

    wait_for(reached, f"step {step}", every_s=0.005)
    for name in tails:
        signalled(name, signal.SIGKILL)
    thread.join(60)
    assert not thread.is_alive()
    return not through and run.status().state != "finished"


def resumed(run: Run) -> int:
    """Goes on to the end; returns the step it went on from."""
    step = min(checkpoints.resume_steps(run).values())
    launch.reopen(run)
    finish(run)
    return step


def rollouts(run: Run, agent: str) -> pd.DataFrame:
    return pd.concat([pd.read_parquet(path) for path in run.rollout_files(agent)], ignore_index=True)


def measured(run: Run, agent: str) -> list[dict]:
    """What the journal says, without when and how fast."""
    lines = [line for line in read(run.journal_paths()[agent]) if line["event"] in ("step", "eval")]
    return [
        {key: value for key, value in line.items() if key not in ("time", "metrics")}
        | {"metrics": {key: value for key, value in line["metrics"].items() if not key.endswith(TIMES)}}
        for line in lines
    ]


def assert_same_run(first: Run, second: Run) -> None:
    for agent in "ab":
        ours, theirs = (load_file(run.agent_path(agent) / "model" / "model.safetensors") for run in (first, second))
        assert all(bool((ours[key] == theirs[key]).all()) for key in ours)
        pd.testing.assert_frame_equal(rollouts(first, agent), rollouts(second, agent))
        assert measured(first, agent) == measured(second, agent)
    assert measured(first, "") == measured(second, "")


def configuration(small_run, method: str, **fields):
    extra = {"signal__weights": "{corl: 1.0, rent: 0.1}"} if method == "weighted" else {}
    return small_run(method, **(FIELDS | extra | fields))


@pytest.mark.parametrize("method", METHODS)
def test_a_killed_run_goes_on_as_if_nothing_had_happened(method, small_run, tmp_path, wait_for):
    whole = launch.create(configuration(small_run, method), tmp_path / "whole")
    finish(whole)
    broken = die_at(configuration(small_run, method), tmp_path / "broken", 19, wait_for)
    assert broken.status().state == "failed" and broken.status().cause == "killed"
    assert 16 <= resumed(broken) < STEPS
    assert_same_run(whole, broken)
    assert broken.status().attempt == 2
    attempts = [line for line in Tail(broken.journal_paths()[""]).read() if line["event"] == "attempt"]
    assert [line["attempt"] for line in attempts] == [2]
    assert not checkpoints.folder(broken.agent_path("a")).exists(), "a finished run needs none"


def test_a_stopped_ring_goes_on_from_the_very_step_at_which_it_stopped(small_run, tmp_path, wait_for):
    whole = launch.create(configuration(small_run, "corl"), tmp_path / "whole")
    finish(whole)
    run = launch.create(configuration(small_run, "corl", checkpoints__every_steps=0), tmp_path / "stopped")
    supervisor = Supervisor(run)
    thread = threading.Thread(target=supervisor.run)
    thread.start()
    wait_for(lambda: any(line["event"] == "step" and line["step"] >= 10 for line in read(run.journal_paths()["a"])), "step 10")
    launch.stop(run)
    thread.join(60)
    assert run.status().state == "stopped"
    last = {agent: max(line["step"] for line in read(run.journal_paths()[agent]) if line["event"] == "step") for agent in "ab"}
    assert last["a"] == last["b"] < STEPS - 1, "all agents end after the same step"
    assert resumed(run) == last["a"] + 1
    for agent in "ab":
        pd.testing.assert_frame_equal(rollouts(whole, agent), rollouts(run, agent))


def test_a_run_without_a_checkpoint_starts_over(small_run, tmp_path, wait_for):
    whole = launch.create(configuration(small_run, "corl"), tmp_path / "whole")
    finish(whole)
    run = die_at(configuration(small_run, "corl", checkpoints__every_steps=0), tmp_path / "broken", 5, wait_for)
    assert resumed(run) == 0
    assert_same_run(whole, run)


def test_a_checkpoint_that_was_cut_off_does_not_count_and_a_torn_journal_line_is_dropped(small_run, tmp_path, wait_for):
    whole = launch.create(configuration(small_run, "corl"), tmp_path / "whole")
    finish(whole)
    run = die_at(configuration(small_run, "corl", checkpoints__keep=10), tmp_path / "broken", 18, wait_for)
    newest = checkpoints.complete(run.agent_path("b"))[-1]
    (checkpoints.path(run.agent_path("b"), newest) / checkpoints.COMPLETE).unlink()
    with run.journal_paths()["a"].open("a") as journal:
        journal.write('{"event": "step", "step": 9')
    step = resumed(run)
    assert step < newest and step % 8 == 0
    assert_same_run(whole, run)


def test_what_has_finished_or_runs_is_not_resumed(small_run, tmp_path):
    run = launch.create(configuration(small_run, "ttrl", grpo__max_steps=1, eval__num_questions=0), tmp_path)
    with pytest.raises(LaunchError, match="is starting: it can be resumed once it has ended"):
        launch.resume(run)
    Supervisor(run).run()
    with pytest.raises(LaunchError, match="has finished: there is nothing to resume"):
        launch.resume(run)


def test_of_two_attempts_the_later_counts_from_where_it_went_on(tmp_path):
    journal = Journal(tmp_path / "journal.jsonl")
    for step in range(5):
        journal.write("step", step=step, attempt=1)
    journal.write("eval", step=2, attempt=1)
    journal.write("eval", step=5, attempt=1)
    journal.write("error", kind="X", message="died")
    journal.write("attempt", step=2)
    journal.write("step", step=2, attempt=2)
    lines = read(tmp_path / "journal.jsonl")
    assert [(line["event"], line["step"], line.get("attempt")) for line in lines] == [
        ("step", 0, 1), ("step", 1, 1), ("eval", 2, 1), ("attempt", 2, None), ("step", 2, 2),
    ]  # fmt: skip
    assert current([*lines, {"event": "attempt", "step": 0}]) == [lines[3], {"event": "attempt", "step": 0}]


def test_agents_that_exchange_nothing_go_on_from_their_own_newest_checkpoint(small_run, tmp_path):
    for method, expected in (("ttrl", {"a": 16, "b": 8}), ("corl", {"a": 8, "b": 8})):
        run = launch.create(configuration(small_run, method), tmp_path / method)
        for agent, steps in (("a", (8, 16)), ("b", (8,))):
            for step in steps:
                folder = checkpoints.path(run.agent_path(agent), step)
                folder.mkdir(parents=True)
                (folder / checkpoints.COMPLETE).write_text(json.dumps({"step": step}))
        assert checkpoints.resume_steps(run) == expected
    shutil.rmtree(checkpoints.folder(run.agent_path("b")))
    assert checkpoints.resume_steps(run) == {"a": 0, "b": 0}


def test_two_clicks_resume_once(small_run, tmp_path, wait_for):
    run = die_at(configuration(small_run, "ttrl"), tmp_path, 9, wait_for)
    refused: list[str] = []

    def click() -> None:
        try:
            launch.resume(run)
        except LaunchError as error:
            refused.append(str(error))

    clicks = [threading.Thread(target=click) for _ in range(2)]
    [thread.start() for thread in clicks]
    [thread.join() for thread in clicks]
    assert len(refused) == 1 and "it can be resumed once it has ended" in refused[0]
    wait_for(lambda: run.status().final, "the end")
    assert run.status().state == "finished" and run.status().attempt == 2
