"""Where a step's time goes, by name."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Clock:
    """Seconds since the step began, and those spent under each name."""

    def __init__(self):
        self.begin()

    def begin(self) -> None:
        self._started, self.times = time.perf_counter(), {}

    @property
    def elapsed_s(self) -> float:
        return time.perf_counter() - self._started

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.times[name] = self.times.get(name, 0.0) + time.perf_counter() - start
