"""Slots: what a run takes while it lives, what there is, and whether one more fits.

On the CPU a slot is a core, and each process of an agent takes as many as it has threads; by default there are as many slots as
cores. On a GPU a slot is one process of one agent; by default there is one a GPU. The queue fills the places that a run leaves
open (see `placement.py`), writes them down (`gpu.json`), and shows the run those GPUs alone (CUDA_VISIBLE_DEVICES); a run that
was launched directly counts where its supervisor puts it. A run that names GPUs waits for those. A run that asks for more than
there is starts when nothing else takes what it needs. Agents that Ray places take nothing here.
"""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from corl_core.config import RunConfig
from corl_core.runs.folder import Run, write_atomically
from corl_core.runs.launch import LaunchError
from corl_core.runs.placement import Wishes, counts, fill, visible_gpus, wishes

MAX_SLOTS = 4096
__all__ = ["Free", "Need", "Slots", "need", "num_cores", "place", "read_slots", "visible_gpus", "write_slots"]


def num_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclass(frozen=True)
class Slots:
    """How much may run at a time."""

    cpu: int = field(default_factory=num_cores)
    gpu: int = 1  # processes of agents on each GPU


def read_slots(path: Path) -> Slots:
    """The slots that were set, else the default; a damaged file is the default."""
    try:
        return checked(Slots(**json.loads(path.read_text(encoding="utf-8"))))
    except (OSError, ValueError, TypeError, LaunchError):
        return Slots()


def write_slots(path: Path, slots: Slots) -> None:
    """Raises LaunchError for a number that is out of range."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(asdict(checked(slots))))


def checked(slots: Slots) -> Slots:
    for name, number in asdict(slots).items():
        if not isinstance(number, int) or not 1 <= number <= MAX_SLOTS:
            raise LaunchError(f"{name} slots {number!r}: give a whole number from 1 to {MAX_SLOTS}")
    return slots


@dataclass(frozen=True)
class Need:
    """What one run takes: cores, or a place on a GPU for every process of every agent (None in it: on any)."""

    cores: int = 0
    places: Wishes = field(default_factory=dict)

    @property
    def takes_slots(self) -> bool:
        return bool(self.cores or self.places)

    @property
    def on_gpu(self) -> bool:
        return bool(self.places)

    @property
    def num_places(self) -> int:
        return sum(map(len, self.places.values()))

    @property
    def gpus(self) -> list[str]:
        """Those that are known."""
        return list(counts(self.places))


def need(config: RunConfig, gpus: Sequence[str], placed: Wishes | None = None) -> Need:
    """What a run of this configuration takes where there are these GPUs; `placed`: where its agents have been put. Raises
    PlacementError for one that names GPUs which there are not."""
    if config.launcher == "ray":
        return Need()
    if places := placed or wishes(config, gpus):
        return Need(places=places)
    return Need(cores=sum(agent.placement.num_processes for agent in config.agents) * config.threads_per_agent)


def place(run: Run, places: Wishes) -> None:
    """Puts a run's agents on these GPUs: they will see those alone."""
    write_atomically(run.path / "gpu.json", json.dumps(places))


class Free:
    """What is left of the slots beside the runs that live; `take` books one more run."""

    def __init__(self, slots: Slots, gpus: Sequence[str], living: Iterable[Need]):
        self.slots, self.gpus = slots, list(gpus)
        self.cores_used, self.agents_on = 0, dict.fromkeys(self.gpus, 0)
        for taken in living:
            self._book(taken)

    def take(self, wanted: Need) -> Need | None:
        """The need with its places filled, booked; None when it does not fit now."""
        if not wanted.takes_slots:
            return wanted
        if not wanted.on_gpu:
            fits = self.cores_used == 0 or self.cores_used + wanted.cores <= self.slots.cpu
            return self._book(wanted) if fits else None
        found = Need(places=fill(wanted.places, self.agents_on))
        taken = counts(found.places)
        alone = all(self.agents_on[gpu] == 0 for gpu in taken)
        roomy = all(self.agents_on[gpu] + number <= self.slots.gpu for gpu, number in taken.items())
        return self._book(found) if alone or roomy else None

    def _book(self, taken: Need) -> Need:
        self.cores_used += taken.cores
        places = fill(taken.places, dict.fromkeys(self.gpus, 0)) if self.gpus else {}
        for gpu, number in counts(places).items():
            if gpu in self.agents_on:
                self.agents_on[gpu] += number
        return taken
