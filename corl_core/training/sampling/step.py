"""One decode step of every row: forward, draw, write down, advance. All of it happens at addresses that stay."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from transformers import PreTrainedModel

from corl_core.training.sampling import attention
from corl_core.training.sampling.cache import SlotCache
from corl_core.training.sampling.draw import draw
from corl_core.training.sampling.weights import base_of


class State:
    """Where each of R rows is, and what at most R rollouts of at most T tokens have drawn. A row without a rollout writes to a
    row of its own, the last."""

    def __init__(self, rows: int, max_tokens: int, num_tokens: int, eos: torch.Tensor):
        """`num_tokens`: size of the vocabulary; `eos` (E,) ends a rollout."""
        device = eos.device
        self.eos, self.rows, self.max_tokens = eos, rows, max_tokens
        self.token = torch.zeros(rows, dtype=torch.long, device=device)  # the last one, which the step reads
        self.start = torch.zeros(rows, dtype=torch.long, device=device)  # first slot that is no padding
        self.rollout = torch.full((rows,), rows, dtype=torch.long, device=device)
        self.ended = torch.ones(rows, dtype=torch.bool, device=device)
        self.slot = torch.zeros(1, dtype=torch.long, device=device)  # where the step writes keys and values
        self.step = torch.zeros(1, dtype=torch.long, device=device)  # tokens drawn so far
        self.inverse_temperature = torch.ones(1, device=device)
        self.tokens = torch.zeros(rows + 1, max_tokens, dtype=torch.long, device=device)
        self.measured = torch.zeros(3, rows + 1, max_tokens, device=device)  # log-probability, entropy, certainty
        self.noise = torch.ones(rows, num_tokens, device=device)  # Exp(1) for the draw, then scratch

    @property
    def num_bytes(self) -> int:
        return sum(part.numel() * part.element_size() for part in vars(self).values() if isinstance(part, torch.Tensor))

    def write(self, rows: int, token: torch.Tensor, measured: torch.Tensor) -> None:
        """Token `step` (R,) of the first rows, with its measures (3, R); the next one is drawn after it."""
        place = self.rollout[:rows] * self.max_tokens + self.step
        self.tokens.view(-1).index_copy_(0, place, token)
        self.measured.view(3, -1).index_copy_(1, place, measured)
        self.token[:rows].copy_(token)
        self.ended[:rows].logical_or_((token[:, None] == self.eos).any(1))  # torch.isin may sort, which no graph can hold
        self.step.add_(1)

    def keep(self, rows: torch.Tensor, num: int) -> None:
        """Moves those rows to the front, of which the first `num` have a rollout."""
        for part in (self.token, self.start, self.rollout, self.ended):
            part[: len(rows)] = part[rows]
        self.rollout[num : len(rows)] = self.rows
        self.ended[num : len(rows)] = True

    def position_state(self) -> tuple[torch.Tensor, ...]:
        """What a step changes besides the cache, to be put back after a trial."""
        return tuple(part.clone() for part in (self.token, self.ended, self.slot, self.step, self.tokens, self.measured))

    def put_back(self, saved: tuple[torch.Tensor, ...]) -> None:
        for part, value in zip((self.token, self.ended, self.slot, self.step, self.tokens, self.measured), saved, strict=True):
            part.copy_(value)


@contextmanager
def decoding(model: PreTrainedModel, way: str) -> Iterator[None]:
    """Inside, the model's attention is that of a decode step, computed in that way (`attention.WAYS`)."""
    config = base_of(model).config
    own = config._attn_implementation
    config._attn_implementation = attention.implementation(way)
    try:
        yield
    finally:
        config._attn_implementation = own


class Step:
    """The step over `rows` rows and the first `length` slots."""

    def __init__(self, model: PreTrainedModel, cache: SlotCache, state: State, dtype: torch.dtype, way: str):
        """`way`: how attention is computed (`attention.WAYS`)."""
        self._model, self._cache, self._state, self._dtype = model, cache, state, dtype
        self._mask = attention.WAYS[way].mask

    def forward(self, rows: int, length: int) -> torch.Tensor:
        """Logits of the next token, (R, V); the last one's keys and values are in the cache."""
        state = self._state
        self._cache.look(rows, length, state.slot)
        start = state.start[:rows]
        # the class's own forward: training may have wrapped the instance's in autocast
        return type(self._model).forward(
            self._model,
            input_ids=state.token[:rows, None],
            attention_mask=self._mask(start, state.slot, length, self._dtype),
            position_ids=(state.slot - start)[:, None],
            cache=self._cache,
            use_cache=True,
        ).logits[:, -1]

    def __call__(self, rows: int, length: int) -> None:
        """`state.noise` holds fresh noise."""
        state = self._state
        token, measured = draw(self.forward(rows, length), state.inverse_temperature, state.noise[:rows])
        state.write(rows, token, measured)
        state.slot.add_(1)
