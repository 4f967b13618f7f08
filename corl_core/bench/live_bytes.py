"""Bytes of all live tensors, operation by operation: what torch.cuda.max_memory_allocated counts, on any device and on none.

A dispatch mode sees every tensor that an operation makes; a storage counts from then until it is freed. Under FakeTensorMode
nothing is computed or held, so that a model of any size can be followed on a laptop. Two things differ from a GPU: kernels' own
workspaces are not seen, and while a dispatch mode is on, autograd adds two gradients of one weight into a third tensor instead of
into the first.
"""

import weakref
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


class LiveBytes(TorchDispatchMode):
    """`live`: bytes now; `peak`: the most since `reset`. Tensors made before count once they are held or passed through."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self._known: dict[int, int] = {}

    def hold(self, tensor: Any) -> None:
        """Counts a tensor that was made outside."""
        if not isinstance(tensor, torch.Tensor):
            return
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self._known:
            self._known[key] = storage.nbytes()
            self.live += storage.nbytes()
            self.peak = max(self.peak, self.live)
            weakref.finalize(storage, self._freed, key)

    def hold_all(self, module: torch.nn.Module) -> None:
        for tensor in (*module.parameters(), *module.buffers()):
            self.hold(tensor)

    def reset(self) -> None:
        self.peak = self.live

    def _freed(self, key: int) -> None:
        self.live -= self._known.pop(key)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        out = func(*args, **(kwargs or {}))
        for leaf in tree_iter(out):
            self.hold(leaf)
        return out
