"""Append-only JSON lines: how an agent tells what happened, readable while it is being written.

A line is whole once it ends in a newline; a reader leaves an unfinished last line for later, so a process that dies
in the middle of one loses that line and nothing else. NaN and infinities are written as JSON's NaN and Infinity.
"""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class Journal:
    """One writer's journal, flushed at every line."""

    def __init__(self, path: Path):
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = path.open("a", encoding="utf-8")

    def write(self, event: str, **fields: Any) -> None:
        self._file.write(json.dumps({"event": event, "time": time.time(), **fields}, ensure_ascii=False) + "\n")
        self._file.flush()


class Tail:
    """Reads a journal from a byte offset on, whole lines only; `offset` is where the next read begins."""

    def __init__(self, path: Path, offset: int = 0):
        self.path, self.offset = path, offset

    def read(self, max_lines: int | None = None) -> list[dict[str, Any]]:
        """The lines that came since, at most `max_lines`; [] when there are none or no file yet."""
        return list(self._lines(max_lines))

    def _lines(self, max_lines: int | None) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for count, line in enumerate(file):
                if not line.endswith(b"\n") or count == max_lines:
                    return
                self.offset += len(line)
                yield json.loads(line)
