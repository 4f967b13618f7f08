"""The questions behind one cell of a matrix: what both models answered, and who was right."""

import numpy as np
import pandas as pd

from corl_core.diversity.answers import NOT_ASKED, Answers, Basis

OUTCOMES = {
    "both_right": "both right",
    "only_a": "only {a} right",
    "only_b": "only {b} right",
    "same_wrong": "both wrong, same answer",
    "other_wrong": "both wrong, different answers",
    "same": "same answer, truth unknown",
    "different": "different answers, truth unknown",
}


def questions(answers: Answers, a: str, b: str, basis: Basis = "first") -> pd.DataFrame:
    """A row a question that both were asked: outcome (a key of OUTCOMES), question, truth, answers, samples.

    For a model beside itself the second column is its second sample, as in `pairs.selves`. `samples_a` and `samples_b` count
    each answer of the K samples ('42 ×5, 41 ×3'), for reading why a vote fell as it did.
    """
    first, second = answers.index(a), answers.index(b)
    codes_a = answers.taken(basis)[first]
    codes_b = answers.taken("first", 1)[second] if a == b else answers.taken(basis)[second]
    asked = np.flatnonzero((codes_a != NOT_ASKED) & (codes_b != NOT_ASKED))
    rows = [
        {
            "outcome": _outcome(codes_a[place], codes_b[place], answers.truths[place]),
            "question_id": answers.questions[place],
            "question": answers.texts[place] or answers.questions[place],
            "truth": _shown(answers, answers.truths[place]),
            "answer_a": _shown(answers, codes_a[place]),
            "answer_b": _shown(answers, codes_b[place]),
            "samples_a": _samples(answers, answers.codes[first, place]),
            "samples_b": _samples(answers, answers.codes[second, place]),
        }
        for place in asked
    ]
    columns = ["outcome", "question_id", "question", "truth", "answer_a", "answer_b", "samples_a", "samples_b"]
    return pd.DataFrame(rows, columns=columns)


def _outcome(a: int, b: int, truth: int) -> str:
    equal = a == b and a >= 0
    if truth < 0:
        return "same" if equal else "different"
    if a == truth or b == truth:
        return "both_right" if a == b else "only_a" if a == truth else "only_b"
    return "same_wrong" if equal else "other_wrong"


def _shown(answers: Answers, code: int) -> str | None:
    return answers.shown[code] if code >= 0 else None


def _samples(answers: Answers, codes: np.ndarray) -> str:
    values, first, counts = np.unique(codes[codes != NOT_ASKED], return_index=True, return_counts=True)
    order = sorted(range(len(values)), key=lambda i: (-counts[i], first[i]))
    return ", ".join(f"{_shown(answers, values[i]) or 'no answer'} ×{counts[i]}" for i in order)
