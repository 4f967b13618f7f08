"""The processes that train one agent together: one, unless Accelerate started several.

Each rank scores a slice of the step's completions, and one group may lie on two ranks, so answers are gathered before any
vote; rank 0 alone votes, talks to the peer and keeps the record, and the others get its rewards.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import torch.distributed as dist

T = TypeVar("T")


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
        """What rank 0 makes, on every rank; an error there ends the others too."""
        if self.size == 1:
            return make()
        made: list[Any] = [None]
        if self.first:
            try:
                made = [(make(), None)]
            except Exception as error:  # passed on, so that no rank waits for ever
                made = [(None, error)]
        dist.broadcast_object_list(made, src=0)
        value, error = made[0]
        if error is not None:
            raise error
        return value
