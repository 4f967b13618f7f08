"""Paraphrases: the same question in other words, with the same answer, row by row (the paper's 'different family+').

Here are the prompt that asks a model for one, what counts as a failed rewrite, and the audit. A rewrite that fails leaves the
row without a paraphrase; it never drops the row. Asking follows Co-rewarding (arXiv 2508.00410): the rewrite stands between
two marks.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal

from corl_core.data.overlap import normalised
from corl_core.data.questions import Question

PROMPT = """Rewrite the question below in other words, so that it describes another scene or uses another phrasing but asks \
for exactly the same answer. Keep every number, name of a variable, formula, choice and condition. Do not solve it. \
Write only the rewritten question, between RESULT_START and RESULT_END.

Question:
{question}"""
_RESULT = re.compile(r"RESULT_START(.*?)RESULT_END", re.DOTALL)
_NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?")
_ONES = """zero one two three four five six seven eight nine ten
eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"""
_TENS = """twenty thirty forty fifty sixty seventy eighty ninety"""
_WORDS = {word: str(number) for number, word in enumerate(_ONES.split())}
_WORDS |= {word: str(10 * tens) for tens, word in enumerate(_TENS.split(), start=2)}

Generate = Callable[[list[str], int], list[str]]  # (questions, attempt) → what a model answers to PROMPT with each


@dataclass(frozen=True)
class Pair:
    """A question beside its paraphrase. `lost` and `added` are numbers that only one of them has."""

    place: str
    question: str
    paraphrase: str
    lost: tuple[str, ...]
    added: tuple[str, ...]

    @property
    def flagged(self) -> bool:
        """Whether the numbers differ, so that the answer may."""
        return bool(self.lost or self.added)

    def change(self) -> str:
        """The numbers that differ, in words; '' when none do."""
        parts = [f"lost {', '.join(self.lost)}" if self.lost else "", f"added {', '.join(self.added)}" if self.added else ""]
        return "; ".join(filter(None, parts))


@dataclass
class Rewrites:
    """Paraphrases in row order, None where every attempt failed, and why attempts failed last."""

    texts: list[str | None] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)


def audit(questions: Sequence[Question], places: Sequence[str] = ()) -> list[Pair]:
    """Every question that has a paraphrase, beside it; the flagged ones first."""
    pairs = [
        pair(question, question.paraphrase, places[row] if places else f"question {row + 1}")
        for row, question in enumerate(questions)
        if question.paraphrase is not None
    ]
    return sorted(pairs, key=lambda found: not found.flagged)


def pair(question: Question, paraphrase: str, place: str = "") -> Pair:
    """One pair. A number may be repeated, or written as a word up to ninety, without being flagged."""
    mine, its = _numbers(question.question), _numbers(paraphrase)
    lost, added = mine - its - _spelled(paraphrase), its - mine - _spelled(question.question)
    return Pair(place, question.question, paraphrase, tuple(sorted(lost)), tuple(sorted(added)))


def rewrite(questions: Sequence[Question], generate: Generate, attempts: int) -> Rewrites:
    """Asks for a paraphrase of each question, again for those that failed, at most `attempts` times."""
    done = Rewrites([None] * len(questions))
    why: dict[int, str] = dict.fromkeys(range(len(questions)), "no attempt")
    for attempt in range(attempts):
        rows = sorted(why)
        if not rows:
            break
        completions = generate([questions[row].question for row in rows], attempt)
        for row, completion in zip(rows, completions, strict=True):
            text, why[row] = read(completion), ""
            why[row] = failure(questions[row], text)
            if not why[row]:
                done.texts[row] = text
        why = {row: reason for row, reason in why.items() if reason}
    done.failures.update(why.values())
    return done


def read(completion: str) -> str | None:
    """What a completion gives between the marks; None when it gives nothing."""
    found = _RESULT.findall(completion)
    return found[-1].strip() or None if found else None


def failure(question: Question, text: str | None) -> str:
    """Why a rewrite cannot be used; '' when it can."""
    if text is None:
        return "nothing between RESULT_START and RESULT_END"
    if normalised(text) == normalised(question.question):
        return "the same words again"
    return "its numbers changed" if pair(question, text).flagged else ""


def _numbers(text: str) -> set[str]:
    return {f"{Decimal(number.replace(',', '')).normalize():f}" for number in _NUMBER.findall(text)}


def _spelled(text: str) -> set[str]:
    return {_WORDS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _WORDS}
