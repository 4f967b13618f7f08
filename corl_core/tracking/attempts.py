"""One line out of the attempts of a run that was resumed.

A run that goes on from a checkpoint writes some steps again. The later attempt is the one that the weights come from,
so a value is kept only when no later written value of its line has the same or an earlier step: what is left has
ascending steps. `attempt` counts the returns before each value, from 0; a line written once has zeros only.
"""

import numpy as np

Array = np.ndarray


def last_attempt(steps: Array) -> tuple[Array, Array]:
    """The places to keep, and the attempt of each, of `steps` in the order of writing (shape [num_values]).

    Written 0 1 2 3 | 2 3 4: places 0 1 4 5 6 are kept, with attempts 0 0 1 1 1.
    """
    if len(steps) < 2 or (np.diff(steps) > 0).all():
        return np.arange(len(steps)), np.zeros(len(steps), dtype=np.int64)
    earliest_after = np.append(np.minimum.accumulate(steps[:0:-1])[::-1], np.iinfo(np.int64).max)
    kept = np.flatnonzero(steps < earliest_after)
    attempt = np.concatenate([[0], np.cumsum(np.diff(steps) <= 0)])[kept]
    return kept, attempt.astype(np.int64)
