"""The next token of every row in one pass over the logits, for NVIDIA GPUs; `draw.py` says what is drawn and measured.

The arg max of p / e is that of logit - log e, which wants no normalization first; sums of the distribution are kept as the pass
goes on (online softmax, arXiv 1805.02867), with a row's words spread over BLOCK lanes in a fixed order. Triton comes with torch's
builds for CUDA; import this module only there.
"""

import math

import torch
import triton
import triton.language as tl

BLOCK = 2048  # words at once


@triton.jit
def _draw(
    logits, inverse_temperature, noise, token, measured, num_words, log_words, row_stride, noise_stride, BLOCK: tl.constexpr
):  # fmt: skip
    """One row. `measured` is (3, rows). A lane's sums are of exp(logit - top), and of that times (logit - top)."""
    row = tl.program_id(0).to(tl.int64)
    lane, scale = tl.arange(0, BLOCK), tl.load(inverse_temperature)
    logits += row * row_stride
    noise += row * noise_stride
    top, best = tl.full((BLOCK,), -1e30, tl.float32), tl.full((BLOCK,), -float("inf"), tl.float32)
    total, products, plain = tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32), tl.zeros((BLOCK,), tl.float32)
    place = lane
    for at in range(0, num_words, BLOCK):
        word = at + lane
        is_word = word < num_words
        logit = tl.load(logits + word, mask=is_word, other=0.0).to(tl.float32) * scale
        score = tl.where(is_word, logit - tl.log(tl.load(noise + word, mask=is_word, other=1.0)), -float("inf"))
        place, best = tl.where(score > best, word, place), tl.maximum(score, best)
        higher = tl.where(is_word, tl.maximum(top, logit), top)
        fade, weight = tl.exp(top - higher), tl.where(is_word, tl.exp(logit - higher), 0.0)
        below = tl.where(weight > 0, weight * (logit - higher), 0.0)
        products = (products + total * (top - higher)) * fade + below
        total = total * fade + weight
        plain += logit
        top = higher
    winner = tl.min(tl.where(best == tl.max(best, 0), place, num_words), 0)
    highest = tl.max(top, 0)
    fade = tl.exp(top - highest)
    whole = tl.sum(total * fade, 0)
    log_whole, product = tl.log(whole), tl.sum((products + total * (top - highest)) * fade, 0)
    rows = tl.num_programs(0)
    tl.store(token + row, winner.to(tl.int64))
    tl.store(measured + row, tl.load(logits + winner).to(tl.float32) * scale - highest - log_whole)
    tl.store(measured + rows + row, log_whole - product / whole)
    tl.store(measured + 2 * rows + row, highest + log_whole - tl.sum(plain, 0) / num_words - log_words)


def draw(
    logits: torch.Tensor, inverse_temperature: torch.Tensor, noise: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """As `draw.draw`; `noise` stays as it is."""
    rows, num_words = logits.shape
    logits = logits if logits.stride(1) == 1 else logits.contiguous()
    token = torch.empty(rows, dtype=torch.long, device=logits.device)
    measured = torch.empty(3, rows, device=logits.device)
    _draw[(rows,)](
        logits, inverse_temperature, noise, token, measured, num_words, math.log(num_words), logits.stride(0), noise.stride(0),
        BLOCK, num_warps=8,
    )  # fmt: skip
    return token, measured
