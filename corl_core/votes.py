"""A group of answers becomes one vote (arXiv 2608.17253, Eq. 3).

The vote is the most common canonical key among the *parsed* answers of a group: the K rollouts of one agent on
one question. Answers that did not parse neither vote nor count in the vote share. Degenerate cases: a group in
which nothing parses casts no vote; K different answers are a K-way tie.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from corl_core.answers import Answer


@dataclass(frozen=True)
class Vote:
    """How one group voted. `answer` is the winner, None when no vote is cast."""

    answer: Answer | None
    count: int  # rollouts that gave the winning answer; the top count also when a tie abstains
    num_parsed: int
    num_rollouts: int
    tied: bool

    @property
    def key(self) -> str | None:
        return self.answer.key if self.answer else None

    @property
    def share(self) -> float:
        """The winner's fraction of the parsed answers; 0 when none parsed."""
        return self.count / self.num_parsed if self.num_parsed else 0.0


def vote(answers: Sequence[Answer | None], tie: Literal["first", "abstain"] = "first") -> Vote:
    """The plurality of a group, in sampling order.

    A tie goes to the answer sampled first (rollouts are exchangeable, so this is a fair draw) or, with
    `tie="abstain"`, to nobody. The winner is spelled as its first rollout spelled it.
    """
    parsed = [answer for answer in answers if answer is not None]
    counts = Counter(answer.key for answer in parsed)  # a Counter keeps the order of first appearance
    if not counts:
        return Vote(None, 0, 0, len(answers), tied=False)
    (key, top), *others = counts.most_common(2)
    tied = bool(others) and others[0][1] == top
    winner = None if tied and tie == "abstain" else next(answer for answer in parsed if answer.key == key)
    return Vote(winner, top, len(parsed), len(answers), tied)


def passes(cast: Vote, min_share: float) -> bool:
    """Whether a vote counts as a pseudo-label: cast, and with at least `min_share` of the parsed answers."""
    return cast.answer is not None and cast.share >= min_share
