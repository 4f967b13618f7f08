"""What-if replay: the pseudo-labels that another rule would have given, from the votes that a run has saved.

Rules, each with K' of the K rollouts of a group (the first K', which are a fair draw since rollouts are exchangeable) and
with a smallest vote share, below which a question gets no label:

    received   the labels that the agent really received, as they were: K' and the share do not change them
    vote       the vote of one agent: self-voting for itself, a peer's vote for every other
    pooled     the plurality of all agents' rollouts in one pot; its share is of all parsed answers
    weighted   each agent's vote counts with its vote share s_n; the answer with the greatest sum wins, and its share is
               that sum over Σ s_n. So a unanimous agent outweighs a divided one, whatever its K.

Ties go to the first in cohort order, then in sampling order, or to nobody where the run's votes abstain.
    accuracy = right labels / labelled questions whose truth is known        coverage = labelled questions / all questions
(methods.md 3: pseudo_label_accuracy, labeled_frac.) The rollouts are held fixed: other labels would have trained other
models, so a replay says what a rule would have labelled, not where it would have led.
"""

import numpy as np
import pandas as pd

from corl_core.rollouts.agreement import blocks
from corl_core.rollouts.ballots import Ballots
from corl_core.rollouts.tally import NONE, Array, Tally, tally

RULES = ("received", "vote", "pooled", "weighted")
COUNTS = ["questions", "labelled", "judged", "right"]


def replay(ballots: Ballots, num_votes: int | None = None, min_share: float = 0.0) -> pd.DataFrame:
    """One row a rule, agent and step: rule, agent ("" for pooled and weighted), step and COUNTS.

    `judged` are the labelled questions whose truth is known. `num_votes` None is all of K. Raises ValueError for a
    setting that is none.
    """
    if num_votes is not None and num_votes < 1:
        raise ValueError(f"num_votes={num_votes} must be at least 1; None takes every rollout")
    if not 0 <= min_share <= 1:
        raise ValueError(f"min_share={min_share} must lie between 0 and 1")
    codes = ballots.codes if num_votes is None else ballots.codes[:, :, :num_votes]
    whole = codes.shape == ballots.codes.shape
    votes = ballots.tallies if whole else tuple(tally(one, tie=ballots.tie) for one in codes)
    anyone = ballots.present.any(0)
    rows = []
    for place, agent in enumerate(ballots.agents):
        there = ballots.present[place]
        rows.append(_counted(ballots, "received", agent, ballots.labels[place], there))
        rows.append(_counted(ballots, "vote", agent, _passing(votes[place], min_share), there))
    for rule, cast in (("pooled", _pooled(codes, ballots.tie)), ("weighted", _weighted(votes, ballots.tie))):
        rows.append(_counted(ballots, rule, "", _passing(cast, min_share), anyone))
    return pd.concat(rows, ignore_index=True)


def rates(counts: pd.DataFrame, block_steps: int | None = None) -> pd.DataFrame:
    """accuracy and coverage of each rule, over all steps, or in blocks of so many steps (column step: the last of them).

    accuracy is NaN where nothing was judged.
    """
    keys = ["rule", "agent"]
    if block_steps is not None:
        counts = counts.assign(block=blocks(counts["step"].to_numpy(), block_steps))
        keys.append("block")
    grouped = counts.groupby(keys, sort=False)
    summed = grouped[COUNTS].sum()
    summed["step"] = grouped["step"].max()
    summed["accuracy"] = summed["right"] / summed["judged"].where(summed["judged"] > 0)
    summed["coverage"] = summed["labelled"] / summed["questions"].where(summed["questions"] > 0)
    return summed.reset_index()


def _pooled(codes: Array, tie: str) -> Tally:
    """codes (A, D, V) → one vote a draw over all A·V rollouts, agents one after the other."""
    num_agents, num_draws, width = codes.shape
    return tally(codes.transpose(1, 0, 2).reshape(num_draws, num_agents * width), tie=tie)


def _weighted(votes: tuple[Tally, ...], tie: str) -> Tally:
    ballots = np.stack([cast.vote for cast in votes], axis=1)  # (D, A)
    return tally(ballots, np.stack([cast.share for cast in votes], axis=1), tie)


def _passing(cast: Tally, min_share: float) -> Array:
    """The votes that count as labels (votes.passes), (D,)."""
    return np.where(cast.share >= min_share, cast.vote, NONE)


def _counted(ballots: Ballots, rule: str, agent: str, labels: Array, there: Array) -> pd.DataFrame:
    labelled = (labels != NONE) & there
    facts = {"questions": there, "labelled": labelled, "judged": labelled & ballots.known}
    facts["right"] = facts["judged"] & (labels == ballots.truth)
    steps, place = np.unique(ballots.step, return_inverse=True)
    counts = {name: np.bincount(place, weights=held, minlength=len(steps)).astype(int) for name, held in facts.items()}
    return pd.DataFrame({"rule": rule, "agent": agent, "step": steps, **counts})
