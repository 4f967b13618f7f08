"""Which draws to look at: each filter is a mask over a run's draws, (D,).

`agents` narrows a filter to some agents' places (None: all of them). Filters about right and wrong hold only where the truth
is known; the others need none.
"""

import re
from collections.abc import Callable, Sequence
from itertools import combinations

import numpy as np

from corl_core.rollouts.ballots import Ballots
from corl_core.rollouts.tally import NONE, Array


def everything(ballots: Ballots, agents: Sequence[int], since: int) -> Array:
    """Every question of every step."""
    return ballots.present[list(agents)].any(0)


def same_wrong(ballots: Ballots, agents: Sequence[int], since: int) -> Array:
    """Two agents vote for the same wrong answer."""
    found = np.zeros(ballots.num_draws, dtype=bool)
    for a, b in combinations(agents, 2):
        found |= (ballots.votes[a] == ballots.votes[b]) & (ballots.votes[a] != NONE) & ballots.wrong[a]
    return found


def minority_right(ballots: Ballots, agents: Sequence[int], since: int) -> Array:
    """An agent's vote is wrong, and at least one of its rollouts is right."""
    found = np.zeros(ballots.num_draws, dtype=bool)
    for agent in agents:
        hit = (ballots.codes[agent] == ballots.truth[:, None]).any(1)
        found |= ballots.wrong[agent] & hit & ballots.known & (ballots.votes[agent] != NONE)
    return found


def flipped(ballots: Ballots, agents: Sequence[int], since: int) -> Array:
    """An agent receives another pseudo-label than the last one it received for this question up to step `since`.

    Draws up to that step, questions that had no label by then, and draws without a label are not flipped. A question's
    second wording is compared with its second wording.
    """
    slot = ballots.question * (int(ballots.group.max(initial=0)) + 1) + ballots.group  # (D,) what is asked again
    found, early = np.zeros(ballots.num_draws, dtype=bool), ballots.step <= since
    for agent in agents:
        label = ballots.labels[agent]
        before = np.full(int(slot.max(initial=0)) + 1, NONE, dtype=label.dtype)
        seen = np.flatnonzero(early & (label != NONE))
        before[slot[seen]] = label[seen]  # in step order, and the last assignment stays
        then = before[slot]
        found |= ~early & (label != NONE) & (then != NONE) & (label != then)
    return found


def unparsed(ballots: Ballots, agents: Sequence[int], since: int) -> Array:
    """An agent has rollouts and no answer that parses."""
    return (ballots.present[list(agents)] & (ballots.codes[list(agents)] == NONE).all(2)).any(0)


def tied(ballots: Ballots, agents: Sequence[int], since: int) -> Array:
    """In an agent's group two answers share the highest count."""
    return np.stack([ballots.tallies[agent].tied for agent in agents]).any(0)


FILTERS: dict[str, Callable[[Ballots, Sequence[int], int], Array]] = {
    function.__name__: function for function in (everything, same_wrong, minority_right, flipped, unparsed, tied)
}


def matching(ballots: Ballots, name: str, agents: Sequence[int] | None = None, since: int = 0) -> Array:
    """The draws that a filter of FILTERS lets through, (D,) bool."""
    chosen = range(len(ballots.agents)) if agents is None else agents
    if not ballots.num_draws or not len(chosen):
        return np.zeros(ballots.num_draws, dtype=bool)
    return FILTERS[name](ballots, chosen, since)


def searched(ballots: Ballots, text: str) -> Array:
    """The draws whose question, in any wording, or its id holds every word of `text`, whatever the case: (D,) bool."""
    words = [re.compile(re.escape(word), re.IGNORECASE) for word in text.split()]
    held = [all(word.search(f"{asked}\n{name}") for word in words)
            for asked, name in zip(ballots.texts, ballots.question_ids, strict=True)]  # fmt: skip
    return np.array(held, dtype=bool)[ballots.question] if held else np.zeros(ballots.num_draws, dtype=bool)
