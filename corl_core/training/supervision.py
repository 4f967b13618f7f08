"""Which target each method gives a step's questions: the one place where methods differ.

A label-free method is built without the true answers, so its rewards cannot depend on them.
"""

from collections.abc import Callable, Mapping, Sequence

from corl_core.config import VoteConfig
from corl_core.rewards import corl, ground_truth, ttrl
from corl_core.training.exchange import Exchange
from corl_core.votes import Vote, passes

# (round, question ids, the agent's own votes) → canonical key of each question's target, None where there is none
Supervision = Callable[[int, Sequence[str], Sequence[Vote]], list[str | None]]


def from_peer(exchange: Exchange, vote: VoteConfig) -> Supervision:
    """Co-RL: send my votes that count, receive my peer's."""

    def targets(round_id: int, question_ids: Sequence[str], own: Sequence[Vote]) -> list[str | None]:
        sent = [cast.answer.text if passes(cast, vote.min_share) else None for cast in own]
        return corl.pseudo_labels(exchange.swap(round_id, question_ids, sent))

    return targets


def from_self(vote: VoteConfig) -> Supervision:
    """TTRL: my own votes."""
    return lambda round_id, question_ids, own: ttrl.pseudo_labels(own, vote.min_share)


def from_truth(truths: Mapping[str, str | None]) -> Supervision:
    """Supervised GRPO: the true answers, by question id."""
    return lambda round_id, question_ids, own: ground_truth.labels([truths[question] for question in question_ids])
