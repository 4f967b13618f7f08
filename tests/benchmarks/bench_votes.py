"""How fast the Votes page opens on a run with a million rollouts: `python -m tests.benchmarks.bench_votes [--runs DIR]`.

Makes the run once (3 agents × 2,605 steps × 16 questions × 8 rollouts = 1,000,320 rollouts, in shards like the recorder's)
and prints, in seconds of wall and of CPU time: making the index, extending it by one shard of each agent, opening it again,
each thing that the page asks of it, and the page itself through Streamlit's AppTest, after the app's imports.
"""

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from corl_core.rollouts import agreement, filters, groups, whatif
from corl_core.rollouts.ballots import run_ballots
from corl_core.rollouts.index import FILE
from corl_core.runs.folder import Run
from corl_core.training.recorder import ROLLOUT_SCHEMA, SHARD_STEPS
from tests.benchmarks.visits import timed, visit
from tests.pages.made_runs import make_run, run_config

STEPS, QUESTIONS, K, POOL = 2_605, 16, 8, 6_000
WORDS = "First I add the ones and keep what is carried over. Then I add the tens, and the carry to them. "


def make(runs_dir: Path) -> Run:
    """A run with a million rollouts: three agents that grow right from 45% to 90%, each with a slip of its own."""
    config = run_config("million", steps=STEPS)
    config = config.model_copy(update={"grpo": config.grpo.model_copy(update={"questions_per_step": QUESTIONS})})
    run = make_run(runs_dir, config, logged=False)
    order = np.random.default_rng(0).integers(0, POOL, (STEPS, QUESTIONS))
    names = [agent.name for agent in config.agents]
    answers = {name: drawn(order, place) for place, name in enumerate(names)}
    votes = {name: np.apply_along_axis(most_common, 2, answers[name]) for name in names}
    for name, peer in config.peers().items():
        for first in range(0, STEPS, SHARD_STEPS):
            write_shard(run, name, first, order, answers[name], votes[peer])
    return run


def drawn(order: np.ndarray, place: int) -> np.ndarray:
    """An agent's answers, (STEPS, QUESTIONS, K); -1 does not parse. The truth of question q is 3q; a slip adds 1 + place."""
    random = np.random.default_rng(place + 1)
    shape = (*order.shape, K)
    level = np.linspace(0.45, 0.9, STEPS)[:, None, None] - 0.3 * (order % 3 == place)[:, :, None]
    wrong = 3 * order[:, :, None] + np.where(random.random(shape) < 0.7, 1 + place, random.integers(4, 40, shape))
    found = np.where(random.random(shape) < level, 3 * order[:, :, None], wrong)
    return np.where(random.random(shape) < 0.03, -1, found)


def most_common(group: np.ndarray) -> int:
    """The vote of a group; -1 when nothing parsed."""
    parsed = group[group >= 0]
    return int(np.bincount(parsed).argmax()) if len(parsed) else -1


def write_shard(run: Run, agent: str, first: int, order: np.ndarray, answers: np.ndarray, labels: np.ndarray) -> None:
    steps = slice(first, min(first + SHARD_STEPS, STEPS))
    key = answers[steps].reshape(-1)
    question = np.repeat(order[steps].reshape(-1), K)
    label = np.repeat(labels[steps].reshape(-1), K)
    text = [None if value < 0 else str(value) for value in key.tolist()]
    columns = {
        "step": np.repeat(np.arange(steps.start, steps.stop), QUESTIONS * K),
        "group": np.tile(np.repeat(np.arange(QUESTIONS), K), steps.stop - steps.start),
        "question_id": [f"q{value}" for value in question],
        "question": [f"What is {value} + {2 * value}? Explain." for value in question],
        "agent": [agent] * len(key),
        "completion": [WORDS * (1 + at % 4) + ("so." if one is None else f"\\boxed{{{one}}}") for at, one in enumerate(text)],
        "answer": text, "key": text, "outcome": ["no_box" if one is None else "parsed" for one in text],
        "pseudo_label": [None if value < 0 else str(value) for value in label.tolist()],
        "reward": np.where(label < 0, np.nan, (key == label).astype(float)),
        "truth": [str(3 * value) for value in question], "trained": [True] * len(key),
    }  # fmt: skip
    folder = run.agent_path(agent) / "rollouts"
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{steps.start:06d}-{steps.stop - 1:06d}.parquet"
    pq.write_table(pa.table(columns, schema=ROLLOUT_SCHEMA), folder / name)


def bench_core(run: Run) -> str:
    """Times what the page asks for; returns the id of a question of step 1,300."""
    config = run.config
    names = [agent.name for agent in config.agents]

    def opened():
        return run_ballots(run.path, names, config.num_votes, config.vote.tie)

    with timed("index made from all shards, and opened"):
        ballots = opened()
    print(f"{ballots.num_rollouts:,} rollouts, {ballots.num_draws:,} draws of {len(ballots.question_ids):,} questions")
    last = [max((run.agent_path(name) / "rollouts").glob("*.parquet")) for name in names]
    away = [path.rename(path.with_suffix(".away")) for path in last]
    opened()
    for path in away:
        path.rename(path.with_suffix(".parquet"))
    with timed("index extended by one shard of each agent"):
        opened()
    with timed("index opened again"):
        ballots = opened()
    with timed("votes and what is right"):
        _ = ballots.right
    for kind in filters.FILTERS:
        with timed(f"filter: {kind}"):
            filters.matching(ballots, kind, since=100)
    with timed("text search"):
        filters.searched(ballots, "11 + 22")
    asked = str(ballots.question_ids[ballots.question[1_300 * QUESTIONS]])
    with timed("one question at one step, with its completions"):
        groups.read_groups(run, 1_300, asked)
    with timed("agreement with the truth of a pair"):
        agreement.decomposed(ballots, names[0], names[1])
    for num_votes, share in ((None, 0.0), (4, 0.75)):
        with timed(f"what-if replay of every rule, K' {num_votes or K}, threshold {share}"):
            whatif.replay(ballots, num_votes, share)
    return asked


def bench_page(run: Run, asked: str) -> None:
    """The page as a server draws it; `asked` is a question of step 1,300."""
    visit(run.path.parent, "overview", "the list of runs, with all imports")
    visit(run.path.parent, "votes", "Votes, first visit, index there", run=run.id)
    visit(run.path.parent, "votes", "Votes again", run=run.id)
    visit(run.path.parent, "votes", "Votes, filtered", run=run.id, filter="Both wrong, same answer")
    visit(run.path.parent, "votes", "Votes, one question by its link", run=run.id, step="1300", question=asked)
    visit(run.path.parent, "votes", "Votes, agreement", run=run.id, view="Agreement")
    visit(run.path.parent, "votes", "Votes, what-if", run=run.id, view="What-if")
    visit(run.path.parent, "votes", "Votes, what-if, 4 rollouts vote", run=run.id, view="What-if", votes="4")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--runs", type=Path, help="Folder in which the run is made, or found when it is there already.")
    runs_dir = arguments.parse_args().runs or Path(tempfile.mkdtemp())
    runs_dir.mkdir(parents=True, exist_ok=True)
    found = [Run(path.parent) for path in runs_dir.glob("*-million-*/run.yaml")]
    with timed("run made" if not found else "run found"):
        run = found[0] if found else make(runs_dir)
    for path in run.path.glob(f"agents/*/{FILE}"):
        path.unlink()
    bench_page(run, bench_core(run))


if __name__ == "__main__":
    main()
