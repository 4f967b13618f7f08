"""One agent on a node of a Ray cluster, as its supervisor sees it.

First its actor gets what the agent goes on from, then it starts the process, and from then on it is asked for news again and
again: parts of the agent's folder, and at last its exit code.
"""

import signal
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from corl_core.runs.checkpoints import COMPLETE
from corl_core.runs.inside import make_folder
from corl_core.runs.launchers.mirror import Part, repeat
from corl_core.security import masked

EXIT_LOST = 70  # of an agent whose node is gone, or whose actor failed
POLL_S = 0.1
AHEAD = 3  # parts on their way to a node at a time, so that memory never holds a whole checkpoint
SILENT_S = 30.0  # without news for so long nothing more is expected of a process that has ended


class RayAgent:
    """What has been asked of an agent's actor, and what came back."""

    hint = ""  # a suspended process on another machine is seen by its silence alone

    def __init__(self, name: str, actor: Any, folder: Path, luggage: Iterator[list[Part]], start: Callable[[], Any]):
        """`luggage`: what the actor gets before `start`, which returns what the actor's `start` will."""
        self.name, self._actor, self._folder = name, actor, folder
        make_folder(folder, within=folder.parents[1])  # the run's
        self._luggage, self._start = luggage, start
        self._sent: deque[Any] = deque()  # puts that have not arrived
        self._placed, self._asked = None, None
        self._has_ended, self._heard = False, 0.0  # when the last news came, by `time.monotonic`
        self._takes_parts = True  # until one was lost: what comes after it might tell of it
        self.exitcode: int | None = None
        self.lost, self.node = False, ""
        self.has_new_checkpoint = False
        self._send()

    @property
    def leaving(self) -> bool:
        return self.exitcode is None and self._has_ended and time.monotonic() - self._heard < SILENT_S

    @property
    def pending(self) -> Any:
        """What is being waited for: the next part's arrival, its place on the cluster, then news."""
        if self._sent:
            return self._sent[0]
        if self._placed is not None:
            return self._placed
        if self._asked is None:
            self._asked = self._actor.news.remote()
        return self._asked

    def _send(self) -> None:
        while len(self._sent) < AHEAD and (parts := next(self._luggage, None)) is not None:
            self._sent.append(self._actor.put.remote(parts))
        if not self._sent:
            self._placed = self._start()

    def take(self) -> bool:
        """Takes in what was waited for, and has come; False when it was nothing new. Raises OSError where there is no room."""
        import ray

        try:
            got = ray.get(self.pending)
        except ray.exceptions.RayError as error:
            self.exitcode = EXIT_LOST
            self.lost = bool(self.node) and not isinstance(error, ray.exceptions.RayTaskError)
            if not self.lost and self._folder.exists():  # it never came up, or has an error: Ray alone says why
                with (self._folder / "log.txt").open("a", encoding="utf-8") as log:
                    log.write(f"\n{masked(str(error))}\n")
            return True
        if self._sent:
            self._sent.popleft()
            self._send()
            return True
        if self._placed is not None:
            self._placed, self.node = None, got
            return True
        self._asked, self._heard, self._has_ended = None, time.monotonic(), got.exitcode is not None
        self._repeat(got.parts)
        if got.exitcode is not None and not (got.parts and self._takes_parts):
            self._tell_start(got.exitcode)
            self.exitcode = got.exitcode
        return bool(got.parts)

    def _repeat(self, parts: list[Part]) -> None:
        if not self._folder.exists():  # somebody has deleted the run
            self._takes_parts = False
        if not self._takes_parts:
            return
        try:
            repeat(self._folder, parts)
        except OSError:
            self._takes_parts = False
            raise
        if any(part.path.endswith(f"/{COMPLETE}") and part.data is not None for part in parts):
            self.has_new_checkpoint = True

    def _tell_start(self, code: int) -> None:
        """A process that failed before it had a log has said why elsewhere."""
        import ray

        if code and self._takes_parts and not (self._folder / "log.txt").exists():
            with suppress(ray.exceptions.RayError):
                said = ray.get(self._actor.last_words.remote(), timeout=5.0)
                (self._folder / "log.txt").write_text(masked(said), encoding="utf-8")

    def signal(self, number: int, alone: bool = False) -> None:
        import ray

        if self.exitcode is not None:
            return
        if not self.node and number in (signal.SIGTERM, signal.SIGKILL):  # it has no place yet
            ray.kill(self._actor)
            self.exitcode = -number
        else:
            self._actor.signal.remote(number, alone)

    def join(self, timeout_s: float) -> None:
        """As the protocol says. What has no room here is given up: there is nobody left to tell."""
        import ray

        deadline = time.monotonic() + timeout_s
        while self.exitcode is None and ((left := deadline - time.monotonic()) > 0 or self.leaving):
            if not ray.wait([self.pending], timeout=max(0.0, min(left, 0.5)) or POLL_S)[0]:
                continue
            came = True  # a part that was lost is no reason to wait
            with suppress(OSError):
                came = self.take()
            if not came:
                time.sleep(POLL_S)

    def close(self) -> None:
        """Ends the actor, and the process with it."""
        import ray

        with suppress(ray.exceptions.RayError):
            ray.get(self._actor.close.remote(), timeout=5.0)
        with suppress(ray.exceptions.RayError):
            ray.kill(self._actor)
        if self.exitcode is None:
            self.exitcode = -signal.SIGKILL
