"""Which weights a decode step reads, and whether a model's decode step can be made at all.

Weights that are trained in float32 under bfloat16 autocast would be cast anew at every token. Instead they are copied to bfloat16
once for each batch of rollouts: 2 bytes a parameter more, held as long as the sampler. Adapters alone are copied where the
weights below them are frozen in bfloat16.
"""

import copy
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from transformers import PreTrainedConfig, PreTrainedModel

WRAPPED = ("forward", "_original_forward")  # what Accelerate leaves on a model: autocast, and outputs cast to float32


class Unsupported(Exception):
    """The fast path does not do this model; the text says why."""


class Weights:
    """The model that is sampled from: the trained one itself, or a copy with bfloat16 in place of float32."""

    def __init__(self, model: PreTrainedModel, bf16: bool):
        self.is_copy = bf16 and any(parameter.dtype == torch.float32 for parameter in model.parameters())
        self.model = bare_copy(model) if self.is_copy else model
        pairs = list(zip(self.model.parameters(), model.parameters(), strict=True)) if self.is_copy else []
        self._pairs = [(copied, trained) for copied, trained in pairs if copied is not trained]
        self.free = {id(copied) for copied, _ in self._pairs}  # parameters that are nobody else's
        self.num_bytes = sum(copied.numel() * copied.element_size() for copied, _ in self._pairs)

    @property
    def dtype(self) -> torch.dtype:
        return self.model.get_input_embeddings().weight.dtype

    @torch.no_grad()
    def refresh(self) -> None:
        """Takes over what the last update did."""
        if self._pairs:
            torch._foreach_copy_([copied for copied, _ in self._pairs], [trained.detach() for _, trained in self._pairs])

    def places(self) -> tuple[int, ...]:
        """Where the weights lie: a captured step reads them there, whatever they are by then."""
        return tuple(parameter.data_ptr() for parameter in self.model.parameters())


def base_of(model: PreTrainedModel) -> PreTrainedModel:
    """The transformer itself, without peft's wrapping."""
    return model.get_base_model() if hasattr(model, "get_base_model") else model


def require(model: PreTrainedModel, length: int) -> None:
    """Raises Unsupported for a model whose decode step over `length` tokens cannot be made at fixed addresses, or captured."""
    base = base_of(model)
    config = base.config.get_text_config()
    kinds = set(getattr(config, "layer_types", None) or ["full_attention"])
    window = getattr(config, "sliding_window", None) if getattr(config, "use_sliding_window", True) else None
    if base.config.is_encoder_decoder:
        raise Unsupported("it is an encoder with a decoder")
    if not getattr(base, "_supports_attention_backend", False):
        raise Unsupported(f"{type(base).__name__} does not use transformers' attention interface")
    if kinds - {"full_attention", "sliding_attention"}:
        raise Unsupported(f"it has layers of other kinds: {', '.join(sorted(kinds - {'full_attention'}))}")
    if window is not None and window < length:
        raise Unsupported(f"its sliding window of {window} tokens is shorter than prompt and completion ({length})")
    if getattr(config, "attn_logit_softcapping", None):
        raise Unsupported("its attention scores are capped")
    if not getattr(base, "_can_compile_fullgraph", False):
        raise Unsupported(f"transformers says of {type(base).__name__} that its forward pass is not of one piece")
    for rope in _ropes(config):
        trained = rope.get("original_max_position_embeddings") or getattr(config, "original_max_position_embeddings", 0) or 0
        if "dynamic" in rope["rope_type"] or (rope["rope_type"] == "longrope" and length > trained):
            raise Unsupported(f"its rotary frequencies change with the length (rope_type '{rope['rope_type']}')")
    for name, parameter in model.named_parameters():
        if hasattr(parameter, "ds_id") or type(parameter).__name__ == "DTensor" or parameter.is_meta or not parameter.numel():
            raise Unsupported(f"its weights are split over processes or elsewhere ({name})")


def _ropes(config: PreTrainedConfig) -> list[Mapping[str, Any]]:
    """The settings of rotary embeddings: one, or one for each kind of layer."""
    settings = getattr(config, "rope_parameters", None) or {}
    kinds = [settings] if "rope_type" in settings else list(settings.values())
    return [kind for kind in kinds if isinstance(kind, Mapping) and "rope_type" in kind]


@contextmanager
def _bare(model: PreTrainedModel) -> Iterator[None]:
    """The model without what its training hung on it: hooks, and a wrapped forward."""
    hooks = {module: module._forward_hooks for module in model.modules()}
    wrapped = {name: model.__dict__.pop(name) for name in WRAPPED if name in model.__dict__}
    for module in hooks:
        module._forward_hooks = OrderedDict()
    try:
        yield
    finally:
        for module, own in hooks.items():
            module._forward_hooks = own
        model.__dict__.update(wrapped)


def bare_copy(model: PreTrainedModel) -> PreTrainedModel:
    """A copy in bfloat16, without gradients and hooks. Weights that are tied stay tied, and those that are not float32 (frozen
    ones under adapters, say) are shared with the model; no float32 weight is doubled on the way."""
    memo = {
        id(parameter): torch.nn.Parameter(parameter.detach().to(torch.bfloat16), requires_grad=False)
        if parameter.dtype == torch.float32
        else parameter
        for parameter in model.parameters()
    }
    with _bare(model), torch.no_grad():
        return copy.deepcopy(model, memo).eval()
