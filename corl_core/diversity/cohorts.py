"""Which cohorts to train: pairs and rings of three, ranked by the accuracy that the theory predicts after training.

Each question is followed alone to consensus by the mean-field flow (`corl_core/theory/predict.py`), from how often each model
gave each answer; nothing is generalised from one question to another. `alone` is the same for a model that trains on its own
votes. Two warnings are consequences of the theory: peers amplify the mean of the cohort, so below one half they make it worse;
and a weak peer can drag a strong model down. The third is what real training showed (`python -m corl_core bench pairs`): with a
model that is mostly wrong, cohorts fall further than predicted, since what is learned on one question spreads to others.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np

from corl_core.diversity.answers import NOT_ASKED, Answers
from corl_core.diversity.pairs import Interval, interval

if TYPE_CHECKING:
    from corl_core.theory.predict import Forecast

MIN_SAMPLES = 2  # one answer a question does not tell how sure a model is
FEW_SAMPLES = 8  # below this, a note
RESAMPLES = 1_000
MOST_RINGS = 120
AT_ONCE = 40  # cohorts predicted together
HURT = 0.005  # a loss of accuracy smaller than this is not worth a warning


@dataclass(frozen=True)
class Cohort:
    """A ring of models, each rewarded by the one before it; two of them reward each other. Accuracies in that order."""

    models: tuple[str, ...]
    num_questions: int
    start: tuple[float, ...]  # of a sampled answer, today
    alone: tuple[float, ...]  # predicted after training on own votes
    final: tuple[float, ...]  # predicted after training in this cohort
    interval: Interval | None  # of the mean final accuracy, over questions

    @property
    def mean_final(self) -> float:
        return fmean(self.final)

    @property
    def gain(self) -> float:
        """Mean final accuracy above that of the same models alone."""
        return self.mean_final - fmean(self.alone)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against this cohort, in sentences."""
        told = []
        if fmean(self.start) < 0.5:
            told.append(f"the mean accuracy is {fmean(self.start):.2f}, under one half: peers amplify the mean, downwards too")
        for model, start, alone, final in zip(self.models, self.start, self.alone, self.final, strict=True):
            if start < 0.5:
                told.append(
                    f"'{model}' is right in {start:.2f} of its answers, under one half: what it teaches wrongly can spread to "
                    "other questions, which the prediction leaves out"
                )
            if final < start - HURT:
                told.append(f"'{model}' would be dragged down, from {start:.2f} to {final:.2f}")
            elif final < alone - HURT:
                told.append(f"'{model}' would do better alone: {alone:.2f} instead of {final:.2f}")
        return tuple(told)


def why_not(answers: Answers) -> str:
    """Why nothing can be predicted; '' when it can."""
    if not answers.num_labelled:
        return "accuracy after training is predicted from answers whose truth is known, and there is none"
    if answers.num_samples < MIN_SAMPLES:
        return (
            "accuracy after training needs several samples a question, which tell how sure each model is; "
            f"there is one (sample {FEW_SAMPLES} or more)"
        )
    return ""


class Forecaster:
    """Predictions from one set of answers; `num_generations` is the size K of a group in training."""

    def __init__(self, answers: Answers, num_generations: int = 8, seed: int = 0):
        self._answers, self._k, self._seed = answers, num_generations, seed
        self._alone: dict[int, np.ndarray] = {}

    def ranked(self, cycles: Sequence[Sequence[int]]) -> list[Cohort]:
        """The cohorts, all of one size, the best mean final accuracy first; of equal ones the one whose worst agent is better.
        A cohort without a labelled question that was asked of all its models is left out."""
        made = [cohort for chunk in range(0, len(cycles), AT_ONCE) for cohort in self._cohorts(cycles[chunk : chunk + AT_ONCE])]
        return sorted(made, key=lambda cohort: (-round(cohort.mean_final, 6), -min(cohort.final)))

    def _cohorts(self, cycles: Sequence[Sequence[int]]) -> Iterator[Cohort]:
        """Predicted together, for equal questions of different cohorts are followed once."""
        rows = [np.flatnonzero(self._asked[list(cycle)].all(0)) for cycle in cycles]
        chosen = [(cycle, own) for cycle, own in zip(cycles, rows, strict=True) if len(own)]
        if not chosen:
            return
        stacked = np.concatenate([self._distributions[own][:, list(cycle)] for cycle, own in chosen])
        made = self._forecast(stacked, tuple(range(stacked.shape[1])))
        ends = np.cumsum([len(own) for _, own in chosen])[:-1]
        for (cycle, own), start, final in zip(
            chosen, np.split(made.question_start, ends), np.split(made.question_final, ends), strict=True
        ):
            alone = [float(self._alone_final(place)[own].mean()) for place in cycle]
            low_high = interval(_resampled_means(final.mean(1), self._seed))
            models = tuple(self._answers.models[place] for place in cycle)
            yield Cohort(models, len(own), _means(start), tuple(alone), _means(final), low_high)

    def _forecast(self, rows: np.ndarray, cycle: tuple[int, ...]) -> "Forecast":
        from corl_core.theory.predict import forecast  # imports scipy's integrator, which the matrices do not need

        return forecast(rows, cycle, self._k)

    def _alone_final(self, place: int) -> np.ndarray:
        """(Q,) predicted accuracy on each question after training on own votes; 0 where it was not asked."""
        if place not in self._alone:
            final, rows = np.zeros(len(self._asked[place])), np.flatnonzero(self._asked[place])
            final[rows] = self._forecast(self._distributions[rows], (place,)).question_final[:, 0]
            self._alone[place] = final
        return self._alone[place]

    @cached_property
    def _distributions(self) -> np.ndarray:
        return distributions(self._answers)

    @cached_property
    def _asked(self) -> np.ndarray:
        """(M, Q) whether the model was asked, on questions with known truth."""
        return (self._answers.codes != NOT_ASKED).any(2) & (self._answers.truths >= 0)


def pair_cycles(num_models: int) -> list[tuple[int, ...]]:
    return list(combinations(range(num_models), 2))


def ring_cycles(num_models: int) -> list[tuple[int, ...]]:
    """Rings of three, in both directions, for they differ: who rewards whom is turned round. At most MOST_RINGS."""
    both = [ring for a, b, c in combinations(range(num_models), 3) for ring in ((a, b, c), (a, c, b))]
    return both[:MOST_RINGS]


def distributions(answers: Answers) -> np.ndarray:
    """(Q, M, C) share of each model's samples that gave each answer; class 0 is the truth, the others are a question's wrong
    answers in the order of first appearance. What could not be read is missing from the sum. Rows of unknown truth are 0."""
    codes = answers.codes.transpose(1, 0, 2)  # (Q, M, K)
    asked = (codes != NOT_ASKED).sum(2)  # (Q, M)
    classes = [_classes(group, truth) for group, truth in zip(codes, answers.truths, strict=True)]
    made = np.zeros((len(codes), codes.shape[1], max((len(found) for found in classes), default=1)))
    for question, found in enumerate(classes):
        for place, code in enumerate(found):
            made[question, :, place] = (codes[question] == code).sum(1)
    return made / np.maximum(asked, 1)[:, :, None]


def _classes(group: np.ndarray, truth: int) -> list[int]:
    if truth < 0:
        return []
    given = dict.fromkeys(code for code in group.ravel().tolist() if code >= 0)
    return [int(truth), *(code for code in given if code != truth)]


def _means(values: np.ndarray) -> tuple[float, ...]:
    return tuple(map(float, values.mean(0)))


def _resampled_means(values: np.ndarray, seed: int) -> np.ndarray:
    """(RESAMPLES,) means of the values (Q,) of as many questions drawn with replacement; the same draws for every cohort."""
    rng = np.random.default_rng([seed, len(values)])
    return np.concatenate([rng.choice(values, (100, len(values))).mean(1) for _ in range(RESAMPLES // 100)])
