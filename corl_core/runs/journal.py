"""Append-only JSON lines: how an agent tells what happened, readable while it is being written.

A line is whole once it ends in a newline; a reader leaves an unfinished last line for later, so a process that dies
in the middle of one loses that line and nothing else. NaN and infinities are written as JSON's NaN and Infinity.

A run that is resumed goes on in the same journal, after a line `{"event": "attempt", "step": s}`: what an earlier attempt wrote
from step s on no longer counts, and `current` leaves it out.
"""

import json
import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Line = dict[str, Any]
LONGEST_LINE = 2**20  # bytes
ENDS = ("end", "error", "checkpoint")  # of an attempt: never true of the next one


class Journal:
    """One writer's journal, flushed at every line, in a folder that exists. A line that an earlier writer left unfinished is
    taken away first."""

    def __init__(self, path: Path):
        _drop_unfinished_line(path)
        self.path = path
        self._last = _last_time(path)
        self._file = path.open("a", encoding="utf-8")

    def write(self, event: str, **fields: Any) -> None:
        """Times ascend even when the clock is set back, for readers of the curves go by them."""
        self._last = max(time.time(), self._last + 1e-3)
        self._file.write(json.dumps({"event": event, "time": self._last, **fields}, ensure_ascii=False) + "\n")
        self._file.flush()


class Tail:
    """Reads a journal from a byte offset on, whole lines only; `offset` is where the next read begins."""

    def __init__(self, path: Path, offset: int = 0):
        self.path, self.offset = path, offset

    def read(self, max_lines: int | None = None) -> list[Line]:
        """The lines that came since, at most `max_lines`; [] when there are none or no file yet."""
        return list(self._lines(max_lines))

    def _lines(self, max_lines: int | None) -> Iterator[Line]:
        if not self.path.exists():
            return
        with self.path.open("rb") as file:
            file.seek(self.offset)
            for count, line in enumerate(file):
                if not line.endswith(b"\n") or count == max_lines:
                    return
                self.offset += len(line)
                yield json.loads(line)


def current(lines: Iterable[Line]) -> list[Line]:
    """The lines that count: of what several attempts wrote, the latest."""
    kept: list[Line] = []
    for line in lines:
        if line["event"] == "attempt":
            kept = before(kept, line["step"])
        kept.append(line)
    return kept


def before(lines: Iterable[Line], step: int) -> list[Line]:
    """What still counts when an attempt goes on from `step` updates: its evaluation is done, unless it starts over."""
    return [line for line in lines if line["event"] not in ENDS and not _is_redone(line, step)]


def _is_redone(line: Line, step: int) -> bool:
    if "step" not in line or line["event"] == "attempt":
        return False
    return line["step"] >= step if line["event"] != "eval" or step == 0 else line["step"] > step


def read(path: Path) -> list[Line]:
    """Every line of a journal that counts; [] when there is no file yet."""
    return current(Tail(path).read())


def whole_bytes(path: Path) -> int:
    """How much of a journal is whole lines; 0 when there is no file."""
    return path.read_bytes().rfind(b"\n") + 1 if path.exists() else 0


def _last_time(path: Path) -> float:
    """When the last line was written; 0 without one."""
    if not path.exists():
        return 0.0
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - LONGEST_LINE))
        lines = file.read().splitlines()
    try:
        return float(json.loads(lines[-1])["time"]) if lines else 0.0
    except ValueError:  # longer than any line that agents write
        return 0.0


def _drop_unfinished_line(path: Path) -> None:
    if path.exists():
        os.truncate(path, whole_bytes(path))
