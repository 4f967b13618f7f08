"""How fast a run trains, from the ends of its agents' journals."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl_core.runs.folder import Run

STEPS = 50  # looked back on
TAIL_BYTES = 262_144


@dataclass(frozen=True)
class Speed:
    """The cohort's: it is as fast as its slowest agent, and reads and writes the tokens of all."""

    steps_per_s: float
    tokens_per_s: float | None


def run_speed(run: Run) -> Speed | None:
    """The speed over the last steps that every agent has written down, evaluations included; None before two of them."""
    return speed([_last_steps(path) for agent, path in run.journal_paths().items() if agent])


def speed(agents: Sequence[Sequence[Mapping[str, Any]]]) -> Speed | None:
    """From each agent's last 'step' lines, oldest first."""
    if not agents or any(len(lines) < 2 for lines in agents):
        return None
    seconds = [lines[-1]["time"] - lines[0]["time"] for lines in agents]
    if min(seconds) <= 0:
        return None
    steps = [(lines[-1]["step"] - lines[0]["step"]) / took for lines, took in zip(agents, seconds, strict=True)]
    ends = [(lines[0]["metrics"].get("tokens"), lines[-1]["metrics"].get("tokens")) for lines in agents]
    if any(first is None or last is None for first, last in ends):
        return Speed(min(steps), None)
    return Speed(min(steps), sum((last - first) / took for (first, last), took in zip(ends, seconds, strict=True)))


def _last_steps(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    with path.open("rb") as file:
        size = path.stat().st_size
        file.seek(max(0, size - TAIL_BYTES))
        if size > TAIL_BYTES:
            file.readline()  # the rest of a line
        return _steps(file.readlines())


def _steps(lines: Iterable[bytes]) -> list[dict[str, Any]]:
    whole = [json.loads(line) for line in lines if line.endswith(b"\n") and line.startswith(b'{"event": "step"')]
    return whole[-STEPS:]
