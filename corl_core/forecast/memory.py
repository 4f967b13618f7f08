"""Peak GPU memory of one process of an agent, as a sum of named terms.

What is there all the time (N: parameters, M: those that are trained; w, c: bytes of a weight and of a computed value):

    weights       w N; with 4-bit matrices 0.516 bytes each (NF4 with doubly quantized scales, arXiv 2305.14314, section 3),
                  adapters 4 bytes each
    optimizer     AdamW's two moments: 2 w M
    sampling copy 2 N where float32 weights are sampled from in bfloat16; else, on a GPU, c bytes for each weight of the queries',
                  keys' and values' matrices, which are joined (`training/sampling/joined.py`), unless they have adapters
    reference     w N where beta > 0; none with adapters, which are switched off for it
    teacher       w M for Co-rewarding-II's moving average, and its own sampling copy
    buckets       w M where DDP reduces gradients
    whole         w N where the weights are split over processes: the model that samples

and, phase by phase, what comes on top of it:

    sampling      the KV cache, 2 × layers × key-value heads × head size × c bytes a token, for the rows and slots of its bucket
                  (`training/sampling/buckets.py`), and 4 bytes a row and word of noise; both stay during the update if they are
                  at most a fifth of the GPU; logits, c bytes a row and word; four times 128 MiB to draw; the prompts' own cache
    update        gradients w M; what the backward pass needs (`activations.py`); bfloat16 copies of the weights, 2 bytes each,
                  kept for the backward pass where linear layers cast (with checkpointing: for all layers until the forward
                  pass ends, then for one); TRL's fused LM head, which never holds tokens × vocabulary but one tile of
                  4,096 × 32,768 values, and the gradient of the head in float32
    optimizer     gradients w M

Held at its widest moments: the end of the forward pass, the backward pass of the head, of the last layer, and of the last
checkpointed one, and the end. The
peak is the largest phase. On top come the driver's context and what the allocator cannot reuse (`CONTEXT`, `SLACK`).
Weights, gradients, moments and reference are divided by the processes under FSDP or ZeRO-3, where two layers are whole at a time.
"""

import math
from dataclasses import dataclass

from corl_core.forecast.activations import Precision, backward_bytes, kept_bytes, last_norm_bytes, recomputed_bytes
from corl_core.forecast.shape import Shape
from corl_core.training.sampling.buckets import KEPT_FRAC, ROW_UNIT, SLOT_UNIT, bucket

GIB = 2**30
CONTEXT = 0.5 * GIB  # assumption: CUDA's context and libraries; no tensor
SLACK = 0.04  # assumption: share of the peak that the allocator holds and cannot use
FOUR_BIT = 0.516  # bytes: 4 bits, and 0.127 bits of scales
TILE_TOKENS, TILE_VOCABULARY = 4096, 32768  # of TRL's fused head (trl/kernels/chunked_logprob.py)
JOINED = {"q_proj", "k_proj", "v_proj"}
DRAWN_AT_ONCE, DRAW_COPIES = 2**25, 4  # logits of one call of the draw, and float32 tensors of that size in it


@dataclass(frozen=True)
class Work:
    """What one process of an agent does in a step."""

    rows: int  # of a micro-batch of the update
    micro_batches: int
    prompt_tokens: int
    completion_tokens: int
    sampled_rows: int  # completions sampled at once
    prefilled_rows: int  # prompts read at once

    @property
    def length(self) -> int:
        return self.prompt_tokens + self.completion_tokens


@dataclass(frozen=True)
class Holding:
    """How the agent's weights are held and trained."""

    weight: int  # bytes
    compute: int
    lora_rank: int = 0  # 0: all weights are trained
    lora_targets: str | tuple[str, ...] = "all-linear"
    four_bit: bool = False
    checkpointing: bool = False
    checkpointed_layers: int | None = None  # the first ones; None: all
    attention: str = "sdpa"
    sampling_copy: bool = False
    joined: bool = False  # sampled from by this project's decoder on a GPU
    compiled: bool = False  # layers compiled for the update
    reference: bool = False
    teacher: bool = False
    processes: int = 1
    sharded: bool = False  # FSDP or ZeRO-3; otherwise DDP

    @property
    def precision(self) -> Precision:
        return Precision(self.weight, self.compute, bool(self.lora_rank), self.lora_rank, self.compiled)


    def again(self, shape: Shape) -> int:
        """Layers that are computed again in the backward pass."""
        if not self.checkpointing:
            return 0
        return shape.layers if self.checkpointed_layers is None else min(self.checkpointed_layers, shape.layers)


HELD = ("weights", "optimizer", "sampling_copy", "whole", "reference", "teacher", "buckets")


@dataclass(frozen=True)
class Memory:
    """Bytes on one GPU, for one process."""

    weights: float
    optimizer: float
    sampling_copy: float
    whole: float
    reference: float
    teacher: float
    buckets: float
    cache: float  # with the noise
    keeps_cache: bool  # during the update too
    sampling_work: float
    gradients: float
    activations: float  # with the casts and the head: all that an update adds but gradients, at its widest moment
    update: float  # gradients and activations at the widest moment, which need not be when gradients are whole

    @property
    def held(self) -> float:
        """There all the time."""
        kept = self.cache if self.keeps_cache else 0
        return sum(getattr(self, term) for term in HELD) + kept

    @property
    def phases(self) -> dict[str, float]:
        """Bytes of tensors in each phase."""
        return {
            "sampling": self.held + (0 if self.keeps_cache else self.cache) + self.sampling_work,
            "update": self.held + self.update,
            "optimizer": self.held + self.gradients,
        }

    @property
    def peak(self) -> float:
        """Bytes of tensors at the most: torch.cuda.max_memory_allocated."""
        return max(self.phases.values())

    @property
    def widest(self) -> str:
        """The phase of the peak."""
        return max(self.phases, key=self.phases.__getitem__)

    @property
    def needed(self) -> float:
        """Bytes of the GPU's memory that the process takes."""
        return self.peak * (1 + SLACK) + CONTEXT


def memory(
    shape: Shape, holding: Holding, work: Work, gpu_bytes: float = math.inf, held_out: Work | None = None
) -> Memory:  # fmt: skip
    """Of one process on a GPU of that size; the module's docstring names the terms. `held_out`: what an evaluation samples, into
    the same buffers."""
    drawn = [work, held_out] if held_out else [work]
    parts = _parts(holding)
    trained = shape.adapter_parameters(holding.lora_rank, holding.lora_targets) if holding.lora_rank else shape.parameters
    trained_bytes = trained * (4 if holding.lora_rank else holding.weight)
    frozen = _weights(shape, holding) if holding.lora_rank else 0
    gradients = trained_bytes / parts
    widest, activations = _update(shape, holding, work, gradients)
    copied = trained if holding.weight < 4 or holding.four_bit else shape.parameters  # bfloat16 weights are shared with the copy
    copy = (2 * copied if holding.sampling_copy else 0) + _joined(shape, holding)
    cache = max(_cache(shape, holding, one) for one in drawn)
    return Memory(
        weights=(frozen + trained_bytes) / parts,
        optimizer=2 * gradients,
        sampling_copy=copy,
        whole=frozen + trained_bytes if holding.sharded else 0,
        reference=shape.parameters * holding.weight / parts if holding.reference and not holding.lora_rank else 0,
        teacher=trained_bytes + copy if holding.teacher else 0,
        buckets=gradients if holding.processes > 1 and not holding.sharded else 0,
        cache=cache,
        keeps_cache=cache <= KEPT_FRAC * gpu_bytes,
        sampling_work=max(_sampling_work(shape, holding, one) for one in drawn),
        gradients=gradients,
        activations=activations,
        update=widest,
    )


def cache_bytes(shape: Shape, compute: int) -> int:
    """Of the KV cache, for one token of one row."""
    return 2 * shape.layers * shape.key * compute


def _cache(shape: Shape, holding: Holding, work: Work) -> float:
    rows, slots = bucket(work.sampled_rows, ROW_UNIT), bucket(work.length, SLOT_UNIT)
    return rows * (slots * cache_bytes(shape, holding.compute) + 4 * shape.vocab)


def _weights(shape: Shape, holding: Holding) -> float:
    if not holding.four_bit:
        return shape.parameters * holding.weight
    return shape.linear_parameters * FOUR_BIT + (shape.parameters - shape.linear_parameters) * holding.weight


def _sampling_work(shape: Shape, holding: Holding, work: Work) -> float:
    """The larger of what a decode step and what the prefill needs."""
    logits, compute = work.sampled_rows * shape.vocab, holding.compute
    draw = compute * logits + DRAW_COPIES * 4 * min(logits, DRAWN_AT_ONCE)
    prompts = work.prefilled_rows * work.prompt_tokens
    wide = max(3 * shape.mlp, 4 * shape.query) + 2 * shape.hidden
    return max(draw, prompts * wide * compute) + prompts * cache_bytes(shape, compute)


def _update(shape: Shape, holding: Holding, work: Work, gradients: float) -> tuple[float, float]:
    """Bytes at the update's widest moment: with the gradients that are there then, and without."""
    precision, rows, length, parts = holding.precision, work.rows, work.length, _parts(holding)
    trains_head = not holding.lora_rank
    again = holding.again(shape)
    kept = kept_bytes(shape, precision, rows, length, again, holding.attention)
    last = last_norm_bytes(shape, precision, rows, length)
    matrices = 2 * shape.linear_parameters if precision.casts and not holding.lora_rank else 0
    left = (1 - again / shape.layers) * matrices / parts  # of the casts, when the forward pass has ended
    head = _head(shape, holding, rows * work.completion_tokens)
    head_gradient = holding.weight * shape.vocab * shape.hidden / parts if trains_head else 0
    last_layer = layer = backward_bytes(shape, precision, rows, length) + 2 * matrices / shape.layers
    if again:
        layer += recomputed_bytes(shape, precision, rows, length, holding.attention)
    if again == shape.layers:
        last_layer = layer
    inputs = again * rows * length * precision.weight * shape.hidden
    earlier = gradients if work.micro_batches > 1 else 0  # of the micro-batches before
    beside = head_gradient if earlier or shape.tied else 0  # the head's gradient, where it waits to be added to another
    moments = [
        (earlier, kept + last + matrices / parts + head["forward"]),
        (earlier, kept + last + left + head["backward"]),
        (earlier, kept + left + last_layer + head_gradient),
        (max(earlier, (1 - again / shape.layers) * gradients), inputs + layer + head_gradient),
        (gradients, layer + rows * length * shape.hidden * holding.weight + (beside if earlier and shape.tied else 0)),
        (gradients, beside * (2 if earlier and shape.tied else 1)),
    ]
    there, more = max(moments, key=sum)
    gathered = 2 * holding.weight * shape.linear_parameters / shape.layers if holding.sharded else 0
    return there + more + gathered, more + gathered


def _joined(shape: Shape, holding: Holding) -> float:
    adapted = holding.lora_rank and (isinstance(holding.lora_targets, str) or JOINED & set(holding.lora_targets))
    in_the_copy = holding.sampling_copy and holding.weight == 4
    if not holding.joined or adapted or holding.four_bit or in_the_copy:
        return 0
    columns = shape.query + 2 * shape.key
    return shape.layers * columns * (shape.hidden + shape.qkv_bias) * holding.compute


def _parts(holding: Holding) -> int:
    return holding.processes if holding.sharded else 1


def _head(shape: Shape, holding: Holding, tokens: int) -> dict[str, float]:
    """Beside what is kept: one tile, its slice of the weights cast, the hidden states; in the backward pass their gradient in
    float32, that of the head, and both again where they are handed on in bfloat16."""
    precision, weight = holding.precision, holding.weight
    tile = min(tokens, TILE_TOKENS) * TILE_VOCABULARY * precision.compute
    cast = min(TILE_VOCABULARY, shape.vocab) * shape.hidden * precision.compute if precision.casts else 0
    hidden = tokens * shape.hidden
    handed = 4 if weight == 4 else 4 + weight
    gradient = 0 if holding.lora_rank else handed * shape.vocab * shape.hidden
    forward = tile + cast + weight * hidden
    return {"forward": forward, "backward": forward + cast + handed * hidden + gradient}
