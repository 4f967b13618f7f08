"""A run's questions as paths in the plane of its agents' accuracies, beside what the theory says of their starts.

An accuracy is the share of right answers among all rollouts of one agent on one question at one step. A question that came
up in two steps or more is *followed*: its first visit is its start, its last visit its end. Nothing is followed where every
question came up once; the run is then compared as a whole, its early questions against its late ones.

Two predictions from the start, both until consensus and for each question alone:
  rule     right and wrong only, from the counts as they are: p > ½ for own votes, p_A + p_B > 1 for a mutual pair, the flow
           for longer rings; ½ on the edge
  chance   the flow that tells wrong answers apart, averaged over what K answers leave open (`predict.from_counts`)
The theory has no generalisation, so a run that does better than predicted on single questions is no contradiction.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from corl_core.rollouts.ballots import Ballots
from corl_core.rollouts.tally import NONE
from corl_core.theory import predict

Array = np.ndarray
STREAM_FRAC = 0.2  # the first and the last fifth of the steps, where no question is followed
SUPERVISION = {"self": "self", "teacher": "self", "peer": "ring", "truth": "ground_truth"}  # a label's source, as a flow


class NoTruth(ValueError):
    """A run without true answers, or without rollouts of all agents, can't be held against the theory."""


@dataclass(frozen=True)
class Followed:
    """Q questions with at least two visits, N agents."""

    agents: tuple[str, ...]
    supervision: str  # "self", "ring" or "ground_truth"
    cycles: tuple[tuple[int, ...], ...]  # the rings, each in ring order, as places in `agents`
    num_generations: int  # K, of the group that votes
    question_ids: Array  # (Q,)
    texts: tuple[str, ...]  # (Q,)
    first: Array  # (Q,) place of the first visit in the arrays below; a question's visits are contiguous
    last: Array  # (Q,)
    step: Array  # (V,)
    accuracy: Array  # (V, N)
    counts: Array  # (Q, N, M) answers at the first visit, the truth first; what did not parse is missing

    @property
    def start(self) -> Array:
        """Accuracies at the first visit, (Q, N)."""
        return self.accuracy[self.first]

    @property
    def end(self) -> Array:
        """And at the last, (Q, N)."""
        return self.accuracy[self.last]

    @cached_property
    def rule(self) -> Array:
        """1 where the start is on the side that ends right, ½ on the edge, (Q, N)."""
        return _outcome(self.start, self.supervision, self.cycles, self.num_generations)

    @cached_property
    def chance(self) -> Array:
        """The chance to end right: wrong answers told apart, averaged over what a first visit leaves open, (Q, N)."""
        return _chance(self.counts, self.supervision, self.cycles, self.num_generations)

    @property
    def kept(self) -> float:
        """Share of questions and agents whose end is on the predicted side of ½; predictions of exactly ½ are left out."""
        said = np.abs(self.chance - 0.5) > 1e-9
        return float(((self.end > 0.5) == (self.chance > 0.5))[said].mean()) if said.any() else float("nan")

    def calibration(self, places: Sequence[int], num_bins: int = 10) -> list[dict[str, float]]:
        """Questions in bins of equal width by predicted chance, over the agents at `places`: `chance` and `right` (means of
        prediction and of final accuracy), `error` (standard error of `right`) and `num`; empty bins are left out."""
        chance, right = self.chance[:, list(places)].ravel(), self.end[:, list(places)].ravel()
        bins = np.minimum((chance * num_bins).astype(int), num_bins - 1)
        rows = []
        for place in np.unique(bins):
            own = bins == place
            error = right[own].std(ddof=1) / own.sum() ** 0.5 if own.sum() > 1 else float("nan")
            rows.append({"chance": chance[own].mean(), "right": right[own].mean(), "error": error, "num": int(own.sum())})
        return rows


@dataclass(frozen=True)
class Stream:
    """The run as a whole: (N,) means over the questions of its first and last steps."""

    until: int  # the last of the early steps
    since: int  # the first of the late ones
    start: Array
    end: Array
    right_side: Array
    predicted: Array


def supervision_of(sources: Sequence[str | None]) -> str | None:
    """The flow for a run whose signals take their labels from `sources` (methods.py); None when the theory has none."""
    return SUPERVISION.get(sources[0] or "") if len(sources) == 1 else None


def rings(agents: Sequence[str], peers: Mapping[str, str]) -> tuple[tuple[int, ...], ...]:
    """The cycles of "whose vote rewards whom", each in ring order: an agent stands after its peer."""
    left, found = list(agents), []
    taker = {peer: name for name, peer in peers.items()}
    while left:
        cycle = [left[0]]
        while (after := taker.get(cycle[-1], cycle[0])) != cycle[0]:
            cycle.append(after)
        found.append(tuple(list(agents).index(name) for name in cycle))
        left = [name for name in left if name not in cycle]
    return tuple(found)


def follow(ballots: Ballots, supervision: str, peers: Mapping[str, str]) -> Followed:
    """Every question that came up in two steps or more. Raises NoTruth when no question of all agents has a known truth."""
    draws = _usable(ballots)
    order = draws[np.lexsort((ballots.step[draws], ballots.question[draws]))]
    question = ballots.question[order]
    first = np.flatnonzero(np.diff(question, prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    again = ballots.step[order[last]] > ballots.step[order[first]]
    first, last = first[again], last[again]
    asked = question[first]
    cycles = rings(ballots.agents, peers) if supervision == "ring" else tuple((n,) for n in range(len(ballots.agents)))
    return Followed(
        agents=ballots.agents,
        supervision=supervision,
        cycles=cycles,
        num_generations=max(2, int(ballots.size.max())),
        question_ids=ballots.question_ids[asked],
        texts=tuple(ballots.texts[place] for place in asked),
        first=first,
        last=last,
        step=ballots.step[order],
        accuracy=_accuracy(ballots, order),
        counts=counted(ballots.codes[:, order[first]], ballots.truth[order[first]]),
    )


def stream(ballots: Ballots, supervision: str, peers: Mapping[str, str]) -> Stream:
    """The early questions' outcome by theory, beside the late questions' accuracy. Raises NoTruth as `follow` does."""
    draws = _usable(ballots)
    step = ballots.step[draws]
    reach = STREAM_FRAC * (step.max() - step.min())
    early, late = draws[step <= step.min() + reach], draws[step >= step.max() - reach]
    size = max(2, int(ballots.size.max()))
    cycles = rings(ballots.agents, peers) if supervision == "ring" else tuple((n,) for n in range(len(ballots.agents)))
    starts, ends = _accuracy(ballots, early), _accuracy(ballots, late)
    counts = counted(ballots.codes[:, early], ballots.truth[early])
    return Stream(
        until=int(ballots.step[early].max()),
        since=int(ballots.step[late].min()),
        start=starts.mean(axis=0),
        end=ends.mean(axis=0),
        right_side=_outcome(starts, supervision, cycles, size).mean(axis=0),
        predicted=_chance(counts, supervision, cycles, size).mean(axis=0),
    )


def counted(codes: Array, truth: Array) -> Array:
    """Answers of (A, Q, V) codes as counts (Q, A, M): the truth first, then the question's other answers."""
    rows = codes.transpose(1, 0, 2).reshape(len(truth), codes.shape[0] * codes.shape[2])
    parsed, right = rows != NONE, rows == truth[:, None]
    wrong = parsed & ~right
    by_code = np.argsort(np.where(wrong, rows, -1), axis=1, kind="stable")
    ordered, is_wrong = np.take_along_axis(rows, by_code, 1), np.take_along_axis(wrong, by_code, 1)
    fresh = is_wrong & np.append(np.ones((len(rows), 1), bool), np.diff(ordered, axis=1) != 0, axis=1)
    fresh |= is_wrong & ~np.append(np.zeros((len(rows), 1), bool), is_wrong[:, :-1], axis=1)
    label = np.empty_like(rows)
    np.put_along_axis(label, by_code, fresh.cumsum(axis=1).astype(rows.dtype), 1)
    label[right] = 0
    counts = np.zeros((len(truth), codes.shape[0], max(2, int(label[parsed].max(initial=0)) + 1)))
    question, place = np.nonzero(parsed)
    np.add.at(counts, (question, place // codes.shape[2], label[parsed]), 1)
    return counts


def _usable(ballots: Ballots) -> Array:
    draws = np.flatnonzero(ballots.known & ballots.present.all(axis=0))
    if not len(draws):
        raise NoTruth("no question with a known answer has rollouts of every agent, so accuracies can't be told")
    return draws


def _accuracy(ballots: Ballots, draws: Array) -> Array:
    """(len(draws), N)"""
    hits = (ballots.codes[:, draws] == ballots.truth[draws, None]).sum(axis=2)
    return (hits / ballots.size[:, draws]).T


def _outcome(start: Array, supervision: str, cycles: Sequence[tuple[int, ...]], num_generations: int) -> Array:
    """Right, wrong or on the edge, by the binary theory, for starts (Q, N)."""
    if supervision == "ground_truth" or not len(start):
        return (start > 0).astype(float)
    found = np.empty(start.shape)
    for cycle in cycles:
        own = start[:, cycle]
        if len(cycle) < 3:
            found[:, cycle] = (1 + np.sign((own.mean(axis=1, keepdims=True) - 0.5).round(9))) / 2
        else:
            both = np.stack([own, 1 - own], axis=-1)
            found[:, cycle] = predict.forecast(both, range(len(cycle)), num_generations).question_final
    return found


def _chance(counts: Array, supervision: str, cycles: Sequence[tuple[int, ...]], num_generations: int) -> Array:
    if supervision == "ground_truth" or not len(counts):
        return np.ones(counts.shape[:2])
    found = np.empty(counts.shape[:2])
    for cycle in cycles:
        found[:, cycle] = predict.from_counts(counts, cycle, num_generations)
    return found
