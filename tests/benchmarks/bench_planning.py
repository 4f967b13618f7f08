"""How long the theory against a run, and the picker, take: `python -m tests.benchmarks.bench_planning [--answers FILE]`.

Against a run: 1,000 questions × 300 steps, 2 agents × K = 8, with `--per-step` questions in each step (16: 76,800 rollouts;
1,000: every question in every step, 4.8 million). Aim: under 3 s for a visit. The first one ever of a run also makes the index
of its ballots, which is then kept in the run's folder, and the first one of a server works out the predictions.

The picker and `python -m corl_core diversity` read FILE (such as the answers of four models to GSM8K that its authors publish,
github.com/openai/grade-school-math). Aim: under 2 s, the command's start included.
"""

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import streamlit as st

from corl_core.rollouts.ballots import run_ballots
from corl_core.rollouts.index import FILE
from corl_core.runs.folder import Run
from corl_core.theory import against_run
from corl_core.training.recorder import ROLLOUT_SCHEMA, SHARD_STEPS
from tests.benchmarks.visits import PROJECT, timed, visit
from tests.made_rollouts import made_run, small_config

QUESTIONS, STEPS, K = 1_000, 300, 8


def make(runs_dir: Path, per_step: int) -> Run:
    """Two agents whose questions drift from starts of their own to all right or all wrong; wrong answers come in three kinds."""
    run = made_run(runs_dir, [], small_config(k=K, grpo={"max_steps": STEPS}))
    random = np.random.default_rng(0)
    rounds = -(-STEPS * per_step // QUESTIONS)
    order = np.concatenate([random.permutation(QUESTIONS) for _ in range(rounds)])[: STEPS * per_step].reshape(STEPS, per_step)
    starts = random.beta(2, 2, (2, QUESTIONS))
    goal = starts.sum(axis=0) > 1
    done = np.linspace(0, 1, STEPS)[:, None]
    answers = []
    for start in starts:
        level = (1 - done) * start[order] + done * goal[order]
        wrong = 3 * order[..., None] + random.integers(1, 4, (*order.shape, K))
        answers.append(np.where(random.random(wrong.shape) < level[..., None], 3 * order[..., None], wrong))
    for place, agent in enumerate(run.config.agents):
        for first in range(0, STEPS, SHARD_STEPS):
            _write_shard(run, agent.name, first, order, answers[place], answers[1 - place])
    return run


def _write_shard(run: Run, agent: str, first: int, order: np.ndarray, own: np.ndarray, peers: np.ndarray) -> None:
    """The recorder's columns; the label is a peer's first answer, which costs as much to read as its vote."""
    steps, per_step = slice(first, min(first + SHARD_STEPS, STEPS)), order.shape[1]
    key, label = own[steps].ravel(), np.repeat(peers[steps, :, 0].ravel(), K)
    question, text = np.repeat(order[steps].ravel(), K), [str(value) for value in own[steps].ravel().tolist()]
    number = steps.stop - steps.start
    columns = {
        "step": np.repeat(np.arange(steps.start, steps.stop), per_step * K),
        "group": np.tile(np.repeat(np.arange(per_step), K), number),
        "question_id": [f"q{value}" for value in question], "question": [f"What is {value} + {2 * value}?" for value in question],
        "agent": [agent] * len(key), "completion": [f"so \\boxed{{{value}}}" for value in text], "answer": text, "key": text,
        "outcome": ["parsed"] * len(key), "pseudo_label": [str(value) for value in label.tolist()],
        "reward": (key == label).astype(np.float32), "truth": [str(3 * value) for value in question],
        "trained": [True] * len(key),
    }  # fmt: skip
    folder = run.agent_path(agent) / "rollouts"
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=ROLLOUT_SCHEMA), folder / f"{steps.start:06d}-{steps.stop - 1:06d}.parquet")


def bench_against_run(per_step: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        run = make(Path(folder), per_step)
        agents = [agent.name for agent in run.config.agents]
        visit(run.path.parent, "overview", "the list of runs, with all imports")
        view = {"view": "Against a run", "run": run.id}
        visit(run.path.parent, "theory", "Theory against the run, first visit ever, index made", **view)
        for index in run.path.glob(f"agents/*/{FILE}"):
            index.unlink()
        with timed("ballots indexed from all shards, once a run"):
            run_ballots(run.path, agents, K)
        with timed("ballots opened"):
            ballots = run_ballots(run.path, agents, K)
        print(f"{ballots.num_rollouts:,} rollouts, {ballots.num_draws:,} draws of {len(ballots.question_ids):,} questions")
        with timed("questions followed"):
            found = against_run.follow(ballots, "ring", run.config.peers())
        with timed("both predictions"):
            _ = found.rule, found.chance
        st.cache_resource.clear()
        visit(run.path.parent, "theory", "Theory against the run, first visit of a server", **view)
        visit(run.path.parent, "theory", "Theory against the run, again", **view)
        visit(run.path.parent, "theory", "Theory against the run, 1,000 paths", **view, paths="1000")


def bench_picker(answers: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        visit(Path(folder), "overview", "the list of runs, with all imports")
        visit(Path(folder), "picker", "Cohort picker, first visit of a server", answers=str(answers))
        visit(Path(folder), "picker", "Cohort picker, again", answers=str(answers))
    for more in ([], ["--no-predictions"]):
        command = ["-m", "corl_core", "diversity", "--answers", str(answers), "--json", *more]
        wall, cpu = time.perf_counter(), _cpu_of_children()
        subprocess.run([sys.executable, *command], cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)
        took = f"{time.perf_counter() - wall:7.2f} s  {_cpu_of_children() - cpu:7.2f} s CPU"
        print(f"{took}   python {' '.join(command[:3])} … {' '.join(command[5:])}", flush=True)


def _cpu_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--per-step", type=int, nargs="*", default=[16], help="questions in a step (default: 16)")
    arguments.add_argument("--answers", type=Path, help="a file of answers, for the picker")
    given = arguments.parse_args()
    for per_step in given.per_step:
        print(f"\n{QUESTIONS:,} questions × {STEPS} steps, {per_step:,} questions a step", flush=True)
        bench_against_run(per_step)
    if given.answers:
        print(f"\n{given.answers.name}", flush=True)
        bench_picker(given.answers.resolve())


if __name__ == "__main__":
    main()
