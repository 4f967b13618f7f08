"""How votes travel: one answer a question, from each agent to the next on the ring, and nothing else.

The supervisor hosts a `TCPStore` from torch.distributed, on the loopback address unless Ray places the agents. In each round an
agent publishes its votes under its own name, then waits for its peer's. A message carries a digest of the question ids: a peer
that drew other questions is an error, not a wrong label. It also carries the step at which the cohort is to stop, if anybody was
asked to: agents that stop after the same step can all go on from it.
"""

import hashlib
import json
import socket
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from torch.distributed import TCPStore

CONNECT_S = 20
TICK_S = 0.5  # how often a waiting agent looks whether the run was aborted
ABORT = "abort"
LOOPBACK = "127.0.0.1"


class CohortError(RuntimeError):
    """The cohort cannot go on; the text names the agent and the round."""


class RunStopped(Exception):
    """Somebody asked the run to stop while this agent was waiting."""


def host_store(host: str = LOOPBACK) -> TCPStore:
    """A store on a free port of this address, for the supervisor; `.port` is where agents connect. It is handed a socket, for one
    that it opens itself would listen on every address of the machine."""
    own = socket.create_server((host, 0), backlog=256)
    port = own.getsockname()[1]
    return TCPStore(
        host, port, None, is_master=True, timeout=timedelta(seconds=CONNECT_S), wait_for_workers=False,
        master_listen_fd=own.detach(),
    )  # fmt: skip


def is_timeout(error: RuntimeError) -> bool:
    """Of a store: a time-out and a lost host are both DistStoreError; only the text differs."""
    return "timeout" in str(error).lower() or "timed out" in str(error).lower()


def digest(question_ids: Sequence[str]) -> str:
    return hashlib.sha256("\n".join(question_ids).encode()).hexdigest()[:16]


class Exchange:
    """One agent's end of the ring."""

    def __init__(
        self, agent: str, peer: str, port: int, timeout_s: float, stopping: Callable[[], bool] = lambda: False, notice: int = 1,
        host: str = LOOPBACK,
    ):  # fmt: skip
        """`stopping`: whether this agent was asked to stop. `notice`: steps that it takes until every agent has heard of it.
        `port` and `host`: where the store is."""
        self.agent, self.peer, self.timeout_s, self._stopping, self._notice = agent, peer, timeout_s, stopping, notice
        self.stop_step: int | None = None  # updates after which the whole cohort stops, once that is agreed
        self._store = TCPStore(host, port, None, is_master=False, timeout=timedelta(seconds=CONNECT_S))

    def ready(self) -> None:
        """Waits until the peer is ready for the first round; making its base model may take it minutes. Raises RunStopped
        when the run is to stop meanwhile."""
        self._store.set(f"ready/{self.agent}", "1")
        self._wait(f"ready/{self.peer}", "start", None, self._stopping)

    def swap(self, round_id: int | str, question_ids: Sequence[str], votes: Sequence[str | None]) -> list[str | None]:
        """Publishes my votes (an answer's text, or None for no vote) and returns my peer's on the same questions. Rounds are
        steps, and 'eval-STEP' where a checkpoint rule compares held-out votes.

        Raises CohortError when the peer drew other questions, is too late, or the run was aborted.
        """
        mine = digest(question_ids)
        if isinstance(round_id, int) and self._stopping():
            self._agree_to_stop(round_id + self._notice)
        message = {"digest": mine, "votes": list(votes), "stop_step": self.stop_step}
        self._store.set(f"votes/{round_id}/{self.agent}", json.dumps(message))
        message = json.loads(self._wait(f"votes/{round_id}/{self.peer}", f"round {round_id}", self.timeout_s))
        if message["digest"] != mine:
            raise CohortError(
                f"round {round_id}: agent '{self.agent}' and its peer '{self.peer}' drew different questions "
                f"(digest {mine} against {message['digest']}); check that both read the same data and seed"
            )
        if message["stop_step"] is not None:
            self._agree_to_stop(message["stop_step"])
        return message["votes"]

    def leave(self) -> None:
        """Tells whoever waits for me that no more votes will come."""
        self._store.set(f"left/{self.agent}", "1")

    def _agree_to_stop(self, step: int) -> None:
        """The earliest step that anybody named; messages carry it round the ring before it is reached."""
        self.stop_step = step if self.stop_step is None else min(self.stop_step, step)

    def _wait(self, key: str, moment: str, timeout_s: float | None, stopping: Callable[[], bool] = lambda: False) -> str:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while not self._arrived(key, moment, deadline):
            self._stopping()  # who waits is alive, and is heard to be
            if self._store.check([ABORT]):
                raise CohortError(f"{moment}: {self._store.get(ABORT).decode()}")
            if stopping() or (self._store.check([f"left/{self.peer}"]) and not self._store.check([key])):
                raise RunStopped
            if deadline is not None and time.monotonic() > deadline:
                raise CohortError(
                    f"{moment}: agent '{self.agent}' had no votes from its peer '{self.peer}' within {timeout_s:g} s; "
                    "raise exchange.timeout_s if the peer is only slower"
                )
        return self._store.get(key).decode()

    def _arrived(self, key: str, moment: str, deadline: float | None) -> bool:
        left = TICK_S if deadline is None else min(TICK_S, max(0.01, deadline - time.monotonic()))
        try:
            self._store.wait([key], timedelta(seconds=left))
            return True
        except RuntimeError as error:
            if is_timeout(error):
                return False
            why = str(error).splitlines()[0][:200]
            raise CohortError(f"{moment}: agent '{self.agent}' lost the vote store: {why}") from error
