"""An agent's sign of life: a file that is touched every second as long as the agent gets on with its work.

A thread touches it, so a process that is suspended or gone does not. While the agent trains, its main thread must also have done
something since: run its model, or look whether its peer's votes are there. One that hangs in between is therefore seen as well.
"""

import os
import threading
from contextlib import suppress
from pathlib import Path

from corl_core.runs.watched import ALIVE

BEAT_S = 1.0


class Pulse(threading.Thread):
    """`start` it before anything that may take long."""

    def __init__(self, folder: Path):
        super().__init__(daemon=True, name="pulse")
        self.is_training = False  # whether the main thread has to show what it does
        self._path, self._done, self._seen = folder / ALIVE, 0, -1
        self._path.touch()

    def mark(self, *_: object) -> None:
        """Something was done; also as a hook of the model."""
        self._done += 1

    def run(self) -> None:
        beat = threading.Event()
        while not beat.wait(BEAT_S):
            if not self.is_training or self._done != self._seen:
                self._seen = self._done
                with suppress(OSError):
                    os.utime(self._path)
