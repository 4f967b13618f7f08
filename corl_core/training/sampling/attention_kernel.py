"""Attention of one new token a row in one kernel, for NVIDIA GPUs: every key and value that a row sees is read once, and nothing
else is.

The softmax is computed as it goes (online softmax, arXiv 1805.02867); where there are too few rows for the card, a row's slots
are split and put together afterwards (as in Flash-Decoding). What a row gets follows from its own keys and values and from the
number of rows, never from how long the cache is. Triton comes with torch's builds for CUDA; import this module only there.
"""

import math

import torch
import triton
import triton.language as tl

BLOCK = 64  # slots at once
CHUNK = 512  # slots of a part, where a row is split


@triton.jit
def _attend(
    query, key, value, bounds, out, parts, scale, num_chunks,
    q_row, q_head, q_group, k_row, k_head, k_slot, v_row, v_head, v_slot,
    GROUP: tl.constexpr, DIM: tl.constexpr, G: tl.constexpr, D: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr,
    IS_SPLIT: tl.constexpr,
):  # fmt: skip
    """One row and key-value head, and one chunk of slots; G and D are GROUP and DIM as powers of 2. `parts` holds, for each
    chunk and query, the weighted sum of values, the largest score and the sum of weights."""
    row, head, chunk = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64), tl.program_id(2)
    first, last = tl.load(bounds + 2 * row), tl.load(bounds + 2 * row + 1)
    low, high = first // BLOCK * BLOCK, last + 1
    if IS_SPLIT:
        low, high = tl.maximum(low, chunk * CHUNK), tl.minimum(high, (chunk + 1) * CHUNK)
    g, d = tl.arange(0, G), tl.arange(0, D)
    is_dim, is_query = d < DIM, (g < GROUP)[:, None] & (d < DIM)[None, :]
    q = tl.load(query + row * q_row + head * q_head + g[:, None] * q_group + d[None, :], mask=is_query, other=0.0)
    key += row * k_row + head * k_head
    value += row * v_row + head * v_head
    top, total, sums = tl.full((G,), -1e30, tl.float32), tl.zeros((G,), tl.float32), tl.zeros((G, D), tl.float32)
    for at in range(low, high, BLOCK):
        slot = at + tl.arange(0, BLOCK)
        is_seen = (slot >= first) & (slot <= last)
        k = tl.load(key + slot[None, :] * k_slot + d[:, None], mask=is_seen[None, :] & is_dim[:, None], other=0.0)
        scores = tl.where(is_seen[None, :], tl.dot(q, k, input_precision="ieee") * scale, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights, fade = tl.exp2(scores - higher[:, None]), tl.exp2(top - higher)
        v = tl.load(value + slot[:, None] * v_slot + d[None, :], mask=is_seen[:, None] & is_dim[None, :], other=0.0)
        sums = sums * fade[:, None] + tl.dot(weights.to(v.dtype), v, input_precision="ieee")
        total = total * fade + tl.sum(weights, 1)
        top = higher
    pair = row * tl.num_programs(1) + head
    if IS_SPLIT:
        part = parts + ((pair * num_chunks + chunk) * G + g) * (D + 2)
        tl.store(part[:, None] + d[None, :], sums)
        tl.store(part + D, top)
        tl.store(part + D + 1, total)
    else:
        result = (sums / total[:, None]).to(out.dtype.element_ty)
        tl.store(out + (pair * GROUP + g[:, None]) * DIM + d[None, :], result, mask=is_query)


@triton.jit
def _combine(
    parts, out, num_chunks, GROUP: tl.constexpr, DIM: tl.constexpr, G: tl.constexpr, D: tl.constexpr, CHUNKS: tl.constexpr
):  # fmt: skip
    """One query's parts; CHUNKS is num_chunks as a power of 2."""
    pair, g = tl.program_id(0).to(tl.int64), tl.program_id(1)
    chunk, d = tl.arange(0, CHUNKS), tl.arange(0, D)
    part, is_chunk = parts + ((pair * num_chunks + chunk) * G + g) * (D + 2), chunk < num_chunks
    top = tl.load(part + D, mask=is_chunk, other=-1e30)
    total = tl.load(part + D + 1, mask=is_chunk, other=0.0)
    sums = tl.load(part[:, None] + d[None, :], mask=is_chunk[:, None], other=0.0)
    weight = tl.exp2(top - tl.max(top, 0))
    result = tl.sum(sums * weight[:, None], 0) / tl.sum(total * weight, 0)
    tl.store(out + (pair * GROUP + g) * DIM + d, result.to(out.dtype.element_ty), mask=d < DIM)


def attend(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bounds: torch.Tensor, scale: float) -> torch.Tensor:
    """`query` (R, H, G, D), `key` and `value` (R, H, L, D), `bounds` (R, 1, 1, 2) int32: the first and the last slot that a row
    sees, of which there is at least one. Returns (R, H, G, D). Raises NotImplementedError for values of another width."""
    if not query.shape[3] == key.shape[3] == value.shape[3]:
        raise NotImplementedError(f"attention with values {value.shape[3]} wide, and keys {key.shape[3]}")
    rows, heads, group, dim = query.shape
    query, key, value = (part if part.stride(3) == 1 else part.contiguous() for part in (query, key, value))
    out = torch.empty_like(query, memory_format=torch.contiguous_format)
    g, d = max(16, triton.next_power_of_2(group)), triton.next_power_of_2(dim)
    chunks = math.ceil(key.shape[2] / CHUNK) if rows * heads < _processors(query.device) else 1
    is_split = chunks > 1
    parts = query.new_empty(rows * heads * chunks * g * (d + 2) if is_split else 1, dtype=torch.float32)
    strides = (stride for part in (query, key, value) for stride in part.stride()[:3])
    _attend[(rows, heads, chunks)](
        query, key, value, bounds, out, parts, scale * math.log2(math.e), chunks, *strides,
        group, dim, g, d, BLOCK, CHUNK, is_split, num_warps=4, num_stages=3 if d <= 128 else 2,
    )  # fmt: skip
    if is_split:
        _combine[(rows * heads, group)](parts, out, chunks, group, dim, g, d, triton.next_power_of_2(chunks), num_warps=4)
    return out


def _processors(device: torch.device) -> int:
    """Of the card: fewer programs than these leave some of it idle."""
    return torch.cuda.get_device_properties(device).multi_processor_count
