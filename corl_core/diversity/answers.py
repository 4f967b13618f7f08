"""The answers of M models to Q questions, K samples each, as integer codes of canonical keys.

Two answers are the same exactly when their codes are equal and not negative, as `corl_core/answers.py` says.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np

NO_ANSWER = -1  # sampled, and nothing could be parsed; for a truth: unknown
NOT_ASKED = -2  # no sample there is

Basis = Literal["first", "vote"]
BASES: dict[Basis, str] = {
    "first": "the first sample of each question, as the paper measures (arXiv 2608.17253, App. A)",
    "vote": "the majority vote over the samples of each question, which is what an agent receives",
}


@dataclass(frozen=True)
class Answers:
    """`codes` (M, Q, K) and `truths` (Q,) index `keys`; `shown[code]` is that answer as it was written first."""

    models: tuple[str, ...]
    questions: tuple[str, ...]  # (Q,) ids
    codes: np.ndarray  # (M, Q, K)
    truths: np.ndarray  # (Q,)
    keys: tuple[str, ...]
    shown: tuple[str, ...]
    texts: tuple[str, ...]  # (Q,) the questions' text; '' where the source has none
    notes: tuple[str, ...] = ()  # what a reader should know, in sentences

    @property
    def num_samples(self) -> int:
        """K: the most samples any model has of a question."""
        return self.codes.shape[2]

    @property
    def num_labelled(self) -> int:
        """Questions whose truth is known."""
        return int((self.truths >= 0).sum())

    @cached_property
    def votes(self) -> np.ndarray:
        """(M, Q) the plurality of each group, ties to the answer sampled first (as `votes.vote`)."""
        return np.stack([_votes(codes) for codes in self.codes])

    def taken(self, basis: Basis, sample: int = 0) -> np.ndarray:
        """(M, Q) one answer a question: the vote, or the sample with that number."""
        return self.votes if basis == "vote" else self.codes[:, :, sample]

    def index(self, model: str) -> int:
        """The model's place. Raises KeyError."""
        try:
            return self.models.index(model)
        except ValueError as error:
            raise KeyError(model) from error

    def only(self, models: Sequence[str]) -> "Answers":
        """The same questions with these models alone, in this order."""
        places = [self.index(model) for model in models]
        return Answers(
            tuple(models), self.questions, self.codes[places], self.truths, self.keys, self.shown, self.texts, self.notes
        )


def _votes(codes: np.ndarray) -> np.ndarray:
    """(Q, K) → (Q,). The first position with the highest count holds the answer that was sampled first among the tied."""
    parsed = codes >= 0
    counts = ((codes[:, :, None] == codes[:, None, :]) & parsed[:, :, None]).sum(2)  # (Q, K)
    winner = np.take_along_axis(codes, counts.argmax(1)[:, None], 1)[:, 0]
    nobody = np.where((codes == NOT_ASKED).all(1), NOT_ASKED, NO_ANSWER)
    return np.where(parsed.any(1), winner, nobody)


class Builder:
    """Collects answers one by one and makes the arrays; answers of one (model, question) are its samples, in order."""

    def __init__(self) -> None:
        self._models: dict[str, int] = {}
        self._questions: dict[str, int] = {}
        self._texts: list[str] = []
        self._codes: dict[str, int] = {}
        self._shown: list[str] = []
        self._rows: list[tuple[int, int, int]] = []  # model, question, code
        self._truths: dict[int, int] = {}

    def code(self, key: str, shown: str) -> int:
        """The number of a canonical key; `shown` is how it is written here."""
        code = self._codes.setdefault(key, len(self._codes))
        if code == len(self._shown):
            self._shown.append(shown)
        return code

    def question(self, question_id: str, text: str = "") -> int:
        """The question's place; the first text that is not empty is its text."""
        place = self._questions.setdefault(question_id, len(self._questions))
        if place == len(self._texts):
            self._texts.append(text)
        elif text and not self._texts[place]:
            self._texts[place] = text
        return place

    def add(self, model: str, question: int, code: int) -> None:
        self._rows.append((self._models.setdefault(model, len(self._models)), question, code))

    def truth(self, question: int, code: int) -> bool:
        """Notes a question's truth; False when it is another one than before."""
        return self._truths.setdefault(question, code) == code

    def answers(self, notes: Sequence[str] = ()) -> Answers:
        rows = np.array(self._rows, dtype=np.int64).reshape(-1, 3)
        group = rows[:, 0] * max(1, len(self._questions)) + rows[:, 1]
        order = np.argsort(group, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(group[order]) != 0]) if len(order) else np.zeros(0, int)
        sizes = np.diff(np.r_[starts, len(order)])
        sample = np.arange(len(order)) - np.repeat(starts, sizes)  # the place of each answer in its group
        codes = np.full((len(self._models), len(self._questions), int(sizes.max(initial=1))), NOT_ASKED)
        codes[rows[order, 0], rows[order, 1], sample] = rows[order, 2]
        truths = np.full(len(self._questions), NO_ANSWER)
        for question, code in self._truths.items():
            truths[question] = code
        return Answers(
            tuple(self._models), tuple(self._questions), codes, truths, tuple(self._codes), tuple(self._shown),
            tuple(self._texts), tuple(notes),
        )  # fmt: skip
