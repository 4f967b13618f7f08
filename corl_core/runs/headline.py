"""One figure for a run: the accuracy of its last held-out evaluation, from the ends of the agents' journals."""

import json
from functools import lru_cache
from pathlib import Path
from statistics import fmean

from corl_core.runs.folder import Run
from corl_core.runs.journal import Line, current

TAIL_BYTES = 262_144
COUNTED = (b'{"event": "eval"', b'{"event": "attempt"')


def last_accuracy(run: Run) -> float | None:
    """Held-out accuracy of a single rollout in each agent's last evaluation, mean over agents; None before one, or without
    true answers."""
    found = [_last(path) for agent, path in run.journal_paths().items() if agent]
    known = [value for value in found if value is not None]
    return fmean(known) if known and len(known) == len(found) else None


def _last(path: Path) -> float | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return _read(path, stat.st_mtime_ns, stat.st_size)


@lru_cache(4096)
def _read(path: Path, stamp_ns: int, size: int) -> float | None:
    """Looks at the end of the journal first, and at all of it when the last evaluation lies further back."""
    for start in sorted({max(0, size - TAIL_BYTES), 0}, reverse=True):
        evaluations = [line for line in current(_counted(path, start)) if line["event"] == "eval"]
        if evaluations:
            return evaluations[-1]["metrics"].get("eval/accuracy")
    return None


def _counted(path: Path, start: int) -> list[Line]:
    with path.open("rb") as file:
        file.seek(start)
        return [json.loads(line) for line in file if line.startswith(COUNTED) and line.endswith(b"\n")]
