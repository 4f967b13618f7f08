"""Fewer kernels for what a decoder does in every layer: RMS norms, rotary embeddings, gates, and the products for attention.

transformers writes norms and rotations out in elementwise operations, some ten kernels each. While sampling, a norm is torch's
fused one and the rotation one or two; a gate's activation and product are one. Each is compared with what it replaces on random
input, and left out where it differs. Queries, keys and values are one product (`joined.py`).
"""

import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch.nn.functional import rms_norm, silu
from transformers import PreTrainedConfig

from corl_core.training.compiled import on_gpu
from corl_core.training.sampling import joined
from corl_core.training.sampling.cache import heads_of

ROTARY = "apply_rotary_pos_emb"
GATED = ("gate_proj", "up_proj", "down_proj", "act_fn")  # as transformers' decoders name them
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}  # largest difference over the largest value


@on_gpu(0, 2)
def rotated(
    q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """x·cos + rotate_half(x)·sin, of both."""
    half = q.shape[-1] // 2
    q, k = (x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin for x in (q, k))
    return q, k


class Rotation:
    """In the place of a model's function."""

    def __init__(self, own: Callable):
        """`own`: the model's, for a rotation of a part of the head."""
        self._own = own

    def __call__(
        self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, unsqueeze_dim: int = 1
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`q`, `k` (R, heads, S, D); `cos`, `sin` (R, S, D)."""
        if cos.shape[-1] != q.shape[-1]:
            return self._own(q, k, cos, sin, unsqueeze_dim=unsqueeze_dim)
        return rotated(q, k, cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim))


@on_gpu(0, 1)
def gated(gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    return silu(gate) * up


class Lean:
    """What of a model may be replaced; found out once."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype, free: Collection[int] = ()):
        """`free`: ids of parameters that are the sampler's alone (`joined.py`)."""
        parameter = next(model.parameters())
        kinds = {type(module): module for module in model.modules() if _is_rms_norm(module)}
        alike = {kind for kind, norm in kinds.items() if _norm_agrees(norm, dtype)}
        self._norms = [module for module in model.modules() if type(module) in alike]
        spaces = {type(module).__module__: vars(sys.modules[type(module).__module__]) for module in model.modules()}
        self._spaces = [
            space for space in spaces.values()
            if ROTARY in space and _rotation_agrees(space[ROTARY], model.config, dtype, parameter.device)
        ]
        mlps = {type(module): module for module in model.modules() if _is_gated(module)}
        alike = {kind for kind, mlp in mlps.items() if _gate_agrees(mlp, dtype)}
        self._gates = [module for module in model.modules() if type(module) in alike and _is_gated(module)]
        self._joined = joined.find(model, free)
        found = {
            "norms": self._norms, "rotary": self._spaces, "gates": self._gates, "queries, keys and values": self._joined
        }  # fmt: skip
        self.parts = [name for name, replaced in found.items() if replaced]
        self.num_bytes = sum(one.num_bytes for one in self._joined)  # of copies

    @torch.no_grad()
    def refresh(self) -> None:
        """Takes over what the last update did."""
        if pairs := [pair for one in self._joined for pair in one.pairs()]:
            torch._foreach_copy_([copied for copied, _ in pairs], [own for _, own in pairs])

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Inside, the replacements are in place."""
        with ExitStack() as undo:
            for norm in self._norms:
                _replace(norm, _fused_norm(norm), undo)
            for mlp in self._gates:
                _replace(mlp, _fused_gate(mlp), undo)
            for one in self._joined:
                for index, layer in enumerate(one.parts):
                    _replace(layer, one.forward(index), undo)
            for space in self._spaces:
                own = space[ROTARY]
                space[ROTARY] = Rotation(own)
                undo.callback(space.__setitem__, ROTARY, own)
            yield


def _replace(module: torch.nn.Module, forward: Callable, undo: ExitStack) -> None:
    """Unless something is in its place already."""
    if "forward" not in module.__dict__:
        module.__dict__["forward"] = forward
        undo.callback(module.__dict__.pop, "forward")


def _is_rms_norm(module: torch.nn.Module) -> bool:
    return type(module).__name__.endswith("RMSNorm") and hasattr(module, "weight") and hasattr(module, "variance_epsilon")


def _fused_norm(norm: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    def forward(hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, norm.weight.shape, norm.weight.to(hidden_states.dtype), norm.variance_epsilon)

    return forward


def _is_gated(module: torch.nn.Module) -> bool:
    return all(isinstance(getattr(module, name, None), torch.nn.Module) for name in GATED)


def _fused_gate(mlp: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    def forward(states: torch.Tensor) -> torch.Tensor:
        return mlp.down_proj(gated(mlp.gate_proj(states), mlp.up_proj(states)))

    return forward


def _gate_agrees(mlp: torch.nn.Module, dtype: torch.dtype) -> bool:
    up = next(mlp.up_proj.parameters())
    width = getattr(mlp.up_proj, "in_features", None)
    if width is None:
        return False
    sample = torch.randn(4, 1, width, generator=torch.Generator().manual_seed(0)).to(up.device, dtype)
    return _close(_fused_gate(mlp)(sample), mlp(sample), dtype)


def _norm_agrees(norm: torch.nn.Module, dtype: torch.dtype) -> bool:
    sample = torch.randn(4, norm.weight.shape[0], generator=torch.Generator().manual_seed(0)).to(norm.weight.device, dtype)
    return _close(_fused_norm(norm)(sample), norm(sample), dtype)


def _rotation_agrees(own: Callable, config: PreTrainedConfig, dtype: torch.dtype, device: torch.device) -> bool:
    """At the sizes that it will have, for which it is compiled here."""
    generator, heads = torch.Generator().manual_seed(0), heads_of(config)
    q, k = (torch.randn(3, num, 1, heads.key_dim, generator=generator).to(device, dtype) for num in (heads.query, heads.kv))
    angle = torch.randn(3, 1, heads.key_dim // 2, generator=generator).repeat(1, 1, 2).to(device)
    cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
    try:
        wanted = own(q, k, cos, sin)
    except (TypeError, ValueError, RuntimeError):
        return False
    return all(_close(got, want, dtype) for got, want in zip(Rotation(own)(q, k, cos, sin), wanted, strict=True))


def _close(got: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype) -> bool:
    largest = wanted.float().abs().max().clamp(min=1e-6)
    return got.dtype == wanted.dtype and bool((got.float() - wanted.float()).abs().max() <= TOLERANCE.get(dtype, 0.0) * largest)
