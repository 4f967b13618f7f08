"""Which GPU each process of each agent is on.

An agent names its GPUs by number among those that are visible, or leaves them open: a process with an open place goes to the GPU
with the fewest processes, the first of equals. So two agents on two GPUs get one each, and on one GPU they share it. The
processes of one agent are on different GPUs. The queue fills open places beside the runs that live, the supervisor of a run
that was launched directly beside nothing.
"""

import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from corl_core.config import ConfigError, RunConfig

Wishes = Mapping[str, tuple[str | None, ...]]  # agent → a GPU for each of its processes; None: any
Places = dict[str, tuple[str, ...]]
VISIBLE = "CUDA_VISIBLE_DEVICES"


class PlacementError(ConfigError):
    """Agents that cannot be where they are to be; the text names the field and what there is."""


def visible_gpus(devices: Path = Path("/dev")) -> list[str]:
    """The GPUs that runs may use, as CUDA names them: those of CUDA_VISIBLE_DEVICES, else NVIDIA's devices by number."""
    if (named := os.environ.get(VISIBLE)) is not None:
        return [name.strip() for name in named.split(",") if name.strip() and name.strip() != "-1"]
    found = (re.fullmatch(r"nvidia(\d+)", path.name) for path in devices.glob("nvidia*"))
    return [str(number) for number in range(sum(match is not None for match in found))]


def wishes(config: RunConfig, gpus: Sequence[str]) -> Wishes:
    """What a run asks for where these GPUs are visible; {} where it trains on the CPU or Ray places it. Raises PlacementError."""
    if config.device == "cpu" or config.launcher == "ray":
        return {}
    asked = {}
    for agent in config.agents:
        wanted, number = agent.placement.gpus, agent.placement.num_processes
        if missing := [gpu for gpu in wanted if gpu >= len(gpus)]:
            raise PlacementError(
                f"agent '{agent.name}': placement.gpus={wanted}, but {_seen(gpus)}; name GPUs by number among those, or leave "
                f"'gpus' empty (no GPU {missing[0]})"
            )
        if gpus and number > len(gpus):
            raise PlacementError(
                f"agent '{agent.name}': placement.processes={number}, one GPU each, but {_seen(gpus)}; lower it, or make more "
                "visible in CUDA_VISIBLE_DEVICES"
            )
        asked[agent.name] = tuple(gpus[gpu] for gpu in wanted) or (None,) * number
    return asked if gpus else {}


def _seen(gpus: Sequence[str]) -> str:
    return f"the GPUs visible here are {', '.join(gpus)} (numbered from 0)" if gpus else "no GPU is visible here"


def fill(asked: Wishes, load: Mapping[str, int]) -> Places:
    """Every place named, beside `load`: GPU → processes that are on it already."""
    own = dict.fromkeys(load, 0)
    for gpu in (gpu for wanted in asked.values() for gpu in wanted if gpu in own):
        own[gpu] += 1
    places: Places = {}
    for name, wanted in asked.items():
        taken = [gpu for gpu in wanted if gpu is not None]
        for _ in range(len(wanted) - len(taken)):
            taken.append(min((gpu for gpu in load if gpu not in taken), key=lambda gpu: (load[gpu] + own[gpu], own[gpu])))
            own[taken[-1]] += 1
        places[name] = tuple(taken)
    return places


def counts(places: Wishes) -> dict[str, int]:
    """GPU → processes on it."""
    named = [gpu for wanted in places.values() for gpu in wanted if gpu is not None]
    return {gpu: named.count(gpu) for gpu in dict.fromkeys(named)}


def in_words(places: Places) -> str:
    """Where the agents are, as one line, e.g. 'a on GPU 0, b on GPUs 1 and 2'; '' on the CPU."""
    named = {name: (" and ".join(gpus), "s" if len(gpus) > 1 else "") for name, gpus in places.items()}
    return ", ".join(f"{name} on GPU{plural} {gpus}" for name, (gpus, plural) in named.items())
