"""The signals that train an agent: the one place where methods differ.

A signal turns a step's completions into rewards (`rewards/batch.py`). Parsing, voting, sampling, question order, evaluation and
the update are shared by all. A label-free signal is built without the true answers, so its rewards cannot depend on them.

A protocol of several turns, such as CoMAS (arXiv 2510.08529: solutions, critiques and scores of each other), does not fit this
seam: it decides what is *sampled*. It belongs where `Agent` calls `Sampler.sample` behind TRL's `rollout_func`, which may
return any number of prompts and completions with rewards of their own, and it would use `Exchange` to pass messages.
"""

from collections.abc import Callable, Mapping

from corl_core.config import RunConfig, VoteConfig
from corl_core.rewards import (
    co_rewarding_1,
    co_rewarding_2,
    corl,
    ground_truth,
    intuitor,
    rent,
    ttrl,
)
from corl_core.rewards import format as format_reward
from corl_core.rewards import random as random_reward
from corl_core.rewards.batch import Batch, Scored, Signal, matched
from corl_core.seeds import derive
from corl_core.training.clock import Clock
from corl_core.training.exchange import Exchange
from corl_core.training.teacher import Teacher
from corl_core.votes import passes


def build(
    config: RunConfig, agent: str, clock: Clock, exchange: Callable[[], Exchange], teacher: Callable[[], Teacher],
    truths: Callable[[], Mapping[str, str | None]],
) -> dict[str, Signal]:  # fmt: skip
    """The agent's signals by name; what only some signals need is made only for them."""
    vote, settings = config.vote, config.signal
    makers: dict[str, Callable[[], Signal]] = {
        "corl": lambda: from_peer(exchange(), vote, clock),
        "ttrl": lambda: lambda batch: matched(batch, ttrl.pseudo_labels(batch.votes, vote.min_share)),
        "ground_truth": lambda: from_truth(truths()),
        "intuitor": lambda: lambda batch: Scored(intuitor.rewards(batch.self_certainties)),
        "rent": lambda: lambda batch: Scored(rent.rewards(batch.entropies, batch.answers, settings.no_answer_reward)),
        "co_rewarding_1": lambda: lambda batch: matched(batch, co_rewarding_1.pseudo_labels(batch.votes, vote.min_share)),
        "co_rewarding_2": lambda: from_teacher(teacher(), vote, clock),
        "random": lambda: from_coins(settings.random_frac, config.seed, agent),
        "format": lambda: lambda batch: Scored(format_reward.rewards(batch.completions)),
    }
    return {name: makers[name]() for name in config.signals}


def from_peer(exchange: Exchange, vote: VoteConfig, clock: Clock) -> Signal:
    """Co-RL: send my votes that count, receive my peer's."""

    def signal(batch: Batch) -> Scored:
        sent = [cast.answer.text if passes(cast, vote.min_share) else None for cast in batch.votes]
        with clock.timed("exchange_wait_s"):
            received = exchange.swap(batch.step, batch.question_ids, sent)
        return matched(batch, corl.pseudo_labels(received))

    return signal


def from_teacher(teacher: Teacher, vote: VoteConfig, clock: Clock) -> Signal:
    """Co-rewarding-II: the teacher's votes."""

    def signal(batch: Batch) -> Scored:
        with clock.timed("generate_time_s"):
            votes = teacher.votes(batch.step, batch.prompts)
        return matched(batch, co_rewarding_2.pseudo_labels(votes, vote.min_share))

    return signal


def from_truth(truths: Mapping[str, str | None]) -> Signal:
    """Supervised GRPO: the true answers, by question id."""
    return lambda batch: matched(batch, ground_truth.labels([truths[question] for question in batch.question_ids]))


def from_coins(frac: float, seed: int, agent: str) -> Signal:
    """Random reward: coins that depend on the run's seed, the agent and the step alone."""

    def signal(batch: Batch) -> Scored:
        coins = derive("random", seed, agent, batch.step)
        return Scored(random_reward.rewards(len(batch.votes), len(batch.completions[0]), frac, coins))

    return signal
