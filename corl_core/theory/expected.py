"""What a group can expect: rewards under each kind of label, groups that teach nothing, and rewards that are right.

p is the probability of a right answer, or of each answer along the last axis where classes are meant.
"""

import numpy as np

from corl_core.theory.binomial import check_probabilities, hits, vote_accuracy

Array = np.ndarray


def own_vote(p: Array | float, num_generations: int) -> Array:
    """E[max(C, K−C)]/K: the reward of answers judged by their own majority (TTRL; right or wrong).

    Never below ½ nor below max(p, 1−p): read as an accuracy it is biased upwards.
    """
    c = np.arange(num_generations + 1)
    return hits(p, num_generations) @ (np.maximum(c, num_generations - c) / num_generations)


def peer_vote(p: Array | float, peer: Array | float, num_generations: int) -> Array:
    """V_K(peer)·p + (1 − V_K(peer))·(1 − p): the reward of answers judged by a peer's majority (Co-RL; right or wrong)."""
    right = vote_accuracy(peer, num_generations)
    return right * p + (1 - right) * (1 - np.asarray(p))


def label_match(p: Array, labels: Array) -> Array:
    """Σ_y π(y) p(y): the reward when the label is drawn from π, independently of the answers; both (..., M).

    It covers every peer, pooled vote or ground truth (π = e_truth gives p itself). With the labels of another question it
    falls to the rate at which the two questions' answers match by chance.
    """
    return (np.asarray(labels) * p).sum(axis=-1)


def zero_signal(p_label: Array | float, num_generations: int) -> Array:
    """p^K + (1−p)^K: the share of groups in which all answers match the label, or none does, so that nothing is learned.

    Convex in p for K ≥ 2, so over questions that differ it is larger than at their mean (Jensen).
    """
    chance = check_probabilities(p_label)
    return chance**num_generations + (1 - chance) ** num_generations


def reward_accuracy(p_label: Array | float, p_truth: Array | float) -> Array:
    """Share of answers whose reward is what the truth would give, under a *wrong* label: 1 − p(label) − p(truth).
    Under a right label it is 1."""
    return 1 - np.asarray(p_label) - p_truth
