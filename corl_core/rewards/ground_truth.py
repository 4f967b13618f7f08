"""Supervised GRPO: the true answer is the target (the upper reference of arXiv 2608.17253, Table 1).

    reward = 1 if a rollout's answer is equivalent to the true answer, else 0

The only signal that reads true answers. Degenerate case: a question without a true answer is unlabelled.
"""

from collections.abc import Sequence

from corl_core.answers import answer


def labels(truths: Sequence[str | None]) -> list[str | None]:
    """Canonical key of each question's true answer; None where it is missing or says nothing."""
    parsed = [answer(text) if text is not None else None for text in truths]
    return [truth.key if truth else None for truth in parsed]
