"""Keys and values of all rows, in slots at addresses that stay.

Prompts are padded on the left, so every row writes the same slot at the same step. A step reads a prefix of the slots whose
length is its bucket; what lies beyond the current slot is masked.
"""

from typing import NamedTuple

import torch
from transformers import Cache, DynamicCache, PreTrainedConfig
from transformers.cache_utils import CacheLayerMixin

from corl_core.training.compiled import on_gpu


@on_gpu(0, 2)
def write(keys: torch.Tensor, values: torch.Tensor, slot: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> None:
    """`key` and `value` (R, H, 1, D) into that slot (1,) of `keys` and `values` (R, H, L, D)."""
    keys.index_copy_(2, slot, key)
    values.index_copy_(2, slot, value)


class Slots(CacheLayerMixin):
    """One layer: keys and values (rows, kv_heads, slots, head_dim)."""

    def __init__(self, keys: torch.Tensor, values: torch.Tensor):
        super().__init__()
        self.keys, self.values = keys, values
        self.is_initialized = True
        self.window: tuple[int, int] = (keys.shape[0], keys.shape[2])  # rows and slots that the next step sees
        self.slot: torch.Tensor | None = None  # (1,) where it writes

    def lazy_initialization(self, key_states: torch.Tensor, value_states: torch.Tensor) -> None:
        raise AssertionError("slots are made beforehand")

    def update(self, key_states: torch.Tensor, value_states: torch.Tensor, *_: object, **__: object):
        """Writes one token a row, (rows, kv_heads, 1, head_dim); returns the window."""
        rows, length = self.window
        keys, values = self.keys[:rows, :, :length], self.values[:rows, :, :length]
        write(keys, values, self.slot, key_states, value_states)
        return keys, values

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        return self.window[1], 0

    def get_seq_length(self) -> int:
        return self.window[1] - 1

    def get_max_length(self) -> int:
        return self.keys.shape[2]


class SlotCache(Cache):
    """A layer of slots for every layer that a prefill has filled."""

    def __init__(self, like: DynamicCache, rows: int, slots: int):
        """`like`: the cache of a prefill, whose heads and dtype it has."""
        super().__init__([Slots(_zeros(layer.keys, rows, slots), _zeros(layer.values, rows, slots)) for layer in like.layers])

    @property
    def num_bytes(self) -> int:
        return sum(part.numel() * part.element_size() for layer in self.layers for part in (layer.keys, layer.values))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and slots."""
        return self.layers[0].keys.shape[0], self.layers[0].keys.shape[2]

    def look(self, rows: int, length: int, slot: torch.Tensor) -> None:
        """What the next step sees, and the slot (1,) that it writes."""
        for layer in self.layers:
            layer.window, layer.slot = (rows, length), slot

    def fill(self, prefill: DynamicCache, repeats: int) -> None:
        """Each prompt's keys and values `repeats` times over; everything else is zero (a NaN, once written, would stay one under
        any mask)."""
        for slots, layer in zip(self.layers, prefill.layers, strict=True):
            for target, source in ((slots.keys, layer.keys), (slots.values, layer.values)):
                target.zero_()
                num, length = source.shape[0], source.shape[2]
                target[: num * repeats, :, :length].unflatten(0, (num, repeats)).copy_(source[:, None])

    def keep(self, rows: torch.Tensor, length: int) -> None:
        """Moves those rows (R,) to the front; of the slots, the first `length` hold something."""
        for layer in self.layers:
            for part in (layer.keys, layer.values):
                part[: len(rows), :, :length] = part[rows, :, :length]


def _zeros(like: torch.Tensor, rows: int, slots: int) -> torch.Tensor:
    return like.new_zeros((rows, like.shape[1], slots, like.shape[3]))


class Heads(NamedTuple):
    """How many there are, of queries and of keys and values, and how wide a key and a value are."""

    query: int
    kv: int
    key_dim: int
    value_dim: int


def heads_of(config: PreTrainedConfig) -> Heads:
    """By a model's configuration; where it keeps keys and values in another form, attention is given others."""
    text = config.get_text_config()
    heads = text.num_attention_heads
    dim = getattr(text, "head_dim", None) or text.hidden_size // heads
    return Heads(heads, getattr(text, "num_key_value_heads", None) or heads, dim, dim)


def bytes_a_row(config: PreTrainedConfig, slots: int, dtype: torch.dtype) -> int:
    """Of keys and values, for one row of so many slots."""
    heads = heads_of(config)
    return config.get_text_config().num_hidden_layers * heads.kv * (heads.key_dim + heads.value_dim) * slots * dtype.itemsize
