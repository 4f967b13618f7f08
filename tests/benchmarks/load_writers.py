"""A cohort that writes without training: `python -m tests.benchmarks.load_writers RUNS_DIR [--agents 8] [--every 2]`.

One process stands for a supervisor and its agents. Journals, shards of rollouts, alarms, the cohort's metrics, the heartbeat and
MLflow are written by the code that training writes them with; only the answers are drawn from a coin that gets better. A step of
all agents comes every `--every` seconds, which is fast: a step of a 1.5 B model on one GPU takes ten or more. Ends at SIGTERM.
"""

import argparse
import os
import random
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import psutil

from corl_core.answers import Answer
from corl_core.config import RunConfig
from corl_core.diagnostics import Step
from corl_core.runs import launch
from corl_core.runs.alarms import Bell
from corl_core.runs.cohort import CohortMetrics
from corl_core.runs.folder import Run, read_status, start_of, update_status
from corl_core.runs.journal import Journal, Tail
from corl_core.tracking.log import Tracker
from corl_core.training.recorder import Recorder
from corl_core.votes import Vote, vote

QUESTIONS, K, STEPS, EVAL_STEPS = 8, 8, 100_000, 25
WORDS = "First the ones are added and what is over is carried, then the tens with what was carried. " * 2


def config(num_agents: int) -> RunConfig:
    """A ring of so many agents."""
    return RunConfig.model_validate({
        "name": "under load", "agents": [{"name": f"agent-{number}", "model": "tiny:llama"} for number in range(num_agents)],
        "data": {"train": "arithmetic", "prompt_template": "{question}"}, "device": "cpu",
        "grpo": {"max_steps": STEPS, "questions_per_step": QUESTIONS, "num_generations": K},
    })  # fmt: skip


class Cohort:
    """The run, and what its agents have said so far."""

    def __init__(self, run: Run):
        me = psutil.Process()
        self.run, self.config = run, run.config
        self.status = replace(read_status(run.path), state="running", pid=me.pid, pid_created=start_of(me), started=time.time())
        self._recorders = {agent.name: Recorder(run.agent_path(agent.name), agent.name) for agent in self.config.agents}
        self._tails = {name: Tail(path) for name, path in run.journal_paths().items() if name}
        self._journal = Journal(run.path / "journal.jsonl")
        self._metrics, self._bell, self._coin = CohortMetrics(self.config), Bell(self.config), random.Random(0)

    def step(self, step: int, took_s: float) -> None:
        """One step of every agent, told as agents and supervisor tell it."""
        ids = [f"q{self._coin.randrange(5_000)}" for _ in range(QUESTIONS)]
        truths = tuple(str(3 * int(one[1:])) for one in ids)
        groups = {name: [self._group(truth, step) for truth in truths] for name in self._recorders}
        votes = {name: tuple(vote(group) for group in mine) for name, mine in groups.items()}
        for name, peer in self.config.peers().items():
            self._tell(name, step, ids, truths, groups[name], votes[name], votes[peer], took_s)
        for name, tail in self._tails.items():
            for line in tail.read():
                for event in [*self._bell.add(name, line), *self._metrics.add(name, line)]:
                    self._journal.write(**event)
        self.status = replace(self.status, step=step + 1, alarms=[asdict(alarm) for alarm in self._bell.alarms])

    def _group(self, truth: str, step: int) -> list[Answer | None]:
        level = 0.5 + 0.4 * step / (step + 300)
        drawn = [truth if self._coin.random() < level else str(int(truth) + self._coin.randrange(1, 4)) for _ in range(K)]
        return [Answer(text, text) if self._coin.random() < 0.97 else None for text in drawn]

    def _tell(
        self, name: str, step: int, ids: list[str], truths: tuple[str, ...], groups: list[list[Answer | None]],
        votes: tuple[Vote, ...], peers: tuple[Vote, ...], took_s: float,
    ) -> None:  # fmt: skip
        labels = tuple(cast.key for cast in peers)
        keys = tuple(tuple(answer.key if answer else None for answer in group) for group in groups)
        rewards = tuple(tuple(float(key == label) for key in group) for group, label in zip(keys, labels, strict=True))
        rows = [
            _row(place, ids[place], truths[place], labels[place], key, reward)
            for place in range(QUESTIONS) for key, reward in zip(keys[place], rewards[place], strict=True)
        ]  # fmt: skip
        self._recorders[name].rollouts(step, rows)
        measured = {
            "step_time_s": took_s, "tokens": 2_000.0 * (step + 1), "loss": self._coin.gauss(0, 0.01), "grad_norm": 1.0,
            "entropy": 0.5, "completions/mean_length": 30.0, "completions/clipped_ratio": 0.0, "learning_rate": 1e-6,
        }  # fmt: skip
        self._recorders[name].step(step, ids, Step(keys, votes, labels, rewards, truths), measured)
        if step % EVAL_STEPS == 0:
            right = sum(group.count(truth) for group, truth in zip(keys, truths, strict=True))
            told = {"questions": ids, "votes": [cast.key for cast in votes], "truths": list(truths)}
            self._recorders[name].journal.write("eval", step=step, metrics={"eval/accuracy": right / (QUESTIONS * K)}, **told)

    def beat(self) -> None:
        self.status = replace(self.status, heartbeat=time.time(), beat=time.monotonic())
        update_status(self.run.path, self.status)


def _row(place: int, question: str, truth: str, label: str | None, key: str | None, reward: float) -> dict[str, Any]:
    return {
        "group": place, "question_id": question, "question": f"How much is {truth} + 0?",
        "completion": WORDS + (f"\\boxed{{{key}}}" if key else "?"), "answer": key, "key": key,
        "outcome": "parsed" if key else "no_box", "pseudo_label": label, "reward": reward, "truth": truth, "trained": True,
    }  # fmt: skip


def write(runs_dir: Path, num_agents: int, every_s: float, over: Callable[[], bool]) -> None:
    """The whole life of the cohort."""
    run = launch.create(config(num_agents), runs_dir)
    cohort, tracker, begun, step = Cohort(run), Tracker(run), time.monotonic(), 0
    tracker.start()
    while not over():
        if time.monotonic() >= begun + step * every_s:
            cohort.step(step, every_s)
            step += 1
        cohort.beat()
        time.sleep(max(0.01, min(1.0, begun + step * every_s - time.monotonic())))
    cohort.status = replace(cohort.status, state="stopped", ended=time.time())
    cohort.beat()
    tracker.finish(cohort.status, 20.0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs_dir", type=Path)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two steps")
    given, ended = parser.parse_args(), threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    parent = os.getppid()
    write(given.runs_dir, given.agents, given.every, lambda: ended.is_set() or os.getppid() != parent)
