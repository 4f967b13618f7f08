"""The dispatcher: a small process that starts the runs of the queue whenever slots are free.

    python -m corl_core.runs.queue_dispatch RUNS_DIR     (internal)

Whoever adds to the queue wakes it, and so does every reader that sees runs wait without one (`wake`); it ends when nothing is
left that it could ever start. It is its own session, so it outlives the browser and the dashboard, and the supervisors that it
starts outlive it. They have its environment, which is that of whoever woke it (MLFLOW_TRACKING_URI too). One works at a time: it
holds `queue/dispatcher.lock`, which the system takes back when it dies.

A run is started once. What a dispatcher is about to start it marks first (`claimed`): one that dies between that and the
supervisor's first word leaves the mark, and the next one waits CLAIM_S for that word before it tries again. Should a supervisor
come up all the same, it finds another at work and leaves.
"""

import json
import os
import shutil
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from corl_core.config import ConfigError, RunConfig
from corl_core.runs import launch, queue
from corl_core.runs.folder import QUEUED, Run, all_runs, is_alive, read_status, start_of, write_atomically, write_status
from corl_core.runs.placement import PlacementError
from corl_core.runs.queue import Entry, Waiting
from corl_core.runs.queue_slots import Free, Need, Slots, need, place, read_slots, visible_gpus, write_slots

POLL_S = 1.0
CLAIM_S = 60.0
RETRY_S = 30.0  # after a disk that is full, or that does not answer
Start = Callable[[Run], None]


def slots(runs_dir: Path) -> Slots:
    return read_slots(Path(runs_dir) / queue.FOLDER / "slots.json")


def set_slots(runs_dir: Path, chosen: Slots) -> None:
    """Raises LaunchError for a number out of range. Runs that live go on; fewer slots count from the next start on."""
    with queue.lock(runs_dir):
        write_slots(Path(runs_dir) / queue.FOLDER / "slots.json", chosen)


def living(runs_dir: Path) -> list[Run]:
    """The runs that take slots: started, by the queue or directly, and not ended."""
    return [run for run in all_runs(runs_dir) if _lives(run)]


def free(runs_dir: Path, runs: list[Run] | None = None) -> Free:
    """What is left beside the living runs."""
    gpus = visible_gpus()
    return Free(slots(runs_dir), gpus, [_taken(run, gpus) for run in (living(runs_dir) if runs is None else runs)])


def _taken(run: Run, gpus: list[str]) -> Need:
    try:
        return need(run.config, gpus, run.places)
    except (ConfigError, OSError):  # one that cannot be read, or that will fail for the GPUs that it names
        return Need(cores=1)


def _lives(run: Run) -> bool:
    claim = queue.claim(run)
    return not claim.final and claim.state != QUEUED and not run.status().final


class Dispatcher:
    """Starts what fits. `start` brings a supervisor up."""

    def __init__(self, runs_dir: Path, start: Start = launch.start):
        self.runs_dir, self._start = Path(runs_dir), start
        self._ended: dict[Path, int] = {}  # folder of a run that has ended → its status file's time of change, in ns

    def step(self) -> bool:
        """Starts every run that is next and fits; False when nothing waits that could ever start. The caller holds the queue's
        lock, so what it sees does not change meanwhile. Raises OSError."""
        waiting, alive = self._look()
        claimed = [waits for waits in waiting if _is_claimed(waits)]
        left = free(self.runs_dir, [*alive, *(waits.run for waits in claimed)])
        full: set[bool] = set()  # a run that waits for a GPU does not keep those back that need none
        startable = [waits for waits in waiting if not waits.entry.held and waits not in claimed]
        if startable and shutil.disk_usage(self.runs_dir).free < launch.MIN_FREE_BYTES:
            raise OSError(f"less than {launch.MIN_FREE_BYTES >> 20} MB free: the queue waits")
        for waits in startable:
            self._try(waits.run, waits.entry, left, full)
        return bool(startable or claimed)

    def _try(self, run: Run, entry: Entry, left: Free, full: set[bool]) -> None:
        if (run.path / "stop").exists():
            return self._end(run, "stopped", "cancelled before it started")
        if problem := run.problem:
            return self._end(run, "failed", problem)
        try:
            wanted = need(run.config, left.gpus)
        except PlacementError as error:
            return self._end(run, "failed", str(error))
        found = None if wanted.takes_slots and wanted.on_gpu in full else left.take(wanted)
        if found is None:
            full.add(wanted.on_gpu)
        else:
            self._go(run, entry, found)
        return None

    def _go(self, run: Run, entry: Entry, found: Need) -> None:
        queue.write_entry(run, replace(entry, claimed=time.monotonic()))
        if found.on_gpu:
            place(run, found.places)
        try:
            self._start(run)
        except (OSError, psutil.Error) as error:
            return self._end(run, "failed", f"could not be started: {error}")
        (run.path / queue.ENTRY).unlink(missing_ok=True)
        print(f"{time.strftime('%Y-%m-%d %H:%M:%S')} started {run.id}", flush=True)
        return None

    def _end(self, run: Run, state: str, reason: str) -> None:
        """The run has ended before it began; the queue goes on."""
        write_status(run.path, replace(read_status(run.path), state=state, reason=reason, phase="", ended=time.time()))
        (run.path / queue.ENTRY).unlink(missing_ok=True)

    def _look(self) -> tuple[list[Waiting], list[Run]]:
        """Who waits, and who lives. A status that has not changed since it was final is not read again."""
        waits, alive = [], []
        for run in all_runs(self.runs_dir):
            stamp = _stamp(run)
            if self._ended.get(run.path) == stamp:
                continue
            claim = queue.claim(run)
            if claim.final:
                self._ended[run.path] = stamp
            elif claim.state == QUEUED:
                waits.append(run)
            elif not run.status().final:
                alive.append(run)
        return queue.in_order(waits), alive


def _is_claimed(waits: Waiting) -> bool:
    """Whether a dispatcher began to start it so recently that its supervisor may still come up."""
    return waits.entry.claimed is not None and 0 <= time.monotonic() - waits.entry.claimed < CLAIM_S


def _stamp(run: Run) -> int:
    try:
        return (run.path / "status.json").stat().st_mtime_ns
    except OSError:
        return 0


def dispatch(runs_dir: Path, start: Start = launch.start, poll_s: float = POLL_S) -> bool:
    """A dispatcher's whole life; False when another one works already."""
    folder = Path(runs_dir) / queue.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    mine = FileLock(folder / "dispatcher.lock")
    try:
        mine.acquire(timeout=0)
    except Timeout:
        return False
    me, dispatcher = psutil.Process(), Dispatcher(runs_dir, start)
    while True:
        delay = poll_s
        with queue.lock(runs_dir):  # nobody adds a run meanwhile, so nobody counts on a dispatcher that is leaving
            try:
                _sign(runs_dir, me)
                if not dispatcher.step():
                    (folder / "dispatcher.json").unlink(missing_ok=True)
                    mine.release()
                    return True
            except OSError:
                traceback.print_exc()
                delay = RETRY_S
        time.sleep(delay)
        _reap()


def _reap() -> None:
    """Lets go of supervisors that have ended, so that none stays as a zombie."""
    try:
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass
    except ChildProcessError:
        pass


def _sign(runs_dir: Path, process: psutil.Process) -> None:
    path = Path(runs_dir) / queue.FOLDER / "dispatcher.json"
    who = json.dumps({"pid": process.pid, "pid_created": start_of(process)})
    if not path.exists() or path.read_text(encoding="utf-8") != who:
        write_atomically(path, who)


def working(runs_dir: Path) -> bool:
    """Whether a dispatcher lives."""
    try:
        who = json.loads((Path(runs_dir) / queue.FOLDER / "dispatcher.json").read_text(encoding="utf-8"))
        return is_alive(int(who["pid"]), float(who["pid_created"]))
    except (OSError, ValueError, KeyError, TypeError):
        return False


def wake(runs_dir: Path) -> None:
    """Brings a dispatcher up where runs wait and none works; returns at once."""
    runs_dir = Path(runs_dir).resolve()
    if not (runs_dir / queue.FOLDER).is_dir() or working(runs_dir):
        return
    with queue.lock(runs_dir):  # two readers at once bring up one
        if working(runs_dir) or all(waits.entry.held for waits in queue.waiting(runs_dir)):
            return
        path = os.pathsep.join(filter(None, [str(launch.PROJECT), os.environ.get("PYTHONPATH")]))
        with (runs_dir / queue.FOLDER / "dispatcher.log").open("ab") as log:
            started = subprocess.Popen(
                [sys.executable, "-m", "corl_core.runs.queue_dispatch", str(runs_dir)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                env=os.environ | {"PYTHONPATH": path},
            )  # fmt: skip
        _sign(runs_dir, psutil.Process(started.pid))


def wake_for(runs_dir: Path, states: Iterable[str]) -> None:
    """`wake` for a reader that has just read these; one who may not write reads on."""
    if QUEUED in states:
        with suppress(OSError, launch.LaunchError):
            wake(runs_dir)


def add(config: RunConfig, runs_dir: Path, priority: int = 0, held: bool = False) -> Run:
    """`queue.enqueue`, with a dispatcher at work."""
    run = queue.enqueue(config, runs_dir, priority, held)
    wake(runs_dir)
    return run


def release(run: Run) -> None:
    """Lets a held run go on waiting. Raises LaunchError for a run that does not wait."""
    queue.hold(run, held=False)
    wake(run.path.parent)


if __name__ == "__main__":
    dispatch(Path(sys.argv[1]))
