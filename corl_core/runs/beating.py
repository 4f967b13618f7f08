"""A heartbeat beside work that takes long: importing what the agents need, joining a cluster, waiting for what agents left."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from corl_core.runs.folder import Status, update_status

BEAT_S = 1.0


@contextmanager
def beating(path: Path, status: Callable[[], Status], unwanted: Callable[[], None], limit_s: float) -> Iterator[None]:
    """Writes the supervisor's `status` with a new heartbeat every second, for at most `limit_s`: work that takes longer hangs.
    `unwanted` is called when somebody has seen the run dead meanwhile, and that stands."""
    done, end = threading.Event(), time.monotonic() + limit_s

    def beat() -> None:
        while not done.wait(BEAT_S) and time.monotonic() < end:
            with suppress(OSError):  # whoever works meets a full disk himself
                if not update_status(path, replace(status(), heartbeat=time.time(), beat=time.monotonic())):
                    unwanted()

    thread = threading.Thread(target=beat, daemon=True, name="heartbeat")
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
