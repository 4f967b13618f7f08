"""Processes that do mathematics for this one and can be killed: nothing a model writes can hang or crash training.

A worker (`math_worker.py`) is started when the first formula needs it, reused, and spoken to in JSON lines over pipes.
The formulas of one answer have LIMIT_S seconds together; then the worker's calculating process is killed and forked anew,
in milliseconds. There are at most MAX_WORKERS, shared by all threads. Without a worker that works the outcome is `error`.
"""

import atexit
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any, Literal

LIMIT_S = 1.0
START_LIMIT_S = 60.0  # importing sympy, on a busy machine
RETRY_S = 30.0  # between attempts to start workers that cannot start
MAX_WORKERS = 2
PROJECT = Path(__file__).resolve().parents[2]

Outcome = Literal["parsed", "timeout", "error"]


class _Gone(Exception):
    """The worker ended, or never started."""


class _Worker:
    """One `math_worker` and its pipes. Not thread-safe: the pool lends it to one thread at a time."""

    def __init__(self) -> None:
        self._rest = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "corl_core.grading.math_worker"], cwd=PROJECT, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        self._poll = select.poll()
        self._poll.register(self._out, select.POLLIN)
        self._calculator = 0

    @property
    def _out(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def start(self) -> None:
        self._calculator = self._calculator or self._ready()

    def ask(self, latex: str, limit_s: float) -> tuple[str | None, Outcome]:
        """Raises _Gone when the worker must be replaced."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"latex": latex}).encode() + b"\n")
        except OSError as error:
            raise _Gone from error
        reply = self._read(limit_s)
        if reply is None:
            os.kill(self._calculator, signal.SIGKILL)
        elif "key" in reply:
            return reply["key"], reply["outcome"]
        # Killed by us, or ended by itself (memory, a crash): the worker forks another calculating process.
        self._calculator = reply["ready"] if reply else self._ready()
        return None, "error" if reply else "timeout"

    def close(self) -> None:
        """Ends the worker and what it forked: they are a process group of their own."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    @property
    def started(self) -> bool:
        return self._calculator != 0

    def _ready(self) -> int:
        """The process id of the calculating process, once it can be asked."""
        while (reply := self._read(START_LIMIT_S)) is not None:
            if "ready" in reply:  # else an answer that came just as its time was up
                return reply["ready"]
        raise _Gone

    def _read(self, limit_s: float) -> dict[str, Any] | None:
        """The next line, or None when it does not come in time."""
        deadline = time.monotonic() + limit_s
        while b"\n" not in self._rest:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not self._poll.poll(1000 * left_s):
                return None
            if not (chunk := os.read(self._out, 65_536)):
                raise _Gone
            self._rest += chunk
        line, self._rest = self._rest.split(b"\n", 1)
        return json.loads(line)


class _Pool:
    """Workers that wait for work. After a fork the child has none, for pipes cannot be shared."""

    def __init__(self) -> None:
        self._slots = threading.BoundedSemaphore(MAX_WORKERS)
        self._idle: list[_Worker] = []
        self._retry_at = 0.0

    def ask(self, latex: str) -> tuple[str | None, Outcome]:
        with self._slots:
            worker = self._take()
            if worker is None:
                return None, "error"
            try:
                return self._timed(worker, latex)
            except (_Gone, OSError, ValueError):
                worker.close()
                self._retry_at = 0.0 if worker.started else time.monotonic() + RETRY_S
                return None, "error"
            except BaseException:
                worker.close()
                raise

    def _timed(self, worker: _Worker, latex: str) -> tuple[str | None, Outcome]:
        """Asks with what is left of the answer's time; starting a worker and waiting for one cost it nothing."""
        left = _left_s.get() or [LIMIT_S]
        worker.start()
        start = time.monotonic()
        answer = worker.ask(latex, left[0]) if left[0] > 0 else (None, "timeout")
        left[0] -= time.monotonic() - start
        self._idle.append(worker)
        return answer

    def _take(self) -> _Worker | None:
        try:
            return self._idle.pop()
        except IndexError:
            return _Worker() if time.monotonic() >= self._retry_at else None

    def num_idle(self) -> int:
        return len(self._idle)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


_pool = _Pool()
_left_s: ContextVar[list[float] | None] = ContextVar("left_s", default=None)  # of the answer that is being read


@contextlib.contextmanager
def one_answer() -> Iterator[None]:
    """The formulas asked for inside are parts of one answer, and share its time."""
    token = _left_s.set([LIMIT_S])
    try:
        yield
    finally:
        _left_s.reset(token)


def canonical(latex: str) -> tuple[str | None, Outcome]:
    """The canonical spelling of a formula; None when it is not mathematics, or by the outcome when that failed."""
    return _pool.ask(latex)


def num_idle() -> int:
    """Workers that were started and wait for work."""
    return _pool.num_idle()


def close() -> None:
    """Ends the workers that wait; the next formula starts another."""
    _pool.close()


def _forget() -> None:
    global _pool
    _pool = _Pool()


atexit.register(close)
os.register_at_fork(after_in_child=_forget)
