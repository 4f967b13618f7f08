"""GRPO with K sampled answers a question and step, the noisy process whose mean is `replicator`.

Each agent draws K answers from its softmax policy, votes by plurality with fair ties, and its logits move by η times the
group's mean of advantage × (e_answer − p), with population standard deviation: s on the label and −s shared among the
misses that were drawn, s = √(C(K−C))/K. A group without a hit, without a miss or without a label does not move.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from corl_core.theory.binomial import check_group
from corl_core.theory.plurality import TINY, win_shares, with_silent
from corl_core.theory.replicator import SUPERVISIONS, Supervision

Array = np.ndarray


@dataclass(frozen=True)
class History:
    """What was simulated, S steps: `p` before each step and after the last, `reward` the mean reward of each group."""

    p: Array  # (S + 1, Q, N, M)
    reward: Array  # (S, Q, N)

    @property
    def accuracy(self) -> Array:
        """The probability of the truth: (S + 1, Q, N)."""
        return self.p[..., 0]


def simulate(
    start: Array,
    supervision: Supervision,
    num_generations: int,
    steps: int,
    eta: float = 0.1,
    seed: int = 0,
    teacher_rate: float = 0.01,
    leak: float = 0.0,
) -> History:
    """Trains N agents on Q independent questions from answer probabilities `start` (Q, N, M), class 0 the truth.

    Probabilities that sum to less than 1 leave the rest to answers that do not parse. `leak` in 0..1 is the share of each
    update that is replaced by its mean over questions, a crude stand-in for generalisation, which the theory does not have.
    `teacher_rate`: share of the way to the student's logits that an EMA teacher goes each step.
    """
    if supervision not in SUPERVISIONS:
        raise ValueError(f"supervision={supervision!r} is not known; choose one of {', '.join(SUPERVISIONS)}")
    check_group(num_generations, 2)
    generator = np.random.default_rng(seed)
    full, silent = with_silent(start)
    possible = full > 0
    logits = np.log(np.maximum(full, TINY))
    teacher = logits.copy()
    p, path, rewards = full, [full], []
    for _ in range(steps):
        counts = _draw(generator, p, num_generations)
        votes = counts if supervision != "ema" else _draw(generator, softmax(teacher, axis=-1), num_generations)
        label = _labels(generator, votes, supervision, silent)
        hit = (counts * label).sum(axis=-1)
        rewards.append(hit / num_generations)
        update = eta * _update(counts, label, hit[..., None])
        logits = logits + (1 - leak) * update + leak * update.mean(axis=0)
        teacher = teacher + teacher_rate * (logits - teacher)
        p = softmax(logits, axis=-1) * possible
        path.append(p)
    return History(np.array(path)[..., : np.asarray(start).shape[-1]], np.array(rewards).reshape(steps, *full.shape[:2]))


def _draw(generator: np.random.Generator, p: Array, num_generations: int) -> Array:
    return generator.multinomial(num_generations, p / p.sum(axis=-1, keepdims=True))


def _labels(generator: np.random.Generator, counts: Array, supervision: Supervision, silent: bool) -> Array:
    """One-hot labels (Q, N, M); zeros where no vote was cast."""
    if supervision == "ground_truth":
        return np.broadcast_to(np.eye(counts.shape[-1])[0], counts.shape)
    shares = win_shares(np.ones_like(counts) if supervision == "random" else counts, silent)
    draw = generator.random(shares.shape[:-1])[..., None]
    upto = shares.cumsum(axis=-1)
    label = ((draw < upto) & (draw >= upto - shares)).astype(float)
    return np.roll(label, 1, axis=1) if supervision == "ring" else label


def _update(counts: Array, label: Array, hit: Array) -> Array:
    size = counts.sum(axis=-1, keepdims=True)
    missed = size - hit
    strength = np.sqrt(hit * missed) / size * label.any(axis=-1, keepdims=True)
    return strength * (label - counts * (1 - label) / np.maximum(missed, 1))
