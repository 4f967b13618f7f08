"""Queries, keys and values of a layer as one product with their three matrices joined.

A decode step is short of work for a GPU: three products of the same input, two of them small, take longer than one. Where the
model is trained, the joined matrices are copies, brought up to date before each batch of rollouts, and nothing of it is changed.
Where it is itself a copy for sampling, its matrices become parts of the joined ones, which take no memory then.
"""

from collections.abc import Callable, Collection

import torch
from torch.nn.functional import linear

NAMES = ("q_proj", "k_proj", "v_proj")  # as transformers' decoders name them


class Joined:
    """Three linear layers of one input, asked in their order: the first computes all of them. A call that comes otherwise is
    answered by its own layer."""

    def __init__(self, parts: list[torch.nn.Linear], takes_over: bool = False):
        """`takes_over`: the layers' weights become parts of the joined ones, for good."""
        self.parts, self._is_copy = parts, not takes_over
        self._weight = torch.cat([part.weight.detach() for part in parts])
        self._bias = None if parts[0].bias is None else torch.cat([part.bias.detach() for part in parts])
        self._sizes = [part.out_features for part in parts]
        self._input: torch.Tensor | None = None
        self._outputs: tuple[torch.Tensor, ...] = ()
        if takes_over:
            for joined, own in self._parts():
                own.data = joined

    @property
    def num_bytes(self) -> int:
        """Of copies."""
        return sum(own.numel() * own.element_size() for _, own in self._parts()) if self._is_copy else 0

    def pairs(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Parts of the copies, and what they are copies of."""
        return [(joined, own.detach()) for joined, own in self._parts()] if self._is_copy else []

    def _parts(self) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """Parts of the joined weights, and the layers' own."""
        parts = list(zip(self._weight.split(self._sizes), [part.weight for part in self.parts], strict=True))
        if self._bias is not None:
            parts += zip(self._bias.split(self._sizes), [part.bias for part in self.parts], strict=True)
        return parts

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


def find(model: torch.nn.Module, free: Collection[int] = ()) -> list[Joined]:
    """One for every attention whose three layers are plain ones with weights of one kind. `free`: ids of parameters that nobody
    but the sampler has."""
    found = []
    for module in model.modules():
        parts = [getattr(module, name, None) for name in NAMES]
        if not all(type(part) is torch.nn.Linear and "forward" not in part.__dict__ for part in parts):
            continue
        kinds = {(part.in_features, part.weight.dtype, part.weight.device, part.bias is None) for part in parts}
        if len(kinds) == 1:
            own = {id(parameter) for part in parts for parameter in part.parameters()}
            found.append(Joined(parts, takes_over=own <= set(free)))
    return found
