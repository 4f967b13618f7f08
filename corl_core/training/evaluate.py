"""Held-out evaluation: sampled accuracy and majority accuracy, at the training temperature.

Its random numbers are its own, so evaluating more or less often changes no rollout.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Literal

from corl_core.answers import answer, parse
from corl_core.data.questions import Question
from corl_core.training.ranks import Ranks
from corl_core.training.rollout import Sampler
from corl_core.votes import Vote, vote

ROWS_AT_ONCE = 512  # completions sampled together


@dataclass(frozen=True)
class Evaluation:
    """Held-out questions with their votes, and the metrics that follow."""

    questions: tuple[Question, ...]
    hits: tuple[float | None, ...]  # share of the samples that are right; None: truth unknown
    votes: tuple[Vote, ...]

    @property
    def truths(self) -> list[str | None]:
        return [truth_key(question.answer) for question in self.questions]

    def metrics(self) -> dict[str, float]:
        """`eval/accuracy` and `eval/majority_accuracy`, overall and by kind; {} when no truth is known."""
        groups: dict[str, list[tuple[float, float]]] = defaultdict(list)
        for question, hit, cast, truth in zip(self.questions, self.hits, self.votes, self.truths, strict=True):
            if hit is None:
                continue
            row = (hit, float(cast.key == truth))
            groups[""].append(row)
            if question.kind is not None:
                groups[f"/{question.kind}"].append(row)
        accuracy = {f"eval/accuracy{kind}": fmean(row[0] for row in rows) for kind, rows in groups.items()}
        majority = {f"eval/majority_accuracy{kind}": fmean(row[1] for row in rows) for kind, rows in groups.items()}
        return accuracy | majority


def truth_key(text: str | None) -> str | None:
    """Canonical key of a true answer; None when there is none to speak of."""
    truth = answer(text) if text is not None else None
    return truth.key if truth else None


def evaluate(
    sampler: Sampler, questions: Sequence[Question], prompts: Sequence[str], num_samples: int, seed: int,
    tie: Literal["first", "abstain"] = "first", ranks: Ranks | None = None,
) -> Evaluation:  # fmt: skip
    """Samples `num_samples` completions of each prompt, votes as training does, and grades both. Ranks take turns at the batches,
    so several find what one would."""
    ranks = ranks or Ranks()
    found: list[tuple[int, float | None, Vote]] = []  # by question
    at_once = max(1, ROWS_AT_ONCE // num_samples)
    for start in range(at_once * ranks.rank, len(questions), at_once * ranks.size):
        texts = sampler.sample(list(prompts[start : start + at_once]), num_samples, seed + start).texts
        for index, question in enumerate(questions[start : start + at_once]):
            answers = [parse(text) for text in texts[index * num_samples : (index + 1) * num_samples]]
            truth = truth_key(question.answer)
            right = [float(got is not None and got.key == truth) for got in answers]
            found.append((start + index, None if truth is None else fmean(right), vote(answers, tie)))
    found = sorted(ranks.gather(found), key=lambda row: row[0])
    return Evaluation(tuple(questions), tuple(hit for _, hit, _ in found), tuple(cast for *_, cast in found))
