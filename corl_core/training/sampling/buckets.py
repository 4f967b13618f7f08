"""Sizes that a decode step is made for: few enough to capture each, close enough to waste little."""

import math

ROW_UNIT = 8  # rows, a tile of the tensor cores
SLOT_UNIT = 128  # slots of the cache
CACHE_FRAC = 0.15  # of a GPU's memory: more rollouts than fit are sampled in several goes
KEPT_FRAC = 0.2  # of it: cache and state that stay between calls; a cache of CACHE_FRAC, a fifth of its bucket empty, and noise
WORTH_IT = 0.75  # of the rows: fewer than that left, and the rest move together


def bucket(size: int, unit: int) -> int:
    """The smallest bucket that holds `size`: multiples of `unit`, and from four units on four buckets to a doubling, so that at
    most a fifth of a bucket is empty.

    With unit 128: 128, 256, 384, 512, 640, 768, 896, 1024, 1280, 1536, …
    """
    octave = 1 << max(size - 1, 1).bit_length() - 1  # the largest power of two below `size`
    step = max(unit, octave // 4)
    return -(-size // step) * step


def rows_for(num_active: int, rows: int, unit: int = ROW_UNIT) -> int:
    """How many rows to go on with when `num_active` of `rows` have not ended: `rows` itself until moving them pays."""
    fewer = bucket(max(num_active, 1), unit)
    return fewer if fewer <= WORTH_IT * rows else rows


def prompts_at_once(num: int, bytes_a_prompt: float, gpu_bytes: float) -> int:
    """How many of `num` prompts are sampled at once, in as even goes as the cache allows; all rollouts of a prompt take
    `bytes_a_prompt`. It depends on the card's size alone, so that a seed gives the same rollouts again."""
    goes = max(1, math.ceil(num * bytes_a_prompt / (CACHE_FRAC * gpu_bytes)))
    return -(-num // min(num, goes))
