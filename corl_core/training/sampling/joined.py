"""Queries, keys and values of a layer as one product with their three matrices joined.

A decode step is short of work for a GPU: three products of the same input, two of them small, take longer than one. The joined
matrices are copies, brought up to date before each batch of rollouts; nothing of the model is changed.
"""

from collections.abc import Callable

import torch
from torch.nn.functional import linear

NAMES = ("q_proj", "k_proj", "v_proj")  # as transformers' decoders name them


class Joined:
    """Three linear layers of one input, asked in their order: the first computes all of them. A call that comes otherwise is
    answered by its own layer."""

    def __init__(self, parts: list[torch.nn.Linear]):
        self.parts = parts
        self._weight = torch.cat([part.weight.detach() for part in parts])
        self._bias = None if parts[0].bias is None else torch.cat([part.bias.detach() for part in parts])
        self._sizes = [part.out_features for part in parts]
        self._input: torch.Tensor | None = None
        self._outputs: tuple[torch.Tensor, ...] = ()

    @property
    def num_bytes(self) -> int:
        return sum(part.numel() * part.element_size() for part in (self._weight, self._bias) if part is not None)

    def pairs(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Parts of the copies, and what they are copies of."""
        pairs = list(zip(self._weight.split(self._sizes), [part.weight.detach() for part in self.parts], strict=True))
        if self._bias is not None:
            pairs += zip(self._bias.split(self._sizes), [part.bias.detach() for part in self.parts], strict=True)
        return pairs

    def forward(self, index: int) -> Callable[[torch.Tensor], torch.Tensor]:
        """Of the layer with that number."""
        part, last = self.parts[index], len(self.parts) - 1

        def call(states: torch.Tensor) -> torch.Tensor:
            if index == 0:
                self._input, self._outputs = states, linear(states, self._weight, self._bias).split(self._sizes, -1)
            elif self._input is not states:
                return linear(states, part.weight, part.bias)
            output = self._outputs[index]
            if index == last:  # nothing is held for longer than it is needed: memory in a graph is used again
                self._input, self._outputs = None, ()
            return output

        return call


def find(model: torch.nn.Module) -> list[Joined]:
    """One for every attention whose three layers are plain ones with weights of one kind."""
    found = []
    for module in model.modules():
        parts = [getattr(module, name, None) for name in NAMES]
        if not all(type(part) is torch.nn.Linear and "forward" not in part.__dict__ for part in parts):
            continue
        kinds = {(part.in_features, part.weight.dtype, part.weight.device, part.bias is None) for part in parts}
        if len(kinds) == 1:
            found.append(Joined(parts))
    return found
