"""The queue: runs that wait although nobody is there to start them."""

from pathlib import Path

from filelock import Timeout

from corl_core.doctor.record import Finding
from corl_core.runs import queue, queue_dispatch
from corl_core.runs.launch import LaunchError

NAME = "queue"


def check(runs_dir: Path) -> list[Finding]:
    """No line where nobody has used the queue. A dispatcher ends by itself when nothing waits that it could start."""
    if not (runs_dir / queue.FOLDER).is_dir():
        return []
    waiting = queue.waiting(runs_dir)
    held = sum(waits.entry.held for waits in waiting)
    words = f"{len(waiting)} runs wait" + (f", {held} of them held" if held else "") if waiting else "nothing waits"
    if queue_dispatch.working(runs_dir):
        return [Finding(NAME, "ok", f"{words}; its dispatcher works")]
    if held == len(waiting):
        return [Finding(NAME, "ok", words)]
    log = runs_dir / queue.FOLDER / "dispatcher.log"
    return [Finding(NAME, "bad", f"{words}, and no dispatcher works", f"start one (its log: {log})", "wake dispatcher")]


def wake(finding: Finding, runs_dir: Path) -> list[str]:
    """Starts a dispatcher, unless somebody has done so by now or nothing waits any more."""
    try:
        queue_dispatch.wake(runs_dir)
    except (OSError, LaunchError, Timeout) as error:
        return [f"{NAME}: no dispatcher could be started: {error}"]
    if queue_dispatch.working(runs_dir):
        return [f"{NAME}: its dispatcher works"]
    return [f"{NAME}: nothing waits that could be started"]
