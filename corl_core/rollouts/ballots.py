"""The ballots of all agents of a run, aligned question by question, as arrays; votes and what is right follow from them.

A *draw* is one question in one step (or one of its groups, where it makes several). Canonical answers are numbers here
(`keys[code]` is the text), the same for votes, pseudo-labels and truths, so every comparison is one of integers. An agent
that has no group for a draw (its shard is not written yet) is absent there: it has no vote and is left out of what
is counted. As everywhere, a vote that was not cast is wrong where the truth is known.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from corl_core.rollouts.index import SCHEMA, load, stamps
from corl_core.rollouts.tally import NONE, Array, Tally, tally


@dataclass(frozen=True)
class Ballots:
    """A agents, D draws in step order, at most V ballots in a group, Q questions."""

    agents: tuple[str, ...]
    keys: Array  # (num_keys,) canonical answers as text
    question_ids: Array  # (Q,)
    texts: tuple[str, ...]  # (Q,) the wordings that were asked, a line each
    step: Array  # (D,)
    question: Array  # (D,) place in question_ids
    group: Array  # (D,) 0, or 1 for the second group of one question in one step
    truth: Array  # (D,) code; NONE: unknown
    codes: Array  # (A, D, V) the ballots in sampling order, padded with NONE
    size: Array  # (A, D) rollouts in the group; 0 where the agent is absent
    labels: Array  # (A, D) pseudo-label received; NONE: unlabelled or absent
    tie: str = "first"
    problems: tuple[str, ...] = ()  # a sentence for each shard that could not be read

    @property
    def num_draws(self) -> int:
        """Questions asked over all steps."""
        return len(self.step)

    @property
    def num_rollouts(self) -> int:
        """Rollouts of all agents."""
        return int(self.size.sum())

    @property
    def present(self) -> Array:
        """Whether an agent has a group for a draw, (A, D)."""
        return self.size > 0

    @property
    def known(self) -> Array:
        """Whether the truth is known, (D,)."""
        return self.truth != NONE

    @cached_property
    def tallies(self) -> tuple[Tally, ...]:
        """How each agent's groups voted, (D,) each."""
        return tuple(tally(codes, tie=self.tie) for codes in self.codes)

    @cached_property
    def votes(self) -> Array:
        """The code of each vote, (A, D); NONE where none is cast."""
        return np.stack([one.vote for one in self.tallies])

    @cached_property
    def right(self) -> Array:
        """Whether a vote is the known truth, (A, D)."""
        return (self.votes == self.truth) & self.known

    @cached_property
    def wrong(self) -> Array:
        """Whether the truth is known and an agent that is present does not vote for it, (A, D)."""
        return ~self.right & self.known & self.present

    def text(self, code: int) -> str | None:
        """A canonical answer; None for NONE."""
        return None if code == NONE else str(self.keys[code])

    def place(self, agent: str) -> int:
        """The agent's place on the first axis."""
        return self.agents.index(agent)

    def table(self, draws: Array | None = None) -> pd.DataFrame:
        """One row an agent and draw where it is present: step, question_id, group, agent, vote, count, parsed, size, share,
        tied, truth, right (empty where the truth is unknown) and pseudo_label."""
        chosen = np.arange(self.num_draws) if draws is None else draws
        parts = [self._rows(place, chosen) for place in range(len(self.agents))]
        return pd.concat(parts).sort_values(["step", "draw"], kind="stable", ignore_index=True)

    def _rows(self, place: int, draws: Array) -> pd.DataFrame:
        at, cast = draws[self.size[place, draws] > 0], self.tallies[place]
        right = pd.array(self.right[place, at], dtype="boolean")
        right[~self.known[at]] = pd.NA
        columns = {
            "draw": at, "step": self.step[at], "question_id": self.question_ids[self.question[at]], "group": self.group[at],
            "agent": self.agents[place], "vote": self._texts(cast.vote[at]), "count": cast.count[at],
            "parsed": cast.parsed[at], "size": self.size[place, at], "share": cast.share[at], "tied": cast.tied[at],
            "truth": self._texts(self.truth[at]), "right": right, "pseudo_label": self._texts(self.labels[place, at]),
        }  # fmt: skip
        return pd.DataFrame(columns)

    def _texts(self, codes: Array) -> Array:
        return np.append(self.keys, np.array([None], dtype=object))[codes]  # NONE is -1, so the last


def run_stamps(run_path: Path, agents: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What a run's ballots depend on, agent by agent: their shards."""
    return tuple(stamps(run_path / "agents" / agent) for agent in agents)


def run_ballots(run_path: Path, agents: Sequence[str], group_size: int, tie: str = "first") -> Ballots:
    """The ballots of a run; the agents' index files are made or extended where they have to be."""
    found = [load(run_path / "agents" / agent, group_size) for agent in agents]
    problems = tuple(f"{agent}: {text}" for agent, one in zip(agents, found, strict=True) for text in one.problems)
    return aligned(agents, [one.table for one in found], tie, problems)


def aligned(agents: Sequence[str], tables: Sequence[pa.Table], tie: str = "first", problems: Sequence[str] = ()) -> Ballots:
    """One index table an agent (index.SCHEMA) to Ballots."""
    rows = pa.concat_tables([*tables, SCHEMA.empty_table()]).combine_chunks()
    ends = np.cumsum([len(table) for table in tables])
    owner = np.repeat(np.arange(len(tables)), [len(table) for table in tables])  # (R,)
    lists = rows["keys"].combine_chunks() if rows["keys"].num_chunks else pa.array([], SCHEMA.field("keys").type)
    size = lists.value_lengths().fill_null(0).to_numpy(zero_copy_only=False).astype(np.int32)  # (R,)
    coded, keys = _encoded([lists.flatten(), rows["pseudo_label"], rows["truth"]])
    (question,), ids = _encoded([rows["question_id"]])
    step, group = rows["step"].to_numpy(), rows["group"].to_numpy()
    draw, first = _draws(step, question, group)  # (R,), (D,)
    shape = (len(tables), len(first))
    codes = np.full((*shape, int(size.max(initial=0))), NONE, dtype=np.int32)
    column = np.arange(len(coded[0])) - np.repeat(np.cumsum(size) - size, size)
    codes[np.repeat(owner, size), np.repeat(draw, size), column] = coded[0]
    sizes, labels = np.zeros(shape, dtype=np.int32), np.full(shape, NONE, dtype=np.int32)
    sizes[owner, draw], labels[owner, draw] = size, coded[1]
    truth = np.full(len(first), NONE, dtype=np.int32)
    told = coded[2] != NONE
    truth[draw[told]] = coded[2][told]
    assert not len(ends) or ends[-1] == len(rows)
    return Ballots(
        tuple(agents), keys, ids, _texts(question, rows["question"], len(ids)), step[first], question[first], group[first],
        truth, codes, sizes, labels, tie, tuple(problems),
    )  # fmt: skip


def _encoded(columns: Sequence[pa.Array | pa.ChunkedArray]) -> tuple[list[Array], Array]:
    """Columns of text as numbers with one dictionary for all; null is NONE."""
    chunks = [chunk for column in columns for chunk in (column.chunks if isinstance(column, pa.ChunkedArray) else [column])]
    encoded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    codes = encoded.indices.fill_null(NONE).to_numpy(zero_copy_only=False).astype(np.int32)
    lengths = [len(column) for column in columns]
    return np.split(codes, np.cumsum(lengths)[:-1]), np.array(encoded.dictionary.to_pylist(), dtype=object)


def _draws(step: Array, question: Array, group: Array) -> tuple[Array, Array]:
    """The draw of each row, and a row of each draw: in step order, within a step as the questions were asked."""
    widest, most = int(question.max(initial=0)) + 1, int(group.max(initial=0)) + 1
    code, _ = pd.factorize((step.astype(np.int64) * widest + question) * most + group)
    first = np.full(code.max(initial=-1) + 1, len(code), dtype=np.int64)
    np.minimum.at(first, code, np.arange(len(code)))
    order = np.argsort(step[first], kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return place[code], first[order]


def _texts(question: Array, texts: pa.ChunkedArray, num: int) -> tuple[str, ...]:
    (code,), words = _encoded([texts])
    pairs = pd.DataFrame({"question": question, "text": code}).drop_duplicates()
    asked: list[list[str]] = [[] for _ in range(num)]
    for place, text in zip(pairs["question"], pairs["text"], strict=True):
        if text != NONE:
            asked[place].append(words[text])
    return tuple("\n".join(wordings) for wordings in asked)
