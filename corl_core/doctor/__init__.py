"""The doctor: looks at everything that a run needs, says what to do about each thing, and mends what can be mended safely.

record.py     one line of the examination, and what can be repaired
packages.py   Python, and the packages against the pins
machine.py    processors, memory, GPUs, disk, browser
store.py      where curves go: reachable, and with today's tables
runs.py       runs that claim to be under way and are not, or that hang
queue.py      runs that wait although nobody is there to start them
processes.py  supervisors and agents without a run
leftovers.py  lock files that nobody holds, and files that nobody will finish
ports.py      who listens, and on which address

`examine` changes nothing. `repair` does what the lines offer, each time after looking again.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from corl_core.doctor import leftovers, machine, packages, ports, processes, queue, runs, store
from corl_core.doctor.record import LEVELS, Finding

__all__ = ["LEVELS", "Finding", "examine", "repair", "worst"]

CHECKS: tuple[Callable[[Path], list[Finding]], ...] = (
    packages.check, machine.check, store.check, runs.check, queue.check, processes.check, leftovers.check,
    ports.check,
)  # fmt: skip


def examine(runs_dir: Path) -> list[Finding]:
    """Every line, in reading order. A check that breaks down is a line itself, and hides no other."""
    return [finding for check in CHECKS for finding in _examined(check, runs_dir)]


def repair(findings: Iterable[Finding], runs_dir: Path) -> list[str]:
    """Mends what is offered; returns a sentence for each thing that was done or could not be."""
    done = []
    for finding in findings:
        if finding.repair:
            done += _REPAIRS[finding.repair](finding, runs_dir)
    return done


def worst(findings: Iterable[Finding]) -> str:
    """The level of the worst line."""
    return max((finding.level for finding in findings), key=LEVELS.index, default="ok")


def _examined(check: Callable[[Path], list[Finding]], runs_dir: Path) -> list[Finding]:
    try:
        return check(runs_dir)
    except (OSError, ValueError, RuntimeError) as error:
        name = check.__module__.rsplit(".", 1)[-1]
        return [Finding(name, "bad", f"this check broke down: {error}", "please report it, with this line")]


_REPAIRS: dict[str, Callable[[Finding, Path], list[str]]] = {
    "close run": runs.close,
    "end process": processes.end,
    "remove": leftovers.remove,
    "wake dispatcher": queue.wake,
}
