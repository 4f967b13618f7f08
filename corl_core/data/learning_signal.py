"""The share of questions that will teach nothing: all K rollouts alike, so every advantage is 0.

With p the probability that a rollout is rewarded, a group of K is alike with probability p^K + (1-p)^K. The average runs over
questions: at the mean p the formula promises too much (Jensen). For two rollouts, p = 0.18 everywhere gives 0.70, and half
the questions at 0, half at 0.36 give 0.77.
"""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

from corl_core import answers
from corl_core.data.files import read_file
from corl_core.data.overlap import normalised
from corl_core.data.questions import DataError, Question
from corl_core.data.tables import Row, as_text

RIGHT = ("accuracy", "is_correct", "correct")


def zero_signal(accuracies: Sequence[float], num_generations: int) -> float:
    """Expected share of groups without signal; one accuracy a question, at least one."""
    return fmean(p**num_generations + (1 - p) ** num_generations for p in accuracies)


def known_accuracies(path: Path, questions: Sequence[Question]) -> list[float]:
    """The accuracy of each training question that a file of rollouts speaks of.

    `path` is a run's folder, or a file with `question_id` or `question`, and one of: `accuracy` (0 to 1), `is_correct`, or
    `completion` (parsed and compared with the question's true answer). Raises DataError.
    """
    by_name = {question.id: question for question in questions} | {normalised(q.question): q for q in questions}
    files = sorted(path.rglob("rollouts/*.parquet")) if path.is_dir() else [path]
    hits: dict[str, list[float]] = defaultdict(list)
    for row in (row for file in files for row in read_file(file).rows):
        name = row.cells.get("question_id") or normalised(as_text(row.cells.get("question")) or "")
        question = by_name.get(name)
        if question is not None and (hit := _hit(row, question, path)) is not None:
            hits[question.id].append(hit)
    if not hits:
        raise DataError(f"rollouts '{path}': no row is about a training question with a known answer; give those of this data")
    return [fmean(values) for values in hits.values()]


def _hit(row: Row, question: Question, path: Path) -> float | None:
    """How right a row is, 0 to 1; None when the truth is unknown."""
    given = next((row.cells[name] for name in RIGHT if row.cells.get(name) is not None), None)
    if given is not None:
        return _fraction(given, row, path)
    if "completion" not in row.cells:
        raise DataError(
            f"rollouts '{path}', {row.where}: no column tells whether it is right; give one of {', '.join(RIGHT)}, completion"
        )
    truth = answers.answer(question.answer) if question.answer else None
    said = answers.parse(str(row.cells["completion"]))
    return None if truth is None else float(said is not None and said.key == truth.key)


def _fraction(value: Any, row: Row, path: Path) -> float:
    words = {"true": 1.0, "false": 0.0}
    try:
        number = words[value.lower()] if isinstance(value, str) and value.lower() in words else float(value)
    except (TypeError, ValueError):
        number = -1.0
    if not 0 <= number <= 1:
        raise DataError(f"rollouts '{path}', {row.where}: accuracy {value!r} is not between 0 and 1")
    return number
