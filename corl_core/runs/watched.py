"""One agent as its supervisor sees it: its process, what its journal has said so far, and whether it shows signs of life."""

import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from corl_core.runs.causes import cause
from corl_core.runs.journal import Line, Tail
from corl_core.runs.launchers import Handle

ALIVE = ".alive"  # in an agent's folder: touched as long as it makes progress, see `training/pulse.py`
SILENT_S = 60.0  # without progress for so long an agent is called stalled; slow models get longer
SILENT_STEPS = 3  # steps' worth of time


class Life:
    """How long a file has not been touched, whatever clock its times are from."""

    def __init__(self) -> None:
        self._stamp: int | None = None
        self._since = time.monotonic()

    def silent_s(self, path: Path) -> float:
        try:
            stamp = path.stat().st_mtime_ns
        except OSError:
            stamp = None
        if stamp != self._stamp:
            self._stamp, self._since = stamp, time.monotonic()
        return time.monotonic() - self._since


@dataclass
class Watched:
    """What the supervisor knows of one agent."""

    process: Handle
    tail: Tail
    steps: int = 0  # steps written down
    phase: str = "starting"
    error: str = ""
    error_kind: str = ""
    longest_step_s: float = 0.0
    asked_to_end: bool = False  # by a signal of somebody else, and it has done so
    life: Life = field(default_factory=Life)

    def read(self, line: Line) -> None:
        """Takes in a line of its journal."""
        match line["event"]:
            case "step" | "update":  # an update of older rollouts is a step without rollouts
                self.steps, self.phase = line["step"] + 1, ""
                self.longest_step_s = max(self.longest_step_s, line["metrics"]["step_time_s"])
            case "phase":
                share = f" {100 * line['done'] // line['total']}%" if "total" in line else ""
                self.phase = line["phase"] + share
            case "error":
                self.error, self.error_kind = line["message"], line["kind"]
            case "end":
                self.asked_to_end = line.get("asked", False)

    @property
    def is_late(self) -> bool:
        """Whether it holds a stop up: one that has ended, and whose last words are on their way, does not."""
        return self.process.exitcode is None and not self.process.leaving

    @property
    def place(self) -> str:
        """To be read after its name; '' on this machine."""
        return f" on node {self.process.node}" if self.process.node else ""

    @property
    def where(self) -> str:
        return f" in round {self.steps}" if self.steps or not self.phase else f" while {self.phase}"

    def stalled(self, folder: Path, first_step_s: float) -> str:
        """Why it counts as stalled, to be read after its name; '' when it does not. `first_step_s`: how long its first step, of
        which nothing is known, may go without a sign."""
        silent_s = self.life.silent_s(folder / ALIVE)
        if not self.is_late:
            return ""
        if hint := self.process.hint:
            return f"is suspended{self.where}; {hint}"
        limit_s = max(SILENT_S, SILENT_STEPS * self.longest_step_s if self.longest_step_s else first_step_s)
        return f"has made no progress for {silent_s:.0f} s{self.where}" if silent_s > limit_s else ""

    @property
    def cause(self) -> str:
        """Why it has failed, in a word or two."""
        return "node lost" if self.process.lost else cause(self.error_kind, self.error, self.process.exitcode)

    def why(self, log_tail: str) -> str:
        """Why it has failed, to be read after its name."""
        if self.process.lost:
            return f"is gone{self.where}"
        if self.error_kind == "CohortError":  # its text names the round
            return f"failed: {self.error}"
        if self.error:
            unforeseen = self.cause == "unknown" and self.error != self.error_kind  # a bare text, such as KeyError's, says little
            return f"failed{self.where}: {f'{self.error_kind}: ' if unforeseen else ''}{self.error}"
        code = self.process.exitcode or 0
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}{self.where}"
        last = next((line.strip()[:200] for line in reversed(log_tail.split("\n")) if line.strip()), "nothing")
        return f"ended with exit code {code}{self.where}; the last line of its log: {last}"


def end(handles: Iterable[Handle], grace_s: float, politely: bool = True) -> None:
    """Asks agents that still run to end, and kills each that has not within the grace, or, not `politely`, all at once."""
    alive = [handle for handle in handles if handle.exitcode is None]
    for handle in alive:
        with suppress(OSError):
            handle.signal(signal.SIGTERM if politely else signal.SIGKILL)
    deadline = time.monotonic() + grace_s
    for handle in alive:
        with suppress(OSError):
            handle.join(max(0.0, deadline - time.monotonic()))
            if handle.exitcode is None:
                handle.signal(signal.SIGKILL)
                handle.join(grace_s)
