"""The update of a model of real shape on tensors without content: its peak of live bytes, to hold the forecast against.

What runs is transformers' model and TRL's fused head, with the tile folded in place as its GPU kernel does it; the optimizer's
state, which both sides know to the byte, is left out.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import AutoModelForCausalLM, PreTrainedModel
from trl.kernels import chunked_logprob

from corl_core.bench.live_bytes import LiveBytes
from corl_core.bench.memory import Setting
from corl_core.bench.shapes import make_config


def trace(setting: Setting) -> float:
    """Bytes of tensors at the update's widest moment, weights included. With more slices than one, the second is followed, when
    gradients are there already."""
    dtype = torch.bfloat16 if setting.bfloat16_weights else torch.float32
    with FakeTensorMode(allow_non_fake_inputs=True), _folded_in_place():
        model = AutoModelForCausalLM.from_config(make_config(setting.shape), dtype=dtype)
        outer = _adapted(model, setting) if setting.lora else model
        live = LiveBytes()
        with live:
            live.hold_all(outer)
            if setting.checkpointing:
                outer.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
            outer.train()
            for _ in range(min(2, setting.slices)):
                live.reset()
                update_pass(model, setting, live)
            return live.peak


def update_pass(model: PreTrainedModel, setting: Setting, live: LiveBytes) -> None:
    """Forward and backward of one slice, as TRL's loss does it, with a mask, for prompts are padded."""
    rows, length = setting.rows // setting.slices, setting.prompt + setting.completion
    mask = torch.ones(rows, 1, length, length, dtype=torch.bool)
    doubled = _EndOfBackward(model, live)
    with torch.autocast("cpu", torch.bfloat16), doubled:
        ids = torch.zeros(rows, length, dtype=torch.long)
        hidden = model.model(input_ids=ids, attention_mask=mask, use_cache=False).last_hidden_state
        scored = hidden[:, setting.prompt - 1 : -1].reshape(-1, hidden.shape[-1])
        del hidden
        targets = torch.zeros(len(scored), dtype=torch.long)
        weight = model.get_output_embeddings().weight
        log_probs, *_ = chunked_logprob.ChunkedLogProbFunction.apply(
            scored, weight, None, targets, 1.0, 32768, None, 1.0, ("entropy",)
        )  # fmt: skip
        del scored
        loss = log_probs.sum()
    loss.backward()
    doubled.correct()


class _EndOfBackward:
    """Takes the third tensor of a tied weight's gradients (see live_bytes.py) out of the peak: it exists only after the
    embedding's gradient has come, which is the last thing of a backward pass."""

    def __init__(self, model: PreTrainedModel, live: LiveBytes):
        self._embedding, self._live, self._before = model.get_input_embeddings(), live, 0
        weight = self._embedding.weight
        tied = weight is model.get_output_embeddings().weight and weight.requires_grad
        self._extra = weight.numel() * weight.element_size() if tied else 0

    def __enter__(self) -> None:
        self._hook = self._embedding.register_forward_hook(lambda module, args, out: out.register_hook(self._mark) and None)

    def __exit__(self, *_: object) -> None:
        self._hook.remove()

    def _mark(self, gradient: torch.Tensor) -> None:
        self._before, self._live.peak = self._live.peak, self._live.live

    def correct(self) -> None:
        self._live.peak = max(self._before, self._live.peak - self._extra)


def _adapted(model: PreTrainedModel, setting: Setting) -> torch.nn.Module:
    """With peft's adapters, made where they are instead of moved there: tensors without content cannot be."""
    from peft import LoraConfig, get_peft_model
    from peft.tuners.tuners_utils import BaseTunerLayer

    with _replaced(BaseTunerLayer, "_move_adapter_to_device_of_base_layer"), _replaced(torch.nn.Module, "to"):
        outer = get_peft_model(model, LoraConfig(task_type="CAUSAL_LM", r=setting.lora, target_modules="all-linear"))
    outer.enable_input_require_grads()  # as TRL does
    return outer


@contextmanager
def _replaced(owner: Any, *names: str) -> Iterator[None]:
    """Inside, those functions do nothing and return what they were called on."""
    own = {name: getattr(owner, name) for name in names}
    try:
        for name in names:
            setattr(owner, name, lambda first=None, *_, **__: first)
        yield
    finally:
        for name, function in own.items():
            setattr(owner, name, function)


def _folded_in_place() -> AbstractContextManager[None]:
    """TRL's head as on a GPU: its kernels and its product into float32 make no tensors."""
    return _replaced(chunked_logprob, "_forward_tile", "_backward_tile", "_addmm_fp32")
