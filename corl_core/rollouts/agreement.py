"""Agreement held against the truth over steps, and one question through training.

Every draw whose truth is known falls into one of five cases for a pair of agents (arXiv 2608.17253, Fig. 2, tells agreement
and accuracy apart; the five cases are their joint distribution):

    agree and right · agree and wrong · only A right · only B right · both wrong, differently

A vote that was not cast is wrong and agrees with nothing (diagnostics.count_pair). Draws for which one of the two is absent
or the truth unknown are left out.
"""

import numpy as np
import pandas as pd

from corl_core.rollouts.ballots import Ballots
from corl_core.rollouts.tally import NONE, Array

CASES = ("agree_right", "agree_wrong", "only_a_right", "only_b_right", "both_wrong_differently")
MAX_POINTS, MIN_POINTS = 120, 8
QUESTIONS_A_POINT = 100  # where there are so many: the share of a hundred has a standard error of at most 0.05


def cases(ballots: Ballots, a: str, b: str) -> Array:
    """The case of each draw for a pair, as its place in CASES; -1 where it is left out. Shape (D,)."""
    one, two = ballots.place(a), ballots.place(b)
    right_a, right_b = ballots.right[one], ballots.right[two]
    agree = (ballots.votes[one] == ballots.votes[two]) & (ballots.votes[one] != NONE)
    found = np.select([agree & right_a, agree, right_a, right_b], [0, 1, 2, 3], 4)
    return np.where(ballots.known & ballots.present[one] & ballots.present[two], found, -1)


def decomposed(ballots: Ballots, a: str, b: str, block_steps: int = 1) -> pd.DataFrame:
    """Share of each case in blocks of steps: first, last (step), num_draws, and CASES, a row a block.

    A block's draws count alike; a block without any draw that counts is not there.
    """
    case = cases(ballots, a, b)
    kept = case >= 0
    block = blocks(ballots.step, block_steps)
    counted = pd.crosstab(block[kept], case[kept]).reindex(columns=range(len(CASES)), fill_value=0)
    span = pd.DataFrame({"block": block, "step": ballots.step}).groupby("block")["step"].agg(first="min", last="max")
    total = counted.sum(axis=1)
    shares = counted.div(total, axis=0).set_axis(CASES, axis=1)
    return span.assign(num_draws=total).join(shares, how="inner").astype({"num_draws": int}).reset_index(drop=True)


def blocks(step: Array, block_steps: int) -> Array:
    """The block of each step when those that occur are cut into stretches of `block_steps`, counted from 0.

    What is left at the end is a block of its own from half a block on; less is too few questions for a point, and joins the last.
    """
    found, place = np.unique(step, return_inverse=True)
    size = max(1, block_steps)
    whole, left = divmod(len(found), size)
    return np.minimum(place // size, max(0, whole - (2 * left < size)))


def usual_block(ballots: Ballots) -> int:
    """Steps a point that make a line readable: QUESTIONS_A_POINT, between MIN_POINTS and MAX_POINTS points."""
    num_steps = len(np.unique(ballots.step))
    enough = -(-QUESTIONS_A_POINT * num_steps // max(1, ballots.num_draws))
    return max(1, -(-num_steps // MAX_POINTS), min(enough, num_steps // MIN_POINTS))


def through(ballots: Ballots, question_id: str) -> pd.DataFrame:
    """`Ballots.table` of one question, in step order: how each agent voted each time it was asked."""
    asked = np.flatnonzero(ballots.question_ids == question_id)
    draws = np.flatnonzero(ballots.question == asked[0]) if len(asked) else np.zeros(0, dtype=int)
    return ballots.table(draws)
