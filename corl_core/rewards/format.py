"""Format reward: one well-formed box; a control (arXiv 2506.10947).

    reward = 1 if the completion holds exactly one box, and something in it, else 0

What a method gains over this is more than learning to box. Degenerate case: once every completion boxes once, no gradient.
"""

from corl_core.grading.boxes import last_box, num_boxes
from corl_core.rewards.batch import Rewards


def rewards(completions: tuple[tuple[str, ...], ...]) -> Rewards:
    """(P, V) in {0, 1}."""
    return tuple(tuple(float(num_boxes(text) == 1 and last_box(text)[0] is not None) for text in group) for group in completions)
