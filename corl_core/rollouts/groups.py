"""One question at one step: every agent's rollouts with their answers, rewards, advantages and texts.

    advantage = (r − mean of the group) / (std of the group + 1e-4),    std with K − 1 in its denominator

as TRL's GRPOTrainer computes it for `scale_rewards: group` (arXiv 2402.03300, Eq. 3, but for the 1e-4 and the sample
std); with `batch` the std is that of all rewards of the step's labelled groups, with `none` there is no divisor. Only the
rollouts that were trained on have one; a group without a label has no reward, hence advantage 0.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

import numpy as np
import pyarrow as pa

from corl_core.answers import Answer, answer
from corl_core.rollouts.index import PARTING, starts
from corl_core.rollouts.shards import Shard, ShardError, at, read, shards
from corl_core.runs.folder import Run
from corl_core.votes import Vote, passes, vote

STD_FLOOR = 1e-4  # added to the std, as in TRL
COLUMNS = ("step", "question_id", "question", "completion", "answer", "key", "outcome", "pseudo_label", "reward", "truth",
           "trained", *PARTING)  # fmt: skip


@dataclass(frozen=True)
class Rollout:
    """A completion with its parsed answer, and what it was worth."""

    completion: str
    answer: Answer | None
    outcome: str
    reward: float | None  # None: unlabelled
    advantage: float | None  # None: voted only
    trained: bool


@dataclass(frozen=True)
class Group:
    """The K rollouts of one agent on one question in one step, and the vote that they cast."""

    agent: str
    question: str
    rollouts: tuple[Rollout, ...]
    vote: Vote
    counts: bool  # the vote has the share that a pseudo-label needs
    pseudo_label: str | None  # canonical key of the label received
    truth: str | None  # canonical key

    @property
    def counted(self) -> list[tuple[str | None, list[Rollout]]]:
        """Canonical answers with their rollouts, the most common first and None (did not parse) last."""
        keys = Counter(_key(rollout) for rollout in self.rollouts)
        order = sorted(keys, key=lambda key: (key is None, -keys[key]))  # stable: then as first sampled
        return [(key, [rollout for rollout in self.rollouts if _key(rollout) == key]) for key in order]


def read_groups(run: Run, step: int, question_id: str, group: int = 0) -> tuple[list[Group], list[str]]:
    """What each agent made of a question at a step, in cohort order; agents without such rows are left out. And a sentence
    for each agent whose file cannot be read. `group` counts the groups of that question in that step."""
    found, problems = [], []
    for agent in run.config.agents:
        try:
            one = _read_group(run, agent.name, step, question_id, group)
        except ShardError as error:
            problems.append(f"{agent.name}: {error}")
        else:
            found += [one] if one else []
    return found, problems


def _read_group(run: Run, agent: str, step: int, question_id: str, group: int) -> Group | None:
    shard = at(shards(run.agent_path(agent) / "rollouts"), step)
    if shard is None:
        return None
    rows = read(shard, COLUMNS, step, question_id)
    first = np.append(starts(rows, run.config.num_votes), len(rows))
    if group >= len(first) - 1:
        return None
    own = rows.slice(first[group], first[group + 1] - first[group])
    return _group(agent, own, run, _batch_std(shard, step, run.config.grpo.scale_rewards))


def advantages(rewards: Sequence[float], scale: str = "group", batch_std: float = 0.0) -> list[float]:
    """TRL's advantages of one group, (K,). `scale` as in GRPOConfig; `batch_std` is read for `batch` alone."""
    if len(rewards) < 2:
        return [0.0] * len(rewards)
    mean = fmean(rewards)
    divisor = {"group": stdev(rewards) + STD_FLOOR, "batch": batch_std + STD_FLOOR, "none": 1.0}[scale]
    return [(value - mean) / divisor for value in rewards]


def _key(rollout: Rollout) -> str | None:
    return rollout.answer.key if rollout.answer else None


def _batch_std(shard: Shard, step: int, scale: str) -> float:
    """The std of a step's rewards where the advantages need it: those of labelled groups."""
    if scale != "batch":
        return 0.0
    rows = read(shard, ("reward", "trained"), step).to_pylist()
    rewards = [row["reward"] for row in rows if row["reward"] is not None and row["trained"] in (True, None)]
    return stdev(rewards) if len(rewards) > 1 else 0.0


def _group(agent: str, table: pa.Table, run: Run, batch_std: float) -> Group:
    rows, config = table.to_pylist(), run.config
    trained = [row["trained"] in (True, None) for row in rows]
    worth = advantages([row["reward"] or 0.0 for row, used in zip(rows, trained, strict=True) if used],
                       config.grpo.scale_rewards, batch_std)  # fmt: skip
    each = iter(worth)
    rollouts = tuple(
        Rollout(
            completion=row["completion"] or "",
            answer=Answer(row["answer"] or row["key"], row["key"]) if row["key"] is not None else None,
            outcome=row["outcome"] or "",
            reward=row["reward"],
            advantage=next(each) if used else None,
            trained=used,
        )
        for row, used in zip(rows, trained, strict=True)
    )
    cast = vote([rollout.answer for rollout in rollouts], config.vote.tie)
    truth = answer(rows[0]["truth"]) if rows[0]["truth"] else None
    return Group(agent, rows[0]["question"] or "", rollouts, cast, passes(cast, config.vote.min_share), rows[0]["pseudo_label"],
                 truth.key if truth else None)  # fmt: skip
