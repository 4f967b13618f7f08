"""A sample of a run's votes: whole groups of rollouts, of every agent, at steps spread evenly over the run.

One question a step: the first that the first agent was asked there. So a sample is the same whoever takes it, and a small
part of a run's rollouts is read.
"""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from corl_core.rollouts.shards import Shard, ShardError, at, read, shards
from corl_core.runs.folder import Run

COLUMNS = ("step", "question_id", "question", "truth", "agent", "pseudo_label", "answer", "key", "reward", "outcome", "trained",
           "completion")  # fmt: skip


@dataclass(frozen=True)
class Votes:
    """Rows of COLUMNS, in order of step, agent and sampling; `problem` says why there are none or fewer."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""

    @property
    def frame(self) -> pd.DataFrame:
        """The rows as a table."""
        return pd.DataFrame(self.rows, columns=list(COLUMNS))


def read_votes(run: Run, questions: int) -> Votes:
    """At most `questions` questions of a run. A shard that can't be read is told of, and left out."""
    agents = [agent.name for agent in run.config.agents]
    known = {agent: shards(run.agent_path(agent) / "rollouts") for agent in agents}
    first = known[agents[0]]
    if not first or not questions:
        return Votes(problem="" if not questions else "This run has kept no rollouts.")
    rows: list[dict[str, Any]] = []
    problem = ""
    for step in _spread(first, questions):
        try:
            rows += _at(known, step)
        except ShardError as error:
            problem = str(error)
    return Votes(rows, problem)


def _spread(known: list[Shard], questions: int) -> list[int]:
    """Steps spread evenly from the first to the last, each once."""
    steps = np.linspace(known[0].first, known[-1].last, questions).round().astype(int)
    return np.unique(steps).tolist()


def _at(known: dict[str, list[Shard]], step: int) -> list[dict[str, Any]]:
    """Every agent's rollouts of one question of a step; [] where the step has none. Raises ShardError."""
    question, rows = None, []
    for agent, own in known.items():
        shard = at(own, step)
        if shard is None:
            continue
        if question is None:
            asked = read(shard, ("step", "question_id"), step)
            question = asked["question_id"][0].as_py() if len(asked) else None
        if question is not None:
            found = read(shard, COLUMNS, step, question).to_pylist()
            rows += [{name: _plain(value) for name, value in row.items()} | {"agent": agent} for row in found]
    return rows


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
