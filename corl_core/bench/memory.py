"""`bench memory`: the forecast of an agent's memory against what a step takes, for models of real shapes with random weights.

`--device cuda` makes each model on the GPU, samples with the project's decoder and takes two optimizer steps with its trainer;
`torch.cuda.max_memory_allocated` is read phase by phase, after the first step, when the optimizer has its state. `--device trace`
needs no GPU: it follows the update alone, at the same shapes, on tensors without content (`live_bytes.py`).
"""

import gc
import sys
from dataclasses import dataclass, replace
from typing import Any

from corl_core.bench import machine
from corl_core.bench.shapes import SHAPES
from corl_core.config import ConfigError
from corl_core.forecast.memory import GIB, Holding, Memory, Work, memory
from corl_core.forecast.shape import from_config


@dataclass(frozen=True)
class Setting:
    """One model with one way to train it; `rows` completions a step, in `slices`."""

    shape: str
    rows: int
    completion: int = 256
    prompt: int = 128
    slices: int = 1
    bfloat16_weights: bool = False
    checkpointing: bool = True
    lora: int = 0
    checkpointed_layers: int | None = None

    @property
    def words(self) -> str:
        parts = [f"{self.rows}×({self.prompt}+{self.completion})", f"slices {self.slices}"]
        layers = f"{self.checkpointed_layers} layers " if self.checkpointed_layers else ""
        parts += ["bf16 weights"] * self.bfloat16_weights + [f"{layers}checkpointed"] * self.checkpointing
        parts += [f"LoRA {self.lora}"] * (self.lora > 0)
        return ", ".join(parts)

    @property
    def holding(self) -> Holding:
        weight = 2 if self.bfloat16_weights else 4
        copies = weight == 4 or self.lora > 0
        return Holding(
            weight, 2, self.lora, checkpointing=self.checkpointing, checkpointed_layers=self.checkpointed_layers,
            sampling_copy=copies, joined=True,
        )  # fmt: skip

    @property
    def work(self) -> Work:
        return Work(self.rows // self.slices, self.slices, self.prompt, self.completion, self.rows, max(1, self.rows // 8))

    def predicted(self, gpu_bytes: float, on_gpu: bool) -> Memory:
        """On a GPU, full weights have their layers compiled."""
        holding = replace(self.holding, compiled=on_gpu and not self.lora)
        return memory(from_config(SHAPES[self.shape], self.shape), holding, self.work, gpu_bytes)


SETTINGS = (
    Setting("qwen2.5-0.5b", 64, slices=2, checkpointing=False),
    Setting("qwen2.5-0.5b", 128),
    Setting("llama-3.2-1b", 64, slices=4, checkpointing=False),
    Setting("llama-3.2-1b", 128, slices=2),
    Setting("qwen2.5-1.5b", 128, slices=2),
    Setting("qwen2.5-1.5b", 64, completion=512, slices=4, lora=16, bfloat16_weights=True, checkpointing=False),
    Setting("qwen2.5-3b", 128, slices=2),
    Setting("qwen2.5-3b", 32, completion=1024, slices=4, bfloat16_weights=True),
    Setting("qwen2.5-3b", 128, slices=4, lora=16, bfloat16_weights=True),
    Setting("llama-3.2-3b", 64, slices=2),
    Setting("qwen2.5-3b", 128, slices=4, bfloat16_weights=True, checkpointed_layers=12),
)


@dataclass(frozen=True)
class Measured:
    """Bytes of tensors in each phase, and what the allocator reserved in all (None without a GPU)."""

    phases: dict[str, float]
    reserved: float | None = None


@dataclass(frozen=True)
class Row:
    """A setting with its forecast and what was measured; `error` in its place where it could not be."""

    setting: Setting
    predicted: dict[str, float]
    measured: Measured | None
    error: str = ""

    @property
    def ratios(self) -> dict[str, float]:
        """Phase → predicted over measured."""
        if self.measured is None:
            return {}
        return {phase: self.predicted[phase] / size for phase, size in self.measured.phases.items() if size}


def measure(device: str, only: list[str] | None = None) -> list[Row]:
    """`only`: shapes to measure. A setting that fails is told as such, and the others go on; each is told on stderr when done."""
    if unknown := set(only or ()) - {setting.shape for setting in SETTINGS}:
        shapes = ", ".join(dict.fromkeys(setting.shape for setting in SETTINGS))
        raise ConfigError(f"--shapes {min(unknown)}: no such shape; there are {shapes}")
    machine.require(device, "take --device trace")
    rows = []
    for setting in SETTINGS:
        if only is None or setting.shape in only:
            rows.append(_row(setting, device))
            print(f"{setting.shape}, {setting.words}: {rows[-1].error or rows[-1].ratios}", file=sys.stderr, flush=True)
    return rows


def _row(setting: Setting, device: str) -> Row:
    import torch

    size = torch.cuda.get_device_properties(0).total_memory if device == "cuda" else float("inf")
    made = setting.predicted(size, on_gpu=device == "cuda")
    if device == "trace":
        from corl_core.bench.memory_trace import trace

        return Row(setting, {"update": made.weights + made.update}, Measured({"update": trace(setting)}))
    from corl_core.bench.memory_step import step

    predicted = made.phases | {"needed": made.needed}
    try:
        found, error = step(setting), ""
    except Exception as raised:  # on a machine that is lent for minutes, the other rows must not be lost
        found, error = None, f"{type(raised).__name__}: {' '.join(str(raised).split())[:120]}"
    gc.collect()
    torch.cuda.empty_cache()
    return Row(setting, predicted, found, error)


def table(rows: list[Row]) -> str:
    """Markdown: predicted, measured and their ratio for each phase, GiB; the last line says how many are within 15%."""
    phases = list(dict.fromkeys(phase for row in rows if row.measured for phase in row.measured.phases))
    heads = [f"{phase}: predicted | measured | ratio" for phase in phases]
    lines = ["| model | setting | " + " | ".join([*heads, "reserved"]) + " |"]
    lines.append("| --- | --- |" + " ---: |" * (3 * len(phases) + 1))
    for row in rows:
        cells = [_cells(row, phase) for phase in phases]
        reserved = f"{row.measured.reserved / GIB:.1f}" if row.measured and row.measured.reserved else row.error or "–"
        lines.append(f"| {row.setting.shape} | {row.setting.words} | " + " | ".join([*cells, reserved]) + " |")
    peaks = [peak_ratio(row) for row in rows if row.measured] or [float("nan")]
    close = sum(abs(ratio - 1) <= 0.15 for ratio in peaks)
    return "\n".join([*lines, "", f"peak within 15%: {close} of {len(peaks)}; worst {max(peaks, key=lambda r: abs(r - 1)):.2f}"])


def _cells(row: Row, phase: str) -> str:
    if row.measured is None:
        return f"{row.predicted[phase] / GIB:.1f} | – | –"
    return f"{row.predicted[phase] / GIB:.2f} | {row.measured.phases[phase] / GIB:.2f} | {row.ratios[phase]:.3f}"


def peak_ratio(row: Row) -> float:
    """Predicted over measured, for the largest phase of each."""
    measured: dict[str, Any] = row.measured.phases
    return max(row.predicted[phase] for phase in measured) / max(measured.values())

