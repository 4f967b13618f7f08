"""Seconds of a step and hours of a run, from the work that there is and a device's rates.

Floating-point operations (P: parameters of the layers' matrices, S: tokens of a row, Q: width of the queries, L: layers):

    forward     2 P a token, 2 Q S L a token for attention (causal: half of all pairs), 2 × vocabulary × hidden a scored token
    backward    twice that; with adapters once, for no weight needs a gradient
    again       once more for layers that are checkpointed; TRL's fused head always computes its logits again
    decoding    2 (P + vocabulary × hidden) a row, or reading the weights and the cache once: whichever takes longer, never less
                than the shortest time of each layer; one step for each token of the longest completion
    prefill     a forward pass over the prompts

Every completion is taken to be as long as allowed, and no row of the update to be left out, so this is the most that a run takes
on such a device. Grading, exchange and journal are left out: 1-3% on a CPU, less on a GPU.
"""

import math
from dataclasses import dataclass

from corl_core.forecast.cards import Rates
from corl_core.forecast.memory import Holding, Work, cache_bytes
from corl_core.forecast.shape import Shape


@dataclass(frozen=True)
class Step:
    """Seconds of one process."""

    sampling_s: float
    update_s: float
    evaluation_s: float  # of one evaluation

    def times(self, factor: float) -> "Step":
        return Step(self.sampling_s * factor, self.update_s * factor, self.evaluation_s * factor)

    def __add__(self, other: "Step") -> "Step":
        return Step(
            self.sampling_s + other.sampling_s, self.update_s + other.update_s, self.evaluation_s + other.evaluation_s
        )  # fmt: skip

    @property
    def seconds(self) -> float:
        """Of a step without evaluation."""
        return self.sampling_s + self.update_s


def step(
    shape: Shape, holding: Holding, work: Work, rates: Rates, rows: int, prompts: int, held_out: Work | None, eval_batches: int
) -> Step:  # fmt: skip
    """`rows` completions of `prompts` questions are sampled a step; an evaluation samples `eval_batches` × the rows of
    `held_out`."""
    tokens = work.rows * work.micro_batches * work.length
    scored = work.rows * work.micro_batches * work.completion_tokens
    body = forward_flops(shape, tokens, work.length)
    head = 2 * scored * shape.vocab * shape.hidden
    backward = 1 if holding.lora_rank else 2
    update = body * (1 + backward + holding.again(shape) / shape.layers) + head * (2 + backward)
    if holding.reference:
        update += body + head
    goes = max(1, math.ceil(prompts / max(1, work.prefilled_rows)))
    sampled = goes * _sampling_s(shape, holding, rates, rows / goes, prompts / goes, work)
    one = _sampling_s(shape, holding, rates, held_out.sampled_rows, held_out.prefilled_rows, held_out) if held_out else 0.0
    flops = rates.flops if holding.compiled else rates.flops * rates.as_written
    return Step(sampled * (2 if holding.teacher else 1), update / flops, eval_batches * one)


def forward_flops(shape: Shape, tokens: int, length: int) -> float:
    """Of the layers, for so many tokens in rows of `length`."""
    return tokens * (2 * shape.linear_parameters + 2 * shape.query * length * shape.layers)


def decode_s(shape: Shape, holding: Holding, rates: Rates, rows: float, length: float) -> float:
    """One decode step of `rows` rows whose caches hold `length` tokens."""
    matrices = shape.linear_parameters + shape.vocab * shape.hidden
    read = (matrices * holding.compute + rows * length * cache_bytes(shape, holding.compute)) / rates.bytes
    logits = 3 * 4 * rows * shape.vocab / rates.bytes  # they and the noise for the draw, written and read
    return max(2 * rows * matrices / rates.flops, read, shape.layers * rates.layer_s) + logits


def _sampling_s(shape: Shape, holding: Holding, rates: Rates, rows: float, prompts: float, work: Work) -> float:
    if not rows:
        return 0.0
    prefill = forward_flops(shape, prompts * work.prompt_tokens, work.prompt_tokens) / rates.flops
    half = work.prompt_tokens + work.completion_tokens / 2
    return prefill + work.completion_tokens * decode_s(shape, holding, rates, rows, half)
