"""What a supervision signal may look at, and what it gives back. No true answer is in here.

P questions a step, V completions a question (those that vote; the trained ones are among them), groups in batch order.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from corl_core.answers import Answer
from corl_core.rewards.matching import rewards
from corl_core.votes import Vote

Rewards = tuple[tuple[float, ...] | None, ...]  # (P,) groups of V; None: an unlabelled group


@dataclass(frozen=True)
class Batch:
    """One agent's completions of one step."""

    step: int  # updates done when they were sampled
    question_ids: tuple[str, ...]  # (P,)
    prompts: tuple[str, ...]  # (P,) as the model read them
    completions: tuple[tuple[str, ...], ...]  # (P, V) texts
    answers: tuple[tuple[Answer | None, ...], ...]  # (P, V)
    votes: tuple[Vote, ...]  # (P,) the agent's own
    entropies: tuple[tuple[float, ...], ...]  # (P, V) mean over a completion's tokens, nats
    self_certainties: tuple[tuple[float, ...], ...]  # (P, V) the same of KL(uniform || next-token distribution), nats


@dataclass(frozen=True)
class Scored:
    """A signal's rewards; and the pseudo-labels behind them, (P,) canonical keys, where it has any."""

    rewards: Rewards
    labels: tuple[str | None, ...] | None = None


Signal = Callable[[Batch], Scored]


def matched(batch: Batch, labels: Sequence[str | None]) -> Scored:
    """Rewards for meeting each question's label."""
    groups = zip(batch.answers, labels, strict=True)
    return Scored(tuple(rewards(answers, label) for answers, label in groups), tuple(labels))
