"""Attention of one new token a row over the cache, for transformers' attention interface.

The query heads that share a key head are folded into the query length, (rows, kv_heads, group, head_dim): keys and values are
then read once for the whole group and never repeated in memory. There are several ways to compute it, whose roundings differ; a
decoder has one of them for good, so that a seed draws the same tokens in every process. `bench rollouts` times all of them.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from transformers.utils import is_triton_available

from corl_core.training.sampling.cache import Heads


def bias_of(start: torch.Tensor, slot: torch.Tensor, length: int, dtype: torch.dtype) -> torch.Tensor:
    """What is added to the scores, (R, 1, 1, L): 0 from each row's `start` (R,) up to `slot` (1,), else the lowest number."""
    slots = torch.arange(length, device=start.device)
    seen = (slots >= start[:, None]) & (slots <= slot)
    bias = torch.zeros(seen.shape, dtype=dtype, device=start.device).masked_fill_(~seen, torch.finfo(dtype).min)
    return bias[:, None, None]


def bounds_of(start: torch.Tensor, slot: torch.Tensor, length: int, dtype: torch.dtype) -> torch.Tensor:
    """The same as its first and last slot, (R, 1, 1, 2) int32."""
    return torch.stack([start, slot.expand_as(start)], 1).int()[:, None, None]


class Way(NamedTuple):
    """`attend` takes queries (R, H, G, D), keys and values (R, H, L, D), the mask that `mask` makes of `start` (R,), `slot` (1,),
    L and the dtype, and the scale; it returns (R, H, G, D)."""

    attend: Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, float], torch.Tensor]
    mask: Callable[[torch.Tensor, torch.Tensor, int, torch.dtype], torch.Tensor] = bias_of


def products(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor, scale: float) -> torch.Tensor:
    """Two batched matrix products with a softmax between them, whose kernels sum in float32 whatever the dtype. `query`
    (R, H, G, D), `key` and `value` (R, H, L, D), `bias` (R, 1, 1, L) is added to the scores."""
    scores = torch.matmul(query, key.transpose(2, 3))  # (R, H, G, L)
    return torch.matmul(torch.softmax(torch.add(bias, scores, alpha=scale), -1), value)


def fused(
    backend: SDPBackend, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor, scale: float
) -> torch.Tensor:
    """The same by one of torch's fused kernels."""
    wide = bias.expand(-1, query.shape[1], query.shape[2], -1)
    with sdpa_kernel(backend):
        return scaled_dot_product_attention(query, key, value, attn_mask=wide, scale=scale)


def kernel(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bounds: torch.Tensor, scale: float) -> torch.Tensor:
    """The same in one kernel (`attention_kernel.py`)."""
    from corl_core.training.sampling.attention_kernel import attend

    return attend(query, key, value, bounds, scale)


WAYS = {
    "products": Way(products),
    "kernel": Way(kernel, bounds_of),
    "efficient": Way(partial(fused, SDPBackend.EFFICIENT_ATTENTION)),
    "cudnn": Way(partial(fused, SDPBackend.CUDNN_ATTENTION)),
}
DEFAULT = "products"  # it computes every shape and dtype on every device
TOLERANCE = 0.03  # of a way's output against that of 'products', relative


def best(heads: Heads, device: torch.device, dtype: torch.dtype) -> str:
    """The way for a model with such heads: the kernel for 16-bit numbers on a GPU (in float32 it is slower), where it computes
    what it should, rows whole and split."""
    if device.type != "cuda" or dtype.itemsize != 2 or not is_triton_available():
        return DEFAULT
    trials = [trial(heads, 4, length, device, dtype) for length in (100, 600)]
    return "kernel" if all(dict(agreeing(*one, names=("kernel",))) for one in trials) else DEFAULT


def trial(heads: Heads, rows: int, length: int, device: torch.device | str, dtype: torch.dtype) -> tuple[torch.Tensor, ...]:
    """What the attention of a decode step may be given at its last slot: query, key, value, start, slot."""
    draw = torch.Generator(device).manual_seed(1)
    query, key, value = (
        torch.randn(rows, heads.kv, num, dim, device=device, dtype=dtype, generator=draw)
        for num, dim in ((heads.query // heads.kv, heads.key_dim), (length, heads.key_dim), (length, heads.value_dim))
    )
    start = torch.zeros(rows, dtype=torch.long, device=device)
    return query, key, value, start, start[:1] + length - 1


def agreeing(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, start: torch.Tensor, slot: torch.Tensor,
    names: Iterable[str] | None = None,
) -> Iterator[tuple[str, Callable[[], torch.Tensor]]]:  # fmt: skip
    """Those of `names` (None: all ways) that give what 'products' does, each as a call. One that fails is left out, whatever its
    library raises. Raises torch.OutOfMemoryError: that says nothing of a way."""
    inputs = (query, key, value)

    def prepared(way: Way) -> Callable[[], torch.Tensor]:
        return partial(way.attend, *inputs, way.mask(start, slot, key.shape[2], query.dtype), query.shape[3] ** -0.5)

    wanted = prepared(Way(products))().float()
    for name in WAYS if names is None else names:
        call = prepared(WAYS[name])
        try:
            agrees = float((call().float() - wanted).norm() / wanted.norm()) < TOLERANCE
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            left_out(name, error)
            continue
        if agrees:
            yield name, call


def left_out(way: str, error: Exception) -> None:
    warnings.warn(f"attention by '{way}' fails here and is left out: {error!r}", stacklevel=3)


def attend(
    way: Callable[..., torch.Tensor], module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    mask: torch.Tensor, scaling: float | None = None, dropout: float = 0.0, **more: object,
) -> tuple[torch.Tensor, None]:  # fmt: skip
    """What transformers calls: `query` (R, heads, 1, D); returns (R, 1, heads, D)."""
    for name in ("softcap", "s_aux", "position_bias"):
        if more.get(name) is not None:
            raise NotImplementedError(f"attention with {name}")
    rows, heads, num, dim = query.shape
    if num != 1:
        raise NotImplementedError(f"attention of {num} tokens at once")
    folded = query.reshape(rows, key.shape[1], heads // key.shape[1], dim)
    out = way(folded, key, value, mask, dim**-0.5 if scaling is None else scaling)  # (R, H, G, D)
    return out.reshape(rows, 1, heads, value.shape[3]), None


def implementation(way: str) -> str:
    """The name of a way as one of transformers' attention implementations."""
    return f"corl_decode_{way}"


for _name, _way in WAYS.items():
    ALL_ATTENTION_FUNCTIONS.register(implementation(_name), partial(attend, _way.attend))


def milliseconds(
    query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, start: torch.Tensor, slot: torch.Tensor
) -> dict[str, float]:  # fmt: skip
    """Of the ways that are right, on a GPU's tensors (`trial`)."""
    return {name: _milliseconds(call) for name, call in agreeing(query, key, value, start, slot)}


def _milliseconds(call: Callable[[], torch.Tensor], repeats: int = 20) -> float:
    """Of a call in a graph, as a decode step is."""
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        call()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(repeats):
            call()
    graph.replay()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    graph.replay()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats
