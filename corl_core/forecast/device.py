"""Which device a forecast is about: the GPUs that are visible, cards that a person names, or this machine's processor."""

import math
import os
import re

import psutil

from corl_core.config import ConfigError, RunConfig
from corl_core.forecast import cards
from corl_core.forecast.cards import Gpu
from corl_core.forecast.plan import Device

UNITS = {"gib": 2**30, "gb": 1e9, "mib": 2**20, "mb": 1e6, "g": 2**30}


def memory_size(text: str) -> float:
    """Bytes of '80GiB', '80 GB' or '81559MiB'. Raises ConfigError."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", text)
    if not found or found[2].lower() not in UNITS or float(found[1]) <= 0:
        raise ConfigError(f"--gpu-memory={text}: a size with its unit is needed, such as 80GiB, 80GB or 81559MiB")
    return float(found[1]) * UNITS[found[2].lower()]


def device_for(
    config: RunConfig, gpu_memory: float | None = None, card: str | None = None, num_gpus: int | None = None
) -> Device:  # fmt: skip
    """What is here, unless a card, a size or a number is given: then GPUs like that, one for each process unless said."""
    if card is not None and cards.card(card) is None:
        raise ConfigError(f"--card={card}: no known card; there are {', '.join(cards.CARDS)}; --gpu-memory gives a size alone")
    asked = gpu_memory is not None or card is not None or num_gpus is not None
    seen = [] if config.device == "cpu" else cards.gpus()
    if not asked and not seen:
        return _cpu(config)
    name = card or (seen[0].name if seen else "GPU")
    size = gpu_memory or (cards.card(card)[1].memory if card else seen[0].memory if seen else None)
    gpus = [Gpu(str(number), name, size) for number in range(num_gpus or len(seen) or _processes(config))] if asked else seen
    rates = {compute: found for compute in (2, 4) if (found := cards.card_rates(name, compute))}
    return Device(tuple(gpus), rates)


def _processes(config: RunConfig) -> int:
    named = [gpu + 1 for agent in config.agents for gpu in agent.placement.gpus]
    open_ = sum(agent.placement.num_processes for agent in config.agents if not agent.placement.gpus)
    return max([open_, *named])


def _cpu(config: RunConfig) -> Device:
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = config.threads_per_agent
    rates = cards.cpu_rates(threads)
    memory = float(psutil.virtual_memory().total)
    return Device((), dict.fromkeys((2, 4), rates), memory if memory else math.inf, max(1, cores // threads))
