"""What training will do, from how often each model gives each answer today: no GPU, no training.

Input: for each question, the answer probabilities of each model, `distributions` of shape (Q, N, M). Class 0 is the truth;
classes 1.. are wrong answers, and one class means the same answer for every model of a question. A row may sum to less than
1: the rest are answers that do not parse. Estimate a row by counting: count / number of answers sampled.

The prediction is the mean-field flow of `replicator`, followed to consensus for each question alone. It therefore knows
nothing of generalisation: a model that never gave an answer never will, and no question helps another. A start on the edge
between two outcomes (frequent among counts of few answers) counts as half right.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corl_core.theory.binomial import check_group
from corl_core.theory.plurality import MAX_OUTCOMES, num_outcomes, vote_distribution, win_shares, with_silent
from corl_core.theory.replicator import evolve, velocity

Array = np.ndarray
HORIZON = 300.0  # units of time, one GRPO step at η = 1 each; most questions settle within 15
NUDGE = 0.01  # logits by which the truth is moved up, then down: a start on the edge counts one half
SETTLED = 0.8  # probability of its strongest answer at which an agent's mind is made up
STILL = 1e-5  # speed below which a question does not move any more: no agent ever gives its label
OUTCOMES = 800  # compositions an update may enumerate: 4 classes and silence at K = 8
DRAW_OUTCOMES = 170  # and for each of many draws: 3 classes and silence at K = 8
DRAWS = 5000  # starts that `from_counts` follows
LEAST_CLASSES = 3  # truth, one wrong answer, and the rest
CHUNKS = (4.0, 8.0, 14.0, 30.0, 80.0)  # when decided questions are put aside
TOLERANCE = 1e-3  # of the logits


@dataclass(frozen=True)
class Forecast:
    """Accuracy of each agent of a cycle, in the cycle's order: shapes (n,) and, per question, (Q, n)."""

    start: Array  # (n,) expected accuracy of one sampled answer before training
    final: Array  # (n,) and after it
    question_start: Array  # (Q, n)
    question_final: Array  # (Q, n)


def final_accuracy(distributions: Array, cycle: Sequence[int], num_generations: int = 8) -> Array:
    """Expected accuracy after training, for each agent of `cycle`, in the cycle's order: (n,).

    `cycle` lists agents (places on axis 1 of `distributions`) in ring order: each is rewarded by the vote of the one before,
    the first by that of the last. (i,) is a model that trains on its own votes, (i, j) a mutual pair, (i, j, k) a ring.
    `num_generations` is the size K of a group, at most 198. Raises ValueError for probabilities that are none, for a cycle
    that names an agent twice, and for no question.

    >>> final_accuracy([[[0.9, 0.1], [0.2, 0.8]]], (0, 1)).tolist()   # .9 + .2 > 1
    [1.0, 1.0]
    """
    return forecast(distributions, cycle, num_generations).final


def forecast(distributions: Array, cycle: Sequence[int], num_generations: int = 8) -> Forecast:
    """`final_accuracy` with its parts: before and after, over all questions and for each of them."""
    given = _checked(distributions, cycle, check_group(num_generations, 2))
    if not len(cycle):
        raise ValueError("cycle=(): name at least one agent")
    start = given[:, list(cycle)]
    if len(cycle) == 1:
        after = win_shares(start)[..., 0]  # an own vote locks on the mode, exactly: the order of the answers never changes
    else:
        rows, back = np.unique(merge_rare(start, num_generations).round(9), axis=0, return_inverse=True)
        ends = [_settle(_nudged(rows, side), num_generations)[..., 0] for side in (NUDGE, -NUDGE)]
        after = np.mean(ends, axis=0)[back.ravel()]
    return Forecast(start[..., 0].mean(axis=0), after.mean(axis=0), start[..., 0], after)


def from_counts(counts: Array, cycle: Sequence[int], num_generations: int = 8, seed: int = 0) -> Array:
    """Final accuracy per question, (Q, n), averaged over what a few counted answers leave open.

    `counts` (Q, N, M) as `distributions`, but numbers of answers; an agent's answers may sum to less than another's, the rest
    did not parse. The probabilities are drawn from Dirichlet(count + ½) over the answers that anybody gave, the truth, and
    one wrong answer at least: 64 draws, or as many of 5 to 64 as make DRAWS in all, since equal counts are drawn once. A
    question's value is then the chance that it ends right: what calibration needs.
    """
    given = np.asarray(counts, dtype=float)
    _checked(given / max(given.sum(axis=-1).max(), 1), cycle, check_group(num_generations, 2))
    own = given[:, list(cycle)]
    rest = (own.sum(axis=-1).max() - own.sum(axis=-1))[..., None]  # did not parse
    rows, back = np.unique(np.concatenate([_sorted(own), rest], axis=-1), axis=0, return_inverse=True)
    open_ = (rows[..., :-1] > 0).any(axis=1, keepdims=True)
    open_[..., :2] = True
    prior = np.concatenate([0.5 * np.broadcast_to(open_, rows[..., :-1].shape), np.zeros_like(rows[..., -1:])], axis=-1)
    num_draws = 64 if len(cycle) == 1 else int(np.clip(DRAWS / len(rows), 5, 64))
    drawn = np.random.default_rng(seed).gamma(rows + prior, size=(num_draws, *rows.shape))
    p = (drawn / drawn.sum(axis=-1, keepdims=True))[..., :-1].reshape(-1, *own.shape[1:])
    if len(cycle) == 1:
        ends = win_shares(p)[..., 0]
    else:
        ends = _settle(merge_rare(p, num_generations, DRAW_OUTCOMES), num_generations)[..., 0]
    return ends.reshape(num_draws, len(rows), len(cycle)).mean(axis=0)[back.ravel()]


def pseudo_label_accuracy(distributions: Array, num_generations: int = 8) -> Array:
    """The chance that each agent's vote of K is right, averaged over questions: (N,). That is the accuracy of the
    pseudo-labels on every edge that leaves the agent. Answers too rare to be enumerated count as ones that never win."""
    given = _sorted(_checked(distributions, (), check_group(num_generations)))
    used = given[..., : max(2, int((given > 0).any(axis=(0, 1)).nonzero()[0].max(initial=0)) + 1)]
    return vote_distribution(merge_rare(used, num_generations, MAX_OUTCOMES), num_generations)[..., 0].mean(axis=0)


def merge_rare(p: Array, num_generations: int, most: int = OUTCOMES) -> Array:
    """(Q, N, M) with as many classes as `most` compositions afford: the truth, then each question's wrong answers, those first
    to which any agent gives the most. The others are left out, as answers that never win a vote."""
    affordable = LEAST_CLASSES
    while num_outcomes(num_generations, affordable + 1) <= most:
        affordable += 1
    return _sorted(p)[..., : affordable - 1]  # one place is for what is left out or does not parse


def _sorted(p: Array) -> Array:
    """The truth, then each question's wrong answers by the largest share that any agent gives them."""
    strongest = np.argsort(-p[..., 1:].max(axis=1), axis=-1, kind="stable") + 1
    places = np.concatenate([np.zeros((len(p), 1), dtype=int), strongest], axis=1)
    return np.take_along_axis(p, places[:, None, :], axis=-1)


def _nudged(p: Array, logits: float) -> Array:
    """p with the truth's odds moved by so many logits."""
    moved = p.copy()
    moved[..., 0] *= np.exp(logits)
    return moved / (1 + moved[..., :1] - p[..., :1])


def _settle(start: Array, num_generations: int) -> Array:
    """The flow of a ring from (Q, n, M) until every question is decided, or stands still, or time is up at HORIZON.

    Decided questions are put aside on the way, so that few take long; a question has only the classes that it uses.
    """
    state, clock = start.copy(), 0.0
    used = 1 + (start[..., 1:] > 0).any(axis=1).sum(axis=-1)  # (Q,) the truth, and the wrong answers, which come first
    for until in (*CHUNKS, HORIZON):
        moving = ~_decided(state)
        for classes in np.unique(used[moving]):
            rows = np.flatnonzero(moving & (used == classes))
            now = state[rows, :, :classes]
            speed = np.abs(velocity(now, "ring", num_generations)).max(axis=(1, 2))
            rows, now = rows[speed > STILL], now[speed > STILL]
            if len(rows):
                span = np.array([clock, until])
                end = evolve(now.astype(np.float32), "ring", num_generations, span, tolerance=TOLERANCE, first_step=4.0)[-1]
                state[rows, :, :classes] = end
        clock = until
    decided = _decided(state)
    state[decided] = np.eye(start.shape[-1])[state[decided].argmax(axis=-1)]
    return state


def _decided(p: Array) -> Array:
    """Questions on which every agent is sure, and of the same answer: (Q,)."""
    best = p.argmax(axis=-1)
    return (p.max(axis=-1) >= SETTLED).all(axis=1) & (best == best[:, :1]).all(axis=1)


def _checked(distributions: Array, cycle: Sequence[int], num_generations: int) -> Array:
    given = np.asarray(distributions, dtype=float)
    if given.ndim != 3 or not given.size:
        raise ValueError(f"distributions of shape {given.shape}: give (questions, agents, answers), with at least one of each")
    with_silent(given)
    agents = given.shape[1]
    bad = [agent for agent in cycle if not 0 <= agent < agents]
    if bad:
        raise ValueError(f"cycle={tuple(cycle)}: there is no agent {bad[0]}; the agents are 0 to {agents - 1}")
    if len(set(cycle)) != len(cycle):
        raise ValueError(f"cycle={tuple(cycle)}: an agent stands on a ring once")
    return given
