"""Whole steps of a model with random weights: the project's decoder, then its trainer, and the peak of tensors in each phase.

Rewards are alternately 0 and 1, so that every row has an advantage and none is left out; no completion ends early.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import BatchEncoding, TrainerCallback

from corl_core.bench.live_bytes import LiveBytes
from corl_core.bench.memory import Measured, Setting
from corl_core.bench.shapes import make_model, make_tokenizer
from corl_core.config import RunConfig
from corl_core.config_models import LoraSettings
from corl_core.training import adapters, compiled
from corl_core.training.sampling.static import StaticDecoder
from corl_core.training.trainer import CohortTrainer, grpo_arguments

GROUP, STEPS, PADDING = 8, 2, 4
LEFT_BYTES = 2**28  # of cuBLAS's workspaces and the like


class Counter:
    """The peak of tensors since `reset`: by CUDA's allocator, or tensor by tensor on a CPU."""

    def __init__(self, device: str):
        self.on_gpu, self._live = device == "cuda", None if device == "cuda" else LiveBytes()

    @contextmanager
    def counting(self) -> Iterator[None]:
        if self.on_gpu:
            torch.cuda.empty_cache()
            if (left := torch.cuda.memory_allocated()) > LEFT_BYTES:
                raise RuntimeError(f"{left / 2**30:.1f} GiB are held from before: the peak would not be this setting's own")
            torch.cuda.reset_peak_memory_stats()
            yield
        else:
            with self._live:
                yield

    def hold(self, model: torch.nn.Module) -> None:
        if not self.on_gpu:
            self._live.hold_all(model)

    def read(self) -> float:
        """The peak, and a new beginning."""
        if self.on_gpu:
            peak = torch.cuda.max_memory_allocated()
            torch.cuda.reset_peak_memory_stats()
        else:
            peak = self._live.peak
            self._live.reset()
        return float(peak)


class _Phases(TrainerCallback):
    """Reads the counter where one phase ends and the next begins; the last step's reading stays."""

    def __init__(self, counter: Counter):
        self.counter, self.peaks, self.reserved = counter, {}, 0.0

    def on_pre_optimizer_step(self, args, state, control, **kwargs):
        self.peaks["update"] = self.counter.read()

    def on_optimizer_step(self, args, state, control, **kwargs):
        self.peaks["optimizer"] = self.counter.read()


def step(setting: Setting, device: str = "cuda") -> Measured:
    """The second of two steps, when gradients and the optimizer's state have been made once."""
    counter = Counter(device)
    reserved = 0.0
    with counter.counting(), tempfile.TemporaryDirectory() as folder:
        model = make_model(setting.shape, device, torch.bfloat16 if setting.bfloat16_weights else torch.float32)
        if setting.lora:
            model = adapters.add(model, LoraSettings(r=setting.lora), seed=0)
        counter.hold(model)
        phases = _Phases(counter)
        _train(model, setting, device, Path(folder), phases)
        if counter.on_gpu:
            reserved = float(torch.cuda.max_memory_reserved())
    return Measured(phases.peaks, reserved or None)


def _train(model: Any, setting: Setting, device: str, folder: Path, phases: _Phases) -> None:
    decoder = StaticDecoder(adapters.plain(model), bf16=True)
    vocabulary, length = adapters.plain(model).config.vocab_size, setting.prompt
    ids = torch.randint(3, vocabulary - 1, (setting.rows // GROUP, length), device=device)
    mask = torch.ones_like(ids)
    mask[1::2, :PADDING] = 0

    def rollouts(prompts: list[str], trainer: Any) -> dict[str, list]:
        phases.counter.read()
        generator = torch.Generator(device).manual_seed(trainer.state.global_step)
        batch = BatchEncoding({"input_ids": ids, "attention_mask": mask})
        never = torch.tensor([-1], device=device)
        drawn = decoder.sample(batch, GROUP, generator, setting.completion, 1.0, never)
        adapters.plain(model).train()  # the decoder, which may run the model itself, leaves it as it samples
        phases.peaks["sampling"] = phases.counter.read()
        prompt_ids = [row[keep.bool()].tolist() for row, keep in zip(ids, mask, strict=True) for _ in range(GROUP)]
        return {"prompt_ids": prompt_ids, "completion_ids": drawn.tokens.tolist(), "logprobs": drawn.measured[0].tolist()}

    config = _config(setting)
    trainer = CohortTrainer(
        model=model,
        processing_class=make_tokenizer("tiny"),
        reward_funcs=_alternate,
        rollout_func=rollouts,
        args=grpo_arguments(config, folder, 0, use_cpu=device == "cpu"),
        train_dataset=Dataset.from_dict({"prompt": ["?"] * (STEPS * config.grpo.questions_per_step)}),
        callbacks=[phases],
    )
    phases.counter.hold(trainer.model)
    compiled.fit(trainer, config.grpo, num_processes=1)
    trainer.train()


def _alternate(completions: list[str], **_: Any) -> list[float]:
    return [float(index % 2) for index in range(len(completions))]


def _config(setting: Setting) -> RunConfig:
    grpo = {
        "max_steps": STEPS, "questions_per_step": setting.rows // GROUP, "num_generations": GROUP, "bf16": True,
        "max_completion_length": setting.completion, "gradient_accumulation_steps": setting.slices,
        "gradient_checkpointing": setting.checkpointing, "checkpointed_layers": setting.checkpointed_layers,
        "learning_rate": 1e-6,
    }  # fmt: skip
    agents = [{"name": "a", "model": "tiny:llama"}]
    return RunConfig.model_validate(
        {"name": "memory", "method": "ttrl", "agents": agents, "grpo": grpo, "checkpoints": {"every_steps": 0}}
    )  # fmt: skip
