"""Sampling by steps at fixed addresses: K rollouts of a prompt share one prefill, and rows retire as their rollouts end.

The draws are independent, as on `rollout.py`'s other path, and follow from the weights, the prompts and the seed alone (but for
a card that others fill up: then there are more, smaller goes); the two paths draw different tokens from the same distribution.
"""

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass

import torch
from transformers import BatchEncoding, PreTrainedModel

from corl_core.training.compiled import as_written
from corl_core.training.sampling import attention
from corl_core.training.sampling.buckets import KEPT_FRAC, ROW_UNIT, SLOT_UNIT, bucket, prompts_at_once, rows_for
from corl_core.training.sampling.cache import SlotCache, bytes_a_row, heads_of
from corl_core.training.sampling.check import difference, plain_logits
from corl_core.training.sampling.draw import draw, has_kernel
from corl_core.training.sampling.drawn import Drawn, together
from corl_core.training.sampling.graphs import Graphs
from corl_core.training.sampling.lean import Lean
from corl_core.training.sampling.step import State, Step, decoding
from corl_core.training.sampling.weights import Unsupported, Weights, require


@dataclass
class Costs:
    """What the last call took."""

    prefill_s: float = 0.0
    decode_s: float = 0.0
    num_steps: int = 0
    num_graphs: int = 0
    graph_bytes: int = 0  # that the device has less since they were captured
    cache_bytes: int = 0
    state_bytes: int = 0
    copy_bytes: int = 0  # of the weights
    joined_bytes: int = 0  # of copies of attention's weights, joined


class StaticDecoder:
    """Samples from one model. Buffers and graphs are made when they are first needed and whenever they no longer fit."""

    def __init__(
        self, model: PreTrainedModel, bf16: bool = False, keep: bool | None = None, tick: Callable[[], None] | None = None,
        row_unit: int | None = None, check_every: int | None = None, way: str | None = None,
    ):  # fmt: skip
        """`bf16`: sample from a bfloat16 copy of float32 weights. `keep`: hold cache and graphs between calls (None: if they are
        small). `tick` is called as it gets on. `check_every`: steps between looks at who has ended, each of which waits for the
        device. `way`: how attention is computed (`attention.WAYS`; None: as is best). Raises Unsupported."""
        require(model, 0)
        self.device, self.way, self._may_choose = model.device, way, way is None
        self.costs = Costs()
        self._on_gpu = self.device.type == "cuda"
        self._memory = torch.cuda.get_device_properties(self.device).total_memory if self._on_gpu else None
        self._weights = Weights(model, bf16)
        self._lean = Lean(self._weights.model, self._weights.dtype, self._weights.free)
        self._keep, self._tick = keep, tick or (lambda: None)
        self._row_unit = row_unit or (ROW_UNIT if self._on_gpu else 1)
        self._check_every = check_every or (16 if self._on_gpu else 1)
        self._cache: SlotCache | None = None
        self._state: State | None = None
        self._run: Callable[[int, int], None] | None = None
        self._places: tuple[int, ...] = ()
        self._is_checked = False
        self.goes = 1  # parts of what is otherwise sampled at once

    @torch.inference_mode()
    def sample(
        self, batch: BatchEncoding, num_generations: int, generator: torch.Generator, max_tokens: int, temperature: float,
        eos: torch.Tensor,
    ) -> Drawn:  # fmt: skip
        """`num_generations` rollouts of each prompt of `batch` (input_ids and attention_mask, padded on the left); a token of
        `eos` (E,) ends one. Raises Unsupported."""
        ids, mask = batch["input_ids"], batch["attention_mask"]  # (B, P)
        require(self._weights.model, ids.shape[1] + max_tokens)
        device = torch.cuda.device(self.device) if self._on_gpu else nullcontext()
        with device, torch.autocast(self.device.type, enabled=False), as_written(self._weights.model):
            self._weights.refresh()
            self._lean.refresh()
            self._weights.model.eval()
            before = generator.get_state()
            more = (num_generations, generator, max_tokens, temperature, eos)
            if (drawn := self._in_goes(ids, mask, *more, may_fail=self.goes == 1)) is None:
                self.goes = 2
                self.release()
                if self._on_gpu:
                    torch.cuda.empty_cache()
                generator.set_state(before)
                drawn = self._in_goes(ids, mask, *more, may_fail=False)
            self._release_if_large()
        return drawn

    def _in_goes(
        self, ids: torch.Tensor, mask: torch.Tensor, num_generations: int, generator: torch.Generator, max_tokens: int,
        temperature: float, eos: torch.Tensor, *, may_fail: bool,
    ) -> Drawn | None:  # fmt: skip
        """As many prompts at a time as the card has room for. None: it had not, and may fail."""
        self.costs = Costs()
        at_once = self._prompts_at_once(len(ids), num_generations, ids.shape[1] + max_tokens)
        try:
            return together([
                self._sample(some, seen, num_generations, generator, max_tokens, temperature, eos)
                for some, seen in zip(ids.split(at_once), mask.split(at_once), strict=True)
            ])  # fmt: skip
        except torch.OutOfMemoryError:
            if not may_fail:
                raise
            return None  # the traceback, which holds tensors, ends here

    def description(self) -> str:
        """Of the last call, in one line."""
        costs, kind = self.costs, "a CUDA graph for each size" if self._on_gpu else "eager steps"
        parts = [
            f"{kind} ({costs.num_graphs}, {costs.graph_bytes / 2**30:.2f} GiB)" if self._on_gpu else kind,
            f"cache {costs.cache_bytes / 2**30:.2f} GiB",
            f"logits and state {costs.state_bytes / 2**30:.2f} GiB",
            f"bfloat16 copy of the weights {costs.copy_bytes / 2**30:.2f} GiB" if costs.copy_bytes else "no copy of the weights",
            f"attention by '{self.way}'",
            f"a draw in {'one kernel' if has_kernel(self.device, self._weights.dtype) else 'several'}",
            f"fewer kernels for {', '.join(self._lean.parts) or 'nothing'} ({costs.joined_bytes / 2**30:.2f} GiB)",
        ]
        if self.goes > 1:
            parts.append("half the prompts at a time, for the GPU's memory ran out")
        return "; ".join(parts)

    def release(self) -> None:
        """Gives back the memory of cache, state and graphs; the next call makes them anew."""
        self._run = self._cache = self._state = None

    def _prompts_at_once(self, num: int, num_generations: int, length: int) -> int:
        if self._memory is None:
            return -(-num // self.goes)
        a_row = bytes_a_row(self._weights.model.config, bucket(length, SLOT_UNIT), self._weights.dtype)
        return -(-prompts_at_once(num, num_generations * a_row, self._memory) // self.goes)

    def _sample(
        self, ids: torch.Tensor, mask: torch.Tensor, num_generations: int, generator: torch.Generator, max_tokens: int,
        temperature: float, eos: torch.Tensor,
    ) -> Drawn:  # fmt: skip
        begin = self._now()
        with self._lean():
            out = self._prefill(ids, mask)
        logits = out.logits[:, -1]
        self.way = self.way or attention.best(heads_of(self._weights.model.config), self.device, self._weights.dtype)
        self._make(out.cache, len(ids) * num_generations, ids.shape[1] + max_tokens, max_tokens, logits.shape[-1], eos)
        self._begin(mask, num_generations, temperature)
        self._cache.fill(out.cache, num_generations)
        self._first_token(logits, num_generations, generator)
        del out, logits
        if not self._is_checked:
            self._settle_way(ids, mask, num_generations)
        if self._run is None:
            self._run = Graphs(self._step(), self._state) if self._on_gpu else self._step()
        middle = self._now()
        with self._lean(), decoding(self._weights.model, self.way):
            drawn_tokens = self._decode(len(ids) * num_generations, ids.shape[1], max_tokens, generator)
        self._account(middle - begin, self._now() - middle, drawn_tokens - 1)
        return self._drawn(len(ids) * num_generations, drawn_tokens, max_tokens)

    def _prefill(self, ids: torch.Tensor, mask: torch.Tensor):
        """One forward pass over the distinct prompts, with the model's own attention."""
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        model = self._weights.model
        out = type(model).forward(
            model, input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1
        )
        for layer in out.cache.layers:
            if getattr(layer, "keys", None) is None or layer.keys.dim() != 4 or layer.keys.shape[2] != mask.shape[1]:
                raise Unsupported(f"its cache has layers of another kind ({type(layer).__name__})")
        return out

    def _make(self, prefill, num: int, length: int, max_tokens: int, num_tokens: int, eos: torch.Tensor) -> None:
        """Buffers that are large enough, kept where they are if they fit; a step over them."""
        rows, slots = bucket(num, self._row_unit), bucket(length, SLOT_UNIT)
        places = self._weights.places()
        if places == self._places and self._state is not None:
            held_rows, held_slots = self._cache.shape
            fits = held_rows >= rows and held_slots >= slots and self._state.max_tokens >= max_tokens
            if fits and torch.equal(self._state.eos, eos):
                return
            rows, slots, max_tokens = max(rows, held_rows), max(slots, held_slots), max(max_tokens, self._state.max_tokens)
        self.release()
        cache, state = SlotCache(prefill, rows, slots), State(rows, max_tokens, num_tokens, eos)
        self._places, self._cache, self._state = places, cache, state  # all or, where memory runs out, none

    def _step(self) -> Step:
        return Step(self._weights.model, self._cache, self._state, self._weights.dtype, self.way)

    def _begin(self, mask: torch.Tensor, num_generations: int, temperature: float) -> None:
        """The state before the first token: every rollout has its row."""
        state, num = self._state, len(mask) * num_generations
        state.start.zero_()
        state.start[:num] = (mask.shape[1] - mask.sum(1)).repeat_interleave(num_generations)
        state.rollout.fill_(state.rows)
        state.rollout[:num] = torch.arange(num, device=self.device)
        state.ended.fill_(True)
        state.ended[:num] = False
        state.token.zero_()
        state.slot.fill_(mask.shape[1])
        state.step.zero_()
        state.inverse_temperature.fill_(1 / temperature)

    def _first_token(self, logits: torch.Tensor, num_generations: int, generator: torch.Generator) -> None:
        """From the prompts' logits (B, V)."""
        state, num = self._state, len(logits) * num_generations
        noise = state.noise[:num].exponential_(generator=generator)
        state.write(num, *draw(logits.repeat_interleave(num_generations, 0), state.inverse_temperature, noise))

    def _settle_way(self, ids: torch.Tensor, mask: torch.Tensor, num_generations: int) -> None:
        """Where attention is given what the chosen way cannot do, it is done by products. Raises Unsupported."""
        try:
            self._check(ids, mask, num_generations)
        except torch.OutOfMemoryError:
            raise
        except Exception as error:
            if self.way == attention.DEFAULT or not self._may_choose:
                raise
            attention.left_out(self.way, error)
            self.way = attention.DEFAULT
            self._check(ids, mask, num_generations)
        self._is_checked = True

    def _check(self, ids: torch.Tensor, mask: torch.Tensor, num_generations: int, at_most: int = 4) -> None:
        """The first step's logits against a forward pass with nothing replaced. It writes the slot that the first step writes
        again. Raises Unsupported."""
        model, rows = self._weights.model, bucket(len(ids) * num_generations, self._row_unit)
        first = self._state.token[: len(ids) * num_generations : num_generations][:at_most]
        wanted = plain_logits(model, ids[:at_most], mask[:at_most], first)
        with self._lean(), decoding(model, self.way):
            got = self._step().forward(rows, bucket(ids.shape[1] + 1, SLOT_UNIT))
        difference(got[: len(ids) * num_generations : num_generations][:at_most], wanted, self._weights.dtype)

    def _decode(self, num: int, slot: int, max_tokens: int, generator: torch.Generator) -> int:
        """Steps until every rollout has ended or is as long as it may be; returns the tokens drawn of the longest. `slot`: the
        first one that is free."""
        state, rows = self._state, bucket(num, self._row_unit)
        for drawn in range(1, max_tokens):
            if drawn == 1 or drawn % self._check_every == 0:
                self._tick()
                active = torch.nonzero(~state.ended[:rows])[:, 0]
                if not len(active):
                    return drawn
                if (fewer := rows_for(len(active), rows, self._row_unit)) < rows:
                    self._retire(active, fewer, slot)
                    rows = fewer
            state.noise[:rows].exponential_(generator=generator)
            self._run(rows, min(bucket(slot + 1, SLOT_UNIT), self._cache.shape[1]))
            slot += 1
        return max_tokens

    def _retire(self, active: torch.Tensor, rows: int, slot: int) -> None:
        kept = torch.cat([active, active[:1].expand(rows - len(active))])
        self._cache.keep(kept, slot)
        self._state.keep(kept, len(active))

    def _drawn(self, num: int, steps: int, max_tokens: int) -> Drawn:
        state = self._state
        tokens = state.tokens[:num, :max_tokens].clone()
        is_end = torch.isin(tokens, state.eos)
        is_end[:, steps:] = False
        finished = is_end.any(1)
        lengths = torch.where(finished, is_end.int().argmax(1) + 1, steps)
        return Drawn(tokens, state.measured[:, :num, :max_tokens].clone(), lengths, finished)

    def _account(self, prefill_s: float, decode_s: float, num_steps: int) -> None:
        costs = self.costs
        costs.prefill_s += prefill_s
        costs.decode_s += decode_s
        costs.num_steps += num_steps
        if isinstance(self._run, Graphs):
            costs.num_graphs, costs.graph_bytes = len(self._run), self._run.num_bytes
        costs.cache_bytes, costs.state_bytes = self._cache.num_bytes, self._state.num_bytes
        costs.copy_bytes, costs.joined_bytes = self._weights.num_bytes, self._lean.num_bytes

    def _release_if_large(self) -> None:
        keep = self._keep
        if keep is None and self._memory is not None:
            keep = self.costs.cache_bytes + self.costs.state_bytes <= KEPT_FRAC * self._memory
        if keep is False:
            self.release()
            if self._on_gpu:
                torch.cuda.empty_cache()  # to the device: another process may have agents on it

    def _now(self) -> float:
        if self._on_gpu:
            torch.cuda.synchronize(self.device)
        return time.perf_counter()
