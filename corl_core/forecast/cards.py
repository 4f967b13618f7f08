"""What a device can do: GPUs that are visible, datasheets of known cards, and this processor measured in a moment.

Datasheet figures are NVIDIA's for dense bfloat16 and float32 (SXM or the only variant). No card reaches them, so a forecast takes
a share of them: those that an H200 reached with 128 rows of Qwen2.5-3B's shape (README, GPUs), taken to hold for other cards and
shapes. `--probe` replaces them by this machine's own.
"""

import re
import shutil
import subprocess
import time
from dataclasses import dataclass

import numpy as np

from corl_core.doctor.machine import SMI, SMI_TIMEOUT_S
from corl_core.runs.placement import visible_gpus

UPDATE_SHARE = 0.57  # of a GPU's peak in the update's matrix products
AS_WRITTEN = 0.79  # of that speed where layers are not compiled
DECODE_SHARE = 0.39  # of a GPU's bandwidth in a decode step that is one CUDA graph; measured: 0.37 to 0.40
KERNEL_S, KERNELS = 3e-6, 12  # assumption: shortest kernel in a graph, and kernels a layer
CPU_UPDATE_SHARE = 0.25  # assumption: of the measured rate; small matrices and everything between them
CPU_CALL_S = 0.6e-3  # assumption: a layer's calls in one forward pass, whatever its size
MIB = 2**20


@dataclass(frozen=True)
class Rates:
    """What a device does in a second, and how that is known."""

    name: str
    flops: float  # in matrix products of the update, in the precision that it computes in
    bytes: float  # read in a decode step
    layer_s: float  # shortest time of one layer in a decode step
    known_from: str
    memory: float | None = None  # bytes
    as_written: float = 1.0  # share of `flops` where layers that could be compiled are not (`training/compiled.py`)


@dataclass(frozen=True)
class Card:
    """Dense FLOP/s in bfloat16 and float32, bytes/s, and the memory that the driver reports, in bytes."""

    bf16: float
    fp32: float
    bandwidth: float
    memory: float


CARDS = {  # the word in a card's name → datasheet; a longer word first
    "H200": Card(989e12, 67e12, 4.8e12, 143771 * MIB),
    "H100 PCIe": Card(756e12, 51e12, 2.0e12, 81559 * MIB),
    "H100": Card(989e12, 67e12, 3.35e12, 81559 * MIB),
    "B200": Card(2250e12, 80e12, 8.0e12, 183359 * MIB),
    "A100-SXM4-80GB": Card(312e12, 19.5e12, 2.04e12, 81920 * MIB),
    "A100 80GB": Card(312e12, 19.5e12, 1.94e12, 81920 * MIB),
    "A100": Card(312e12, 19.5e12, 1.56e12, 40960 * MIB),
    "L40S": Card(362e12, 91.6e12, 0.86e12, 46068 * MIB),
    "A10G": Card(70e12, 35e12, 0.6e12, 23028 * MIB),
    "RTX 4090": Card(165e12, 82.6e12, 1.01e12, 24564 * MIB),
    "RTX 3090": Card(71e12, 35.6e12, 0.94e12, 24576 * MIB),
    "T4": Card(65e12, 8.1e12, 0.32e12, 15360 * MIB),
}


@dataclass(frozen=True)
class Gpu:
    """A visible GPU. `memory`, `used`: bytes in all and in use, None where the driver does not answer."""

    id: str
    name: str
    memory: float | None
    used: float | None = None


def gpus() -> list[Gpu]:
    """Those that runs may use, as the driver describes them; without loading a training library."""
    ids = visible_gpus()
    told = _smi() if ids and shutil.which(SMI[0]) else {}
    return [Gpu(id, *told.get(id, ("GPU", None, None))) for id in ids]


def _smi() -> dict[str, tuple[str, float, float]]:
    try:
        said = subprocess.run(SMI, capture_output=True, text=True, timeout=SMI_TIMEOUT_S, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    return parse_smi(said)


def parse_smi(said: str) -> dict[str, tuple[str, float, float]]:
    """Index → name, bytes in all and in use, from nvidia-smi's table (the fields of doctor/machine.py)."""
    rows = [line.split(", ") for line in said.strip().splitlines()]
    told = [row for row in rows if len(row) == 6 and row[2].isdigit() and row[3].isdigit()]
    return {row[0]: (row[1], float(row[2]) * MIB, float(row[3]) * MIB) for row in told}


def card(name: str) -> tuple[str, Card] | None:
    """The card that a name means, such as 'NVIDIA H200', 'h100' or '4090'."""
    asked = _letters(name)
    ends = asked if len(asked) > 2 else "?"  # of so few letters, nothing is meant by those at the end
    return next(((key, CARDS[key]) for key in CARDS if _letters(key) in asked or _letters(key).endswith(ends)), None)


def _letters(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def card_rates(name: str, compute: int) -> Rates | None:
    """By datasheet, for computing in `compute` bytes; None for a card that is not in the table."""
    if (found := card(name)) is None:
        return None
    key, sheet = found
    peak = sheet.bf16 if compute == 2 else sheet.fp32
    return Rates(
        key, UPDATE_SHARE * peak, DECODE_SHARE * sheet.bandwidth, KERNELS * KERNEL_S,
        f"{key}'s datasheet × {UPDATE_SHARE:.0%} of its FLOP/s updating ({UPDATE_SHARE * AS_WRITTEN:.0%} where layers are not "
        f"compiled), {DECODE_SHARE:.0%} of its bandwidth decoding",
        sheet.memory, AS_WRITTEN,
    )  # fmt: skip


def cpu_rates(threads: int) -> Rates:
    """This processor, for an agent of so many threads: a matrix product and a copy, timed for some ten milliseconds each."""
    flops, moved = _measured()
    return Rates(
        "this CPU", CPU_UPDATE_SHARE * flops * threads, moved, CPU_CALL_S,
        f"this CPU, measured: {flops / 1e9:.0f} GFLOP/s a core × {CPU_UPDATE_SHARE:.0%}, {moved / 1e9:.0f} GB/s",
    )  # fmt: skip


_cpu: list[tuple[float, float]] = []


def _measured() -> tuple[float, float]:
    """FLOP/s of a core and bytes/s, once a process; float32, best of three. Matrices so small are multiplied by one thread."""
    if not _cpu:
        size, number, words = 64, 256, 2**22
        a = np.ones((number, size, size), np.float32)
        product = _best(lambda: a @ a[0])
        block = np.ones(words, np.float32)
        copy = _best(lambda: block.copy())
        _cpu.append((2 * number * size**3 / product, 8 * words / copy))
    return _cpu[0]


def _best(call) -> float:
    call()
    times = []
    for _ in range(3):
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return min(times)
