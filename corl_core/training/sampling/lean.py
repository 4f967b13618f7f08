"""Fewer kernels for two things that a decoder does in every layer: RMS norms, and rotary embeddings of one token a row.

transformers writes both out in elementwise operations, some ten kernels each. While sampling, a norm is torch's fused one and the
rotation four. Each replacement is compared with what it replaces on random input, and left out where it differs.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import torch
from torch.nn.functional import rms_norm

ROTARY = "apply_rotary_pos_emb"
TOLERANCE = {torch.float32: 1e-5, torch.bfloat16: 2e-2, torch.float16: 4e-3}  # largest difference over the largest value


class Rotation:
    """x·cos + rotate_half(x)·sin, as x·cos + roll(x, D/2)·(∓sin). The signed sine is made once for all layers of a step."""

    def __init__(self, own: Callable):
        """`own`: the model's, for a rotation of a part of the head."""
        self._own = own
        self._sin: torch.Tensor | None = None
        self._signed: torch.Tensor | None = None

    def __call__(
        self, q: torch.Tensor, k: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor, unsqueeze_dim: int = 1
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """`q`, `k` (R, heads, S, D); `cos`, `sin` (R, S, D)."""
        if cos.shape[-1] != q.shape[-1]:
            return self._own(q, k, cos, sin, unsqueeze_dim=unsqueeze_dim)
        half = sin.shape[-1] // 2
        if self._sin is not sin:
            self._sin, self._signed = sin, torch.cat((-sin[..., :half], sin[..., half:]), -1).unsqueeze(unsqueeze_dim)
        heads = unsqueeze_dim  # the heads' dimension
        both = torch.cat((q, k), heads)
        turned = torch.addcmul(both * cos.unsqueeze(unsqueeze_dim), torch.roll(both, half, -1), self._signed)
        return turned.narrow(heads, 0, q.shape[heads]), turned.narrow(heads, q.shape[heads], k.shape[heads])


class Lean:
    """What of a model may be replaced; found out once."""

    def __init__(self, model: torch.nn.Module, dtype: torch.dtype):
        parameter = next(model.parameters())
        kinds = {type(module): module for module in model.modules() if _is_rms_norm(module)}
        alike = {kind for kind, norm in kinds.items() if _norm_agrees(norm, dtype)}
        self._norms = [module for module in model.modules() if type(module) in alike]
        spaces = {type(module).__module__: vars(sys.modules[type(module).__module__]) for module in model.modules()}
        self._spaces = [
            space for space in spaces.values() if ROTARY in space and _rotation_agrees(space[ROTARY], dtype, parameter.device)
        ]
        self.parts = ["norms"] * bool(self._norms) + ["rotary"] * bool(self._spaces)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Inside, the replacements are in place."""
        with ExitStack() as undo:
            for norm in self._norms:
                if "forward" not in norm.__dict__:
                    norm.__dict__["forward"] = _fused_norm(norm)
                    undo.callback(norm.__dict__.pop, "forward")
            for space in self._spaces:
                own = space[ROTARY]
                space[ROTARY] = Rotation(own)
                undo.callback(space.__setitem__, ROTARY, own)
            yield


def _is_rms_norm(module: torch.nn.Module) -> bool:
    return type(module).__name__.endswith("RMSNorm") and hasattr(module, "weight") and hasattr(module, "variance_epsilon")


def _fused_norm(norm: torch.nn.Module) -> Callable[[torch.Tensor], torch.Tensor]:
    def forward(hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, norm.weight.shape, norm.weight.to(hidden_states.dtype), norm.variance_epsilon)

    return forward


def _norm_agrees(norm: torch.nn.Module, dtype: torch.dtype) -> bool:
    sample = torch.randn(4, norm.weight.shape[0], generator=torch.Generator().manual_seed(0)).to(norm.weight.device, dtype)
    return _close(_fused_norm(norm)(sample), norm(sample), dtype)


def _rotation_agrees(own: Callable, dtype: torch.dtype, device: torch.device) -> bool:
    generator = torch.Generator().manual_seed(0)
    q, k = (torch.randn(3, heads, 1, 16, generator=generator).to(device, dtype) for heads in (4, 2))
    angle = torch.randn(3, 1, 8, generator=generator).repeat(1, 1, 2).to(device)
    cos, sin = angle.cos().to(dtype), angle.sin().to(dtype)
    try:
        wanted = own(q, k, cos, sin)
    except (TypeError, ValueError, RuntimeError):
        return False
    return all(_close(got, want, dtype) for got, want in zip(Rotation(own)(q, k, cos, sin), wanted, strict=True))


def _close(got: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype) -> bool:
    largest = wanted.float().abs().max().clamp(min=1e-6)
    return got.dtype == wanted.dtype and bool((got.float() - wanted.float()).abs().max() <= TOLERANCE.get(dtype, 0.0) * largest)
