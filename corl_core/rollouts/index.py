"""An agent's ballots on disk: one row a group, made once from the few columns that voting needs.

`agents/NAME/votes.parquet` beside the rollouts holds step, question_id, question, group, keys (the canonical answers in
sampling order, null where none parsed), pseudo_label and truth (a canonical key). Votes, counts and ties are not stored:
they follow from the keys. Its metadata name the shards it was made from, so a live run adds its new shards alone, and a
file that is damaged, of another version, or of shards that are gone is made anew. It is written whole or not at all; in a
folder that cannot be written it lives in memory only.

A group is a stretch of rows of one question in one step. Where one question makes two groups in a step (two wordings),
a change in the column `group` or `wording` parts them; without such a column every `group_size` rows do.
"""

import json
import os
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from corl_core import answers
from corl_core.rollouts.shards import Shard, ShardError, read, shards
from corl_core.runs.inside import leads_out

FILE = "votes.parquet"
VERSION = 1
PARTING = ("group", "wording")
COLUMNS = ("step", "question_id", "question", "key", "pseudo_label", "truth", *PARTING)
SCHEMA = pa.schema(
    [
        ("step", pa.int32()), ("question_id", pa.string()), ("question", pa.string()), ("group", pa.int32()),
        ("keys", pa.list_(pa.string())), ("pseudo_label", pa.string()), ("truth", pa.string()),
    ]
)  # fmt: skip
_META = b"corl_votes"


@dataclass(frozen=True)
class Index:
    """The ballots of one agent (SCHEMA), in step order, and a sentence for each shard that could not be read."""

    table: pa.Table
    problems: tuple[str, ...] = ()
    num_new: int = 0  # shards that were read for it just now


def stamps(agent_folder: Path) -> tuple[str, ...]:
    """What the index depends on: the agent's shards, by name and size."""
    return tuple(shard.stamp for shard in shards(agent_folder / "rollouts"))


def load(agent_folder: Path, group_size: int) -> Index:
    """The agent's ballots as its shards now are; the file is made or extended where it has to be."""
    path, known = agent_folder / FILE, shards(agent_folder / "rollouts")
    elsewhere = leads_out(agent_folder.parents[1], path)  # then it is made anew
    table, done = (SCHEMA.empty_table(), []) if elsewhere else _stored(path, group_size)
    now = {shard.stamp: shard for shard in known}
    if set(done) - now.keys():
        table, done = SCHEMA.empty_table(), []
    added, problems = _ballots([shard for stamp, shard in now.items() if stamp not in done], group_size)
    if added:
        table = pa.concat_tables([_without(table, [shard for shard, _ in added]), *_latest(added)])
        table = table.take(np.argsort(table["step"].to_numpy(), kind="stable"))
        _write(path, table, group_size, [*done, *(shard.stamp for shard, _ in added)])
    return Index(table, tuple(problems), len(added))


def starts(table: pa.Table, group_size: int) -> np.ndarray:
    """The first row of each group, (G,), in a table whose groups are contiguous."""
    if not len(table):
        return np.zeros(0, dtype=np.int64)
    names = [name for name in ("step", "question_id", *PARTING) if name in table.column_names]
    changed = np.zeros(len(table), dtype=bool)
    for name in names:
        code = _codes(table[name])
        changed[1:] |= code[1:] != code[:-1]
    changed[0] = True
    first = np.flatnonzero(changed)
    lengths = np.diff(np.append(first, len(table)))
    parts = np.where((lengths > group_size) & (lengths % group_size == 0), lengths // group_size, 1)
    within = np.arange(parts.sum()) - np.repeat(np.cumsum(parts) - parts, parts)
    return np.repeat(first, parts) + within * group_size


def group_numbers(steps: np.ndarray, questions: np.ndarray) -> np.ndarray:
    """0 for the first group of a question in a step, 1 for its second, and so on: (G,)."""
    return pd.DataFrame({"step": steps, "question": questions}).groupby(["step", "question"]).cumcount().to_numpy()


def _codes(column: pa.ChunkedArray) -> np.ndarray:
    """A column as numbers that are equal where its values are; null is -1."""
    if pa.types.is_integer(column.type):
        return column.fill_null(-1).to_numpy()
    encoded = column.combine_chunks().dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)


def _ballots(new: Sequence[Shard], group_size: int) -> tuple[list[tuple[Shard, pa.Table]], list[str]]:
    """The ballots of each shard that can be read, and a sentence for each that cannot."""
    made, problems = [], []
    for shard in new:
        try:
            made.append((shard, _grouped(read(shard, COLUMNS), group_size)))
        except ShardError as error:
            problems.append(str(error))
    return made, problems


def _grouped(rows: pa.Table, group_size: int) -> pa.Table:
    """Rows of rollouts to rows of groups."""
    first = starts(rows, group_size)
    heads = rows.take(first)
    keys = rows["key"].cast(pa.string()).combine_chunks()
    offsets = pa.array(np.append(first, len(rows)), pa.int32())
    columns = {
        "step": heads["step"].cast(pa.int32()),
        "question_id": heads["question_id"].cast(pa.string()),
        "question": heads["question"].cast(pa.string()),
        "group": pa.array(group_numbers(heads["step"].to_numpy(), _codes(heads["question_id"])), pa.int32()),
        "keys": pa.ListArray.from_arrays(offsets, keys),
        "pseudo_label": heads["pseudo_label"].cast(pa.string()),
        "truth": _truth_keys(heads["truth"].cast(pa.string())),
    }
    return pa.table(columns, schema=SCHEMA)


def _truth_keys(texts: pa.ChunkedArray) -> pa.Array:
    """Canonical keys of true answers; null where there is none."""
    encoded = texts.combine_chunks().dictionary_encode()
    found = [answers.answer(text) for text in encoded.dictionary.to_pylist()]
    return pa.array([one.key if one else None for one in found], pa.string()).take(encoded.indices)


def _without(table: pa.Table, new: Sequence[Shard]) -> pa.Table:
    """The rows of steps that the new shards do not hold: a resumed run has written the others again."""
    for shard in new:
        inside = pc.and_(pc.greater_equal(table["step"], shard.first), pc.less_equal(table["step"], shard.last))
        if pc.any(inside).as_py():
            table = table.filter(pc.invert(inside))
    return table


def _latest(added: Sequence[tuple[Shard, pa.Table]]) -> list[pa.Table]:
    """The new ballots, each shard's without the steps of the next one: after a resume two shards may overlap."""
    kept = []
    for place, (shard, table) in enumerate(added):
        later = [other for other, _ in added[place + 1 :] if other.first <= shard.last]
        kept.append(_without(table, later))
    return kept


def _stored(path: Path, group_size: int) -> tuple[pa.Table, list[str]]:
    """The ballots on disk and the stamps of their shards; nothing where they cannot be used."""
    try:
        table = pq.read_table(path, partitioning=None)
        about = json.loads((table.schema.metadata or {}).get(_META, b"{}"))
        if (about.get("version"), about.get("group_size")) == (VERSION, group_size):
            return table.cast(SCHEMA), list(about["shards"])
    except (OSError, ValueError, KeyError, pa.ArrowException):
        pass  # made anew
    return SCHEMA.empty_table(), []


def _write(path: Path, table: pa.Table, group_size: int, done: Sequence[str]) -> None:
    about = {"version": VERSION, "group_size": group_size, "shards": list(done)}
    unfinished = path.with_name(f".{FILE}.{os.getpid()}-{threading.get_ident()}")
    with suppress(OSError):
        pq.write_table(table.replace_schema_metadata({_META: json.dumps(about)}), unfinished, compression="zstd")
        os.replace(unfinished, path)
    with suppress(OSError):
        unfinished.unlink(missing_ok=True)
