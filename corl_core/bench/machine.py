"""What `bench rollouts` measures of the machine itself, and how it takes time."""

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from corl_core.config import ConfigError


def now(device: str) -> float:
    """On a CPU the time of this process alone, by one thread, for other work on the machine would spoil a comparison."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def read_seconds(num_bytes: int, device: str, repeats: int = 5) -> float:
    """To read so many bytes of memory once: the fastest of several sums over them."""
    values = torch.ones(max(1, num_bytes // 4), device=device)
    times = []
    for _ in range(repeats):
        begin = now(device)
        values.sum()
        times.append(now(device) - begin)
    return min(times)


def reset_peak(device: str) -> int:
    """Bytes held now, on a GPU that nothing but the weights is left on."""
    if device != "cuda":
        return 0
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


@contextmanager
def without_cudnn() -> Iterator[None]:
    """Attention by another kernel than cuDNN's, which torch prefers on some cards and which may be slow for one query token."""
    was = torch.backends.cuda.cudnn_sdp_enabled()
    torch.backends.cuda.enable_cudnn_sdp(False)
    try:
        yield
    finally:
        torch.backends.cuda.enable_cudnn_sdp(was)


def require(device: str, remedy: str = "take --device cpu") -> None:
    """Raises ConfigError where this machine has no such device."""
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(f"--device cuda: there is no GPU here that torch can use; {remedy}")
