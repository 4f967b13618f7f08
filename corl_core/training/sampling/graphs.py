"""Decode steps as CUDA graphs: one for each size, captured when it is first met, all in one pool of memory."""

import functools
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress

import torch

from corl_core.training.sampling.step import State, Step

WARM_UPS = 2  # runs before a capture: libraries make their plans and workspaces
MOST = 64  # graphs held: rows only fall and slots only grow in a call, so one meets some forty sizes at most


@functools.cache
def _side_stream(device: torch.device) -> torch.cuda.Stream:
    """One for each device and process: cuBLAS keeps a workspace for every stream that it has seen."""
    return torch.cuda.Stream(device)


class Graphs:
    """Replays of a step. Weights may change between replays as long as they stay where they are."""

    def __init__(self, step: Step, state: State):
        self._step, self._state = step, state
        self._graphs: OrderedDict[tuple[int, int], torch.cuda.CUDAGraph] = OrderedDict()
        self._pool = torch.cuda.graph_pool_handle()
        self._device = state.eos.device
        self._stream = _side_stream(self._device)
        self.num_bytes = 0  # of memory that this process's allocator has taken for captures

    def __len__(self) -> int:
        return len(self._graphs)

    def __call__(self, rows: int, length: int) -> None:
        size = (rows, length)
        if size not in self._graphs:
            if len(self._graphs) >= MOST:
                torch.cuda.current_stream().synchronize()  # the oldest may still run
                self._graphs.popitem(last=False)
            held = self._reserved()
            self._graphs[size] = self._capture(lambda: self._step(rows, length))
            self.num_bytes += self._reserved() - held
        self._graphs.move_to_end(size)
        self._graphs[size].replay()

    def _reserved(self) -> int:
        """Bytes that this process's allocator holds, without what it could give back: a capture gives that back as it begins."""
        torch.cuda.empty_cache()
        return torch.cuda.memory_reserved(self._device)

    def _capture(self, call: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Trial runs are undone: they end where they began, but for a slot that the first replay writes again."""
        saved, noise = self._state.position_state(), self._state.noise.clone()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(WARM_UPS):
                call()
                self._state.put_back(saved)
        torch.cuda.current_stream().wait_stream(self._stream)
        graph, before = torch.cuda.CUDAGraph(), torch.cuda.current_stream()
        try:
            with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
                call()
        except BaseException:
            self._after_failure(before)
            raise
        finally:
            torch.cuda.set_stream(before)
        self._state.noise.copy_(noise)
        return graph

    def _after_failure(self, before: torch.cuda.Stream) -> None:
        """A capture that fails as it ends leaves its stream current, by torch's version its pool the allocator's, and CUDA's
        default generator in the belief that a capture goes on, which the end of one that succeeds takes away. The pool's memory
        goes back with the graph that failed."""
        with suppress(RuntimeError, AttributeError, TypeError):
            torch._C._cuda_endAllocateToPool(before.device_index, self._pool)
        torch.cuda.set_stream(before)
        again = torch.cuda.graph(torch.cuda.CUDAGraph(), stream=self._stream, capture_error_mode="thread_local")
        with suppress(RuntimeError), again:
            self._state.step.add_(0)
