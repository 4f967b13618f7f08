"""MLflow learns how a run ended, whoever finds out: a supervisor that was killed, or that MLflow did not answer, told nobody.

    python -m corl_core.tracking.closing RUN_FOLDER...     (internal)

The status of a run that has ended says `untold` until MLflow knows. Every reader passes what it has read to `close_later`, which
starts one process for all such runs, aside, so that no page and no list waits for MLflow.
"""

import math
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from filelock import FileLock, Timeout

from corl_core.runs.folder import Run, Status, is_alive
from corl_core.runs.launch import PROJECT

RETRY_S = 60.0
_tried: dict[tuple[Path, int], float] = {}  # run folder, attempt → when MLflow was last to be told of it, by `time.monotonic`


def close_later(seen: Iterable[tuple[Run, Status]]) -> list[Run]:
    """Sees to it that MLflow is told of those runs that it has to be told of, once in RETRY_S; returns them."""
    now = time.monotonic()
    ended = [(run, (run.path, status.attempt)) for run, status in seen if is_due(status)]
    tried = [(run, end) for run, end in ended if now - _tried.get(end, -math.inf) >= RETRY_S]
    _tried.update((end, now) for _, end in tried)
    if due := [run for run, _ in tried]:
        with suppress(OSError):  # one who may not write there, or start anything, reads on
            _start(due)
    return due


def is_due(status: Status) -> bool:
    """Whether the run has ended, and nobody is about to tell MLflow."""
    return status.final and status.untold and not is_alive(status.pid or 0, status.pid_created or 0.0)


def _start(runs: list[Run]) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))}
    with (runs[0].path / "supervisor.log").open("ab") as log:
        subprocess.Popen(
            [sys.executable, "-m", "corl_core.tracking.closing", *(str(run.path) for run in runs)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment,
        )  # fmt: skip


def close(runs: list[Run]) -> None:
    """Tells MLflow, one run after the other, until it does not answer. One process at a time does so."""
    from corl_core.tracking.log import TrackingError, sync
    from corl_core.tracking.store import tracking_uri

    with suppress(Timeout), FileLock(runs[0].path.parent / ".closing.lock", timeout=0):
        for run in runs:
            try:
                sync(run, tracking_uri(run.path.parent))
            except TrackingError as error:
                print(f"tracking: {error}", flush=True)
                return


if __name__ == "__main__":
    close([Run(Path(path)) for path in sys.argv[1:]])
