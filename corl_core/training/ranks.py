"""The processes that train one agent together, as each of them sees the others: one, unless Accelerate joins several.

Each rank scores a slice of the step's completions, and one group may lie on two ranks, so answers are gathered before any
vote; rank 0 alone votes, talks to the peer and keeps the record, and the others get its rewards.

What rank 0 does alone may take as long as a slow peer: the others wait for its word in the group's store, where no collective's
time-out runs, and only then meet it in one.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch.distributed as dist

from corl_core.training.exchange import RunStopped, is_timeout

T = TypeVar("T")
TICK_S = 1.0  # a wait for rank 0 is one of many of this length
COLLECTIVE_S = 1800.0  # how far ranks may be apart where they do the same, in generation or in an update
_turns = itertools.count()  # of rank 0, in the same order on every rank


class FirstFailed(RuntimeError):
    """On the other ranks: rank 0 has failed, and says why itself."""


@dataclass(frozen=True)
class Ranks:
    """This process's place among `size`."""

    rank: int = 0
    size: int = 1

    @classmethod
    def now(cls) -> "Ranks":
        if not (dist.is_available() and dist.is_initialized()):
            return cls()
        return cls(dist.get_rank(), dist.get_world_size())

    @classmethod
    def join(cls, size: int, on_cpu: bool, timeout_s: float = COLLECTIVE_S) -> "Ranks":
        """Meets the agent's other processes, where there are any."""
        if size > 1:
            from accelerate import PartialState

            PartialState(cpu=on_cpu, timeout=timedelta(seconds=timeout_s))
        return cls.now()

    @property
    def first(self) -> bool:
        return self.rank == 0

    def gather(self, rows: list[T]) -> list[T]:
        """Everybody's rows, in rank order, on every rank."""
        if self.size == 1:
            return rows
        parts: list[Any] = [None] * self.size
        dist.all_gather_object(parts, rows)
        return [row for part in parts for row in part]

    def from_first(self, make: Callable[[], T]) -> T:
        """What rank 0 makes, on every rank, however long that takes. Where it raises RunStopped, every rank does; an error of its
        ends the others with FirstFailed."""
        if self.size == 1:
            return make()
        turn, store = f"rank 0/{next(_turns)}", dist.distributed_c10d._get_default_store()
        error: Exception | None = None
        made: list[Any] = [None, ""]
        if self.first:
            try:
                made = [make(), ""]
            except Exception as raised:  # passed on, so that no rank waits for ever
                error, made = raised, [None, type(raised).__name__]
            store.set(turn, "1")
        else:
            _wait_for(store, turn)
        dist.broadcast_object_list(made, src=0)
        if error is not None:
            raise error
        if made[1]:
            raise RunStopped if made[1] == RunStopped.__name__ else FirstFailed(made[1])
        return made[0]

    def in_turn(self, make: Callable[[], T]) -> T:
        """Each rank makes its own, rank 0 before the others."""
        own: list[T] = []
        self.from_first(lambda: own.append(make()))
        return own[0] if own else make()

    def meet(self) -> None:
        """Until every rank is here."""
        self.gather([])


def _wait_for(store: Any, key: str) -> None:
    while True:
        try:
            return store.wait([key], timedelta(seconds=TICK_S))
        except RuntimeError as error:
            if not is_timeout(error):
                raise
