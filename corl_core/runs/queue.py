"""The queue: runs that wait for free slots, in order, and what a person may do with them.

The queue is files, so it survives whatever reads it. A run that waits is a run folder whose status says `queued`; its
`queue.json` says where it stands: a higher priority goes first, among equals the smaller place. A run without one waits in the
order of its making. `queue/` in the runs folder holds the slots (`slots.json`), the lock under which the queue changes, and the
dispatcher that starts the runs (`queue_dispatch.py`). A queued run is not in MLflow: its supervisor is what logs.
"""

import json
import time
from collections.abc import Iterable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from filelock import FileLock

from corl_core.config import RunConfig
from corl_core.data.preflight import refuse_before_launch
from corl_core.runs import launch
from corl_core.runs.folder import QUEUED, Run, Status, all_runs, read_status, write_atomically, write_status
from corl_core.runs.launch import LaunchError

FOLDER, ENTRY = "queue", "queue.json"
MOVES = ("up", "down", "first", "last")
MAX_PRIORITY = 1000
PHASE = "waiting in the queue"


@dataclass(frozen=True)
class Entry:
    """Where a waiting run stands."""

    place: float  # among runs of one priority the smaller goes first; Unix seconds, unless somebody moved it
    priority: int = 0
    held: bool = False  # passed over until it is released
    claimed: float | None = None  # when a dispatcher began to start it, by `time.monotonic`: see `queue_dispatch.py`


@dataclass(frozen=True)
class Waiting:
    """A run in the queue."""

    run: Run
    entry: Entry

    @property
    def order(self) -> tuple[int, float, str]:
        return (-self.entry.priority, self.entry.place, self.run.id)


def lock(runs_dir: Path) -> FileLock:
    """Held while the queue changes, so that no two hands change it at once. Raises LaunchError where it cannot be made."""
    folder = Path(runs_dir) / FOLDER
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LaunchError(f"cannot write to {runs_dir}: {error.strerror}; use --runs DIR with a folder you may write") from error
    return FileLock(folder / "lock")


def waiting(runs_dir: Path) -> list[Waiting]:
    """The queue in order: who starts next comes first."""
    return in_order(run for run in all_runs(runs_dir) if claim(run).state == QUEUED)


def in_order(runs: Iterable[Run]) -> list[Waiting]:
    """Runs that are known to wait, as they stand in the queue."""
    return sorted((Waiting(run, read_entry(run)) for run in runs), key=lambda waits: waits.order)


def claim(run: Run) -> Status:
    """What status.json says; a folder that is being deleted meanwhile waits for nothing."""
    try:
        return read_status(run.path)
    except OSError:
        return Status("stopped", 0.0)


def read_entry(run: Run) -> Entry:
    """The run's place; a missing or damaged file is the order of making."""
    try:
        return Entry(**json.loads((run.path / ENTRY).read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return Entry(place=claim(run).created)


def write_entry(run: Run, entry: Entry) -> None:
    write_atomically(run.path / ENTRY, json.dumps(asdict(entry)))


def enqueue(config: RunConfig, runs_dir: Path, priority: int = 0, held: bool = False) -> Run:
    """A run that waits at the end of its priority; `queue_dispatch.add` sees to it that somebody starts it. Raises LaunchError,
    and DataError for data that the run is refused for."""
    refuse_before_launch(config)
    return enqueue_checked([config], runs_dir, priority, held)[0]


def enqueue_checked(configs: Iterable[RunConfig], runs_dir: Path, priority: int = 0, held: bool = False) -> list[Run]:
    """`enqueue`, in this order, for configurations whose data has been looked at."""
    check_priority(priority)
    runs = []
    with lock(runs_dir):
        place = max((waits.entry.place for waits in waiting(runs_dir)), default=0.0)
        for config in configs:
            place = max(time.time(), place + 1e-3)  # a clock that was set back keeps the order
            runs.append(launch.create(config, runs_dir, QUEUED, PHASE))
            write_entry(runs[-1], Entry(place, priority, held))
    return runs


def hold(run: Run, held: bool = True) -> None:
    """Passes a waiting run over until it is released. Raises LaunchError for a run that does not wait."""
    _change(run, held=held)


def prioritise(run: Run, priority: int) -> None:
    """Gives a waiting run another priority. Raises LaunchError."""
    check_priority(priority)
    _change(run, priority=priority)


def cancel(run: Run) -> bool:
    """Takes a run out of the queue: it is stopped and can be resumed. False when it does not wait (any more)."""
    with lock(run.path.parent):
        status = claim(run)
        if status.state != QUEUED or read_entry(run).claimed is not None:
            return False
        ended = replace(status, state="stopped", reason="cancelled before it started", phase="", ended=time.time())
        write_status(run.path, ended)
        (run.path / ENTRY).unlink(missing_ok=True)
        return True


def move(run: Run, where: str) -> None:
    """One place up or down, or to an end. A run that passes others takes the priority of those it lands among. Raises
    LaunchError."""
    if where not in MOVES:
        raise LaunchError(f"cannot move '{where}': give one of {', '.join(MOVES)}")
    with lock(run.path.parent):
        queue = waiting(run.path.parent)
        here = next((index for index, waits in enumerate(queue) if waits.run == run), None)
        if here is None:
            raise _not_waiting(run)
        there = {"up": max(0, here - 1), "down": min(len(queue) - 1, here + 1), "first": 0, "last": len(queue) - 1}[where]
        priority = queue[there].entry.priority
        places = sorted(waits.entry.place for waits in queue)
        queue.insert(there, queue.pop(here))
        for place, waits in zip(places, queue, strict=True):
            entry = replace(waits.entry, place=place, priority=priority if waits.run == run else waits.entry.priority)
            if entry != waits.entry:
                write_entry(waits.run, entry)


def check_priority(priority: int) -> None:
    """Raises LaunchError for what is no priority."""
    if abs(priority) > MAX_PRIORITY:
        raise LaunchError(f"priority {priority} is out of range: give a whole number from -{MAX_PRIORITY} to {MAX_PRIORITY}")


def _change(run: Run, **fields: object) -> None:
    with lock(run.path.parent):
        if claim(run).state != QUEUED:
            raise _not_waiting(run)
        write_entry(run, replace(read_entry(run), **fields))


def _not_waiting(run: Run) -> LaunchError:
    return LaunchError(f"{run.id} is {run.status().state}: only a run that waits in the queue can be moved, held or released")
