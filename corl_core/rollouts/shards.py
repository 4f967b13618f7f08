"""The Parquet shards of an agent's rollouts: which there are, and rows of some columns without reading the rest.

A shard is named after its first and last step (000025-000049.parquet) and appears whole (corl_core/training/recorder.py),
so a live run has shards for its finished blocks of steps only. Files are chosen by name, row groups by their statistics,
and only the columns asked for are read. Columns are known by name: added ones do no harm, and one that a shard lacks is
null throughout, unless it is one of NEEDED.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from corl_core.runs.inside import leads_out

NEEDED = ("step", "question_id", "key")
_NAME = re.compile(r"(\d+)-(\d+)\.parquet")


class ShardError(ValueError):
    """A shard cannot be read; the text names the file and says why."""


@dataclass(frozen=True)
class Shard:
    """One file of rollouts, of the steps `first` to `last` (both included)."""

    path: Path
    first: int
    last: int

    @property
    def stamp(self) -> str:
        """Tells a shard from another of its name. Size, not time: a run that is copied keeps its stamps."""
        return f"{self.path.name}:{self.path.stat().st_size}"


def shards(folder: Path) -> list[Shard]:
    """The shards of RUN/agents/NAME/rollouts in step order; [] when there is none. Files of other names are none of ours, nor
    are links that lead out of RUN."""
    run = folder.parents[2]
    found = [(_NAME.fullmatch(path.name), path) for path in folder.glob("*.parquet")]
    known = [Shard(path, int(name[1]), int(name[2])) for name, path in found if name and not leads_out(run, path)]
    return sorted(known, key=lambda shard: (shard.first, shard.last))


def read(shard: Shard, columns: Sequence[str], step: int | None = None, question_id: str | None = None) -> pa.Table:
    """The columns of a shard's rows in their order, those of one step and one question where asked. Raises ShardError."""
    wanted = [("step", "==", step)] if step is not None else []
    wanted += [("question_id", "==", question_id)] if question_id is not None else []
    try:
        with pq.ParquetFile(shard.path) as file:
            held = set(file.schema_arrow.names)
            if lacking := [name for name in NEEDED if name not in held]:
                raise ShardError(f"{shard.path.name} has no column '{lacking[0]}'; it is no shard of rollouts")
            kept = [name for name in columns if name in held]
            table = None if wanted else file.read(kept)
        if table is None:
            table = pq.read_table(shard.path, columns=kept, filters=wanted, partitioning=None)
    except (OSError, pa.ArrowException) as error:
        raise ShardError(f"{shard.path.name} cannot be read: {str(error).splitlines()[0][:200]}") from error
    for name in columns:
        if name not in held:
            table = table.append_column(name, pa.nulls(len(table), pa.string()))
    return table.select(list(columns))


def at(known: Sequence[Shard], step: int) -> Shard | None:
    """The shard that holds a step; of two, the one that starts later, for it was written after a resume."""
    return next((shard for shard in reversed(known) if shard.first <= step <= shard.last), None)
