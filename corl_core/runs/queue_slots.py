"""Slots: what a run takes while it lives, what there is, and whether one more fits.

On the CPU a slot is a core, and an agent takes as many as it has threads; by default there are as many slots as cores. On a GPU
a slot is an agent; by default there is one a GPU. A cohort shares one GPU: the queue chooses it, and shows its runs that one
alone (CUDA_VISIBLE_DEVICES); a run that was launched directly counts on the first. A run that asks for more than there is
starts when nothing else takes what it needs.
"""

import json
import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from corl_core.config import RunConfig
from corl_core.runs.folder import Run, write_atomically
from corl_core.runs.launch import LaunchError

MAX_SLOTS = 4096
VISIBLE = "CUDA_VISIBLE_DEVICES"


def num_cores() -> int:
    """The cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def visible_gpus(devices: Path = Path("/dev")) -> list[str]:
    """The GPUs that runs may use, as CUDA names them: those of CUDA_VISIBLE_DEVICES, else NVIDIA's devices by number."""
    if (named := os.environ.get(VISIBLE)) is not None:
        return [name.strip() for name in named.split(",") if name.strip() and name.strip() != "-1"]
    found = (re.fullmatch(r"nvidia(\d+)", path.name) for path in devices.glob("nvidia*"))
    return [str(number) for number in range(sum(match is not None for match in found))]


@dataclass(frozen=True)
class Slots:
    """How much may run at a time."""

    cpu: int = field(default_factory=num_cores)
    gpu: int = 1  # agents on each GPU


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
    """What one run takes: cores, or places for its agents on one GPU (`gpu` once it is known which)."""

    cores: int = 0
    agents: int = 0
    gpu: str | None = None

    @property
    def on_gpu(self) -> bool:
        return self.agents > 0


def need(config: RunConfig, gpus: Sequence[str], placed: str | None = None) -> Need:
    """What a run of this configuration takes where there are these GPUs; `placed` is the one that it is on."""
    if config.device == "cpu" or not gpus:
        return Need(cores=len(config.agents) * config.threads_per_agent)
    return Need(agents=len(config.agents), gpu=placed)


def place(run: Run, gpu: str) -> None:
    """Puts a run on a GPU: its agents will see that one alone."""
    write_atomically(run.path / "gpu.json", json.dumps({"gpu": gpu}))


class Free:
    """What is left of the slots beside the runs that live; `take` books one more run."""

    def __init__(self, slots: Slots, gpus: Sequence[str], living: Iterable[Need]):
        self.slots, self.gpus = slots, list(gpus)
        self.cores_used, self.agents_on = 0, dict.fromkeys(self.gpus, 0)
        for taken in living:
            self._book(taken)

    def take(self, wanted: Need) -> Need | None:
        """The need with its GPU chosen, booked; None when it does not fit now."""
        if not wanted.on_gpu:
            fits = self.cores_used == 0 or self.cores_used + wanted.cores <= self.slots.cpu
            return self._book(wanted) if fits else None
        for gpu in sorted(self.gpus, key=self.agents_on.__getitem__):  # the emptiest first
            if self.agents_on[gpu] == 0 or self.agents_on[gpu] + wanted.agents <= self.slots.gpu:
                return self._book(Need(agents=wanted.agents, gpu=gpu))
        return None

    def _book(self, taken: Need) -> Need:
        self.cores_used += taken.cores
        if taken.on_gpu and self.gpus:
            gpu = taken.gpu if taken.gpu in self.agents_on else self.gpus[0]
            self.agents_on[gpu] += taken.agents
        return taken
