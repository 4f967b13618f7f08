"""The rollouts of the newest steps, on disk before their steps are told, until there are enough for a Parquet file.

    rollouts/.open.jsonl                one line a step: {"step": 7, "rows": [...]}
    rollouts/000000-000024.parquet      a shard: what `close` makes of it

An agent that is killed leaves the first; whoever settles the run, or goes on with it, closes it.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from corl_core.runs.journal import Tail

FILE = ".open.jsonl"
SCHEMA = pa.schema(
    [
        ("step", pa.int32()), ("agent", pa.string()), ("group", pa.int32()), ("question_id", pa.string()),
        ("question", pa.string()), ("completion", pa.string()), ("answer", pa.string()), ("key", pa.string()),
        ("outcome", pa.string()), ("pseudo_label", pa.string()), ("reward", pa.float32()), ("truth", pa.string()),
        ("trained", pa.bool_()),
    ]
)  # fmt: skip


class OpenShard:
    """The open shard in a folder of rollouts."""

    def __init__(self, folder: Path):
        self.folder, self.path = folder, folder / FILE

    def add(self, step: int, rows: list[dict[str, Any]]) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": step, "rows": rows}) + "\n")

    def close(self) -> None:
        """Makes a Parquet file of it; a line that was cut off is left out, and so are steps that are in a file already."""
        if not self.path.exists():
            return
        done = [shard_steps(path) for path in self.folder.glob("[0-9]*.parquet")]
        lines = [line for line in Tail(self.path).read() if not any(first <= line["step"] <= last for first, last in done)]
        if lines:
            rows = [row for line in lines for row in line["rows"]]
            write_shard(self.folder, pa.Table.from_pylist(rows, SCHEMA), lines[0]["step"], lines[-1]["step"])
        self.path.unlink()


def shard_steps(path: Path) -> tuple[int, int]:
    """The first and the last step in a shard, by its name."""
    first, last = (int(number) for number in path.stem.split("-"))
    return first, last


def write_shard(folder: Path, table: pa.Table, first: int, last: int) -> None:
    """Readers see it whole or not at all."""
    name = f"{first:06d}-{last:06d}.parquet"
    unfinished = folder / f".{name}"
    pq.write_table(table, unfinished, row_group_size=max(1, table.num_rows // (last - first + 1)))  # a group about a step
    unfinished.rename(folder / name)
