"""Attention of one new token a row over the cache, for transformers' attention interface.

The query heads that share a key head are folded into the query length, (rows, kv_heads, group, head_dim): keys and values are
then read once for the whole group and never repeated in memory. There are several ways to compute it, whose roundings differ; a
decoder has one of them for good, so that a seed draws the same tokens in every process. `bench rollouts` times all of them.
"""

from collections.abc import Callable
from functools import partial

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

Way = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor, float], torch.Tensor]


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


WAYS: dict[str, Way] = {
    "products": products,
    "efficient": partial(fused, SDPBackend.EFFICIENT_ATTENTION),
    "cudnn": partial(fused, SDPBackend.CUDNN_ATTENTION),
}
DEFAULT = "products"  # it computes every shape and dtype on every device
TOLERANCE = 0.03  # of a way's output against that of 'products', relative


def attend(
    way: Way, module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor,
    scaling: float | None = None, dropout: float = 0.0, **more: object,
) -> tuple[torch.Tensor, None]:  # fmt: skip
    """What transformers calls: `query` (R, heads, 1, D); returns (R, 1, heads, D)."""
    for name in ("softcap", "s_aux", "position_bias"):
        if more.get(name) is not None:
            raise NotImplementedError(f"attention with {name}")
    rows, heads, num, dim = query.shape
    if num != 1:
        raise NotImplementedError(f"attention of {num} tokens at once")
    folded = query.reshape(rows, key.shape[1], heads // key.shape[1], dim)
    out = way(folded, key, value, bias, dim**-0.5 if scaling is None else scaling)  # (R, H, G, D)
    return out.reshape(rows, 1, heads, value.shape[3]), None


def implementation(way: str) -> str:
    """The name of a way as one of transformers' attention implementations."""
    return f"corl_decode_{way}"


for _name, _way in WAYS.items():
    ALL_ATTENTION_FUNCTIONS.register(implementation(_name), partial(attend, _way))


def milliseconds(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor) -> dict[str, float]:
    """Of every way on a GPU's tensors, (R, H, G, D), twice (R, H, L, D) and (R, 1, 1, L). A way that fails, or that gives
    something else than two matrix products, is left out."""
    times: dict[str, float] = {}
    inputs = (query, key, value, bias, query.shape[3] ** -0.5)
    wanted = products(*inputs).float()
    for name, way in WAYS.items():
        try:
            if float((way(*inputs).float() - wanted).norm() / wanted.norm()) < TOLERANCE:
                times[name] = _milliseconds(lambda way=way: way(*inputs))
        except RuntimeError:
            continue
    return times


def _milliseconds(call: Callable[[], torch.Tensor], repeats: int = 20) -> float:
    for _ in range(3):
        call()
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    for _ in range(repeats):
        call()
    end.record()
    end.synchronize()
    return start.elapsed_time(end) / repeats


def bias_of(start: torch.Tensor, slot: torch.Tensor, length: int, dtype: torch.dtype) -> torch.Tensor:
    """What is added to the scores, (R, 1, 1, L): 0 from each row's `start` (R,) up to `slot` (1,), else the lowest number."""
    slots = torch.arange(length, device=start.device)
    seen = (slots >= start[:, None]) & (slots <= slot)
    bias = torch.zeros(seen.shape, dtype=dtype, device=start.device).masked_fill_(~seen, torch.finfo(dtype).min)
    return bias[:, None, None]
