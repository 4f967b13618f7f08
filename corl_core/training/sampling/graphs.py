"""Decode steps as CUDA graphs: one for each size, captured when it is first met, all in one pool of memory."""

from collections.abc import Callable

import torch

from corl_core.training.sampling.step import State, Step

WARM_UPS = 2  # runs before a capture: libraries make their plans and workspaces


class Graphs:
    """Replays of a step. Weights may change between replays as long as they stay where they are."""

    def __init__(self, step: Step, state: State):
        self._step, self._state = step, state
        self._graphs: dict[tuple[int, int], torch.cuda.CUDAGraph] = {}
        self._pool = torch.cuda.graph_pool_handle()
        self._stream = torch.cuda.Stream()

    def __len__(self) -> int:
        return len(self._graphs)

    def __call__(self, rows: int, length: int) -> None:
        if (rows, length) not in self._graphs:
            self._graphs[rows, length] = self._capture(lambda: self._step(rows, length))
        self._graphs[rows, length].replay()

    def _capture(self, call: Callable[[], None]) -> torch.cuda.CUDAGraph:
        """Trial runs are undone: they end where they began, but for a slot that the first replay writes again."""
        saved, noise = self._state.position_state(), self._state.noise.clone()
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            for _ in range(WARM_UPS):
                call()
                self._state.put_back(saved)
        torch.cuda.current_stream().wait_stream(self._stream)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            call()
        self._state.noise.copy_(noise)
        return graph
