"""How the dashboard gives memory back: a page that has read half a million rollouts must not leave their room behind."""

import ctypes
import os
from contextlib import suppress

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -3, -8  # glibc's malloc.h
LARGE_BYTES = 131_072  # glibc's own limit at the start, which it raises to the largest block that was freed
HEAPS = 2  # by default eight for each core: every thread that draws a page has one, and keeps in it what it has freed


def be_thrifty() -> None:
    """To be called before pyarrow is loaded and any thread is started. Where there is no glibc, only Arrow heeds it.

    A block of LARGE_BYTES or more is mapped by itself, and returned as soon as it is freed; so is free room at the end of a heap.
    Arrow's own pool keeps what it has freed; that of the system does not.
    """
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with suppress(OSError, AttributeError, TypeError):
        mallopt = ctypes.CDLL(None).mallopt
        for parameter, value in ((M_MMAP_THRESHOLD, LARGE_BYTES), (M_TRIM_THRESHOLD, LARGE_BYTES), (M_ARENA_MAX, HEAPS)):
            mallopt(parameter, value)
