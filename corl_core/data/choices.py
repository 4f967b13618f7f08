"""Multiple choice: the choices become lettered lines under the question, and the gold becomes a letter.

    What is the capital of France?
    A. Lyon
    B. Paris

The gold may be a letter, a choice's label or text, or an index, and a whole column is read alike: as texts when every gold
is the text of one of its choices; else a number is an index, counted from 1 when none is 0 and one is as large as the number
of choices, else from 0.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from string import ascii_uppercase
from typing import Any

from corl_core import answers
from corl_core.data import chat
from corl_core.data.tables import Row, as_text, cell

_MARK = re.compile(r"(?:^|(?<=[\s;,]))\(?([A-Z])[.):：]\s*")
_LETTER = re.compile(r"\(?([A-Za-z])\)?(?:[.):].*)?", re.DOTALL)


@dataclass(frozen=True)
class Choices:
    """The texts of a question's choices in order, and what the source calls them ('1', 'A', …), if anything."""

    texts: tuple[str, ...]
    labels: tuple[str, ...] = ()

    def rendered(self, question: str) -> str:
        """The question with a lettered line for each choice, unless it lists them already."""
        if re.search(rf"\bA[.):]\s*{re.escape(self.texts[0])}", question):
            return question
        lines = [f"{letter}. {text}" for letter, text in zip(ascii_uppercase, self.texts, strict=False)]
        return "\n".join([question, *lines])


def choices_of(row: Row, columns: Sequence[str], answer: str | None) -> Choices | None:
    """A row's choices; None without any. Where the right answer is itself a choice column, the order is shuffled for
    good by the texts, for else the right letter would always be the same."""
    if len(columns) == 1:
        found = _read(cell(row, columns[0]))
    else:
        texts = [text for column in columns if (text := as_text(cell(row, column))) is not None]
        if answer in columns:
            texts.sort(key=lambda text: hashlib.sha256(f"{row.cells.get('id', '')}{text}".encode()).digest())
        found = Choices(tuple(texts))
    return found if found and 2 <= len(found.texts) <= len(ascii_uppercase) else None


def first_index(golds: Sequence[tuple[str, Choices]]) -> int | None:
    """What a column's indices are counted from, 0 or 1; None for a column whose golds are texts."""
    if golds and all(_folded(gold) in map(_folded, choices.texts) for gold, choices in golds):
        return None
    indices = [(int(gold), len(choices.texts)) for gold, choices in golds if gold.isascii() and gold.isdigit()]
    return int(bool(indices) and min(index for index, _ in indices) > 0 and any(index == size for index, size in indices))


def letter(gold: str, choices: Choices, counted_from: int | None) -> str | None:
    """The letter of the right choice, None when the gold names none."""
    place = _place(gold.strip(), choices, counted_from)
    return ascii_uppercase[place] if place is not None and 0 <= place < len(choices.texts) else None


def _place(gold: str, choices: Choices, counted_from: int | None) -> int | None:
    if gold in choices.labels:
        return choices.labels.index(gold)
    texts = [_folded(text) for text in choices.texts]
    if (counted_from is None or len(gold) > 1) and _folded(gold) in texts:
        return texts.index(_folded(gold))
    if match := _LETTER.fullmatch(gold):
        return ascii_uppercase.index(match[1].upper())
    if counted_from is not None and gold.isascii() and gold.isdigit() and int(gold) - counted_from < len(texts):
        return int(gold) - counted_from
    return next((place for place, text in enumerate(texts) if _same(gold, text)), None)


def _same(gold: str, text: str) -> bool:
    first, second = answers.answer(gold), answers.answer(text)
    return _folded(gold) == text or (first is not None and second is not None and first.key == second.key)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split())


def _read(value: Any) -> Choices | None:
    """Choices out of one cell, in any of the shapes that data sets use."""
    if isinstance(value, str):
        value = _spelled(value)
    if isinstance(value, Mapping) and isinstance(value.get("text"), (list, tuple)):
        return Choices(_texts(value["text"]), tuple(map(str, value.get("label") or ())))
    if isinstance(value, Mapping):
        kept = {str(label): text for label, inner in value.items() if (text := as_text(inner)) is not None}
        return Choices(tuple(kept.values()), tuple(kept))
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Mapping):
        labels = [str(item.get("label") or item.get("key") or "") for item in value]
        return Choices(_texts([item.get("text") or item.get("value") or item.get("content") for item in value]), tuple(labels))
    return Choices(_texts(value)) if isinstance(value, (list, tuple)) else None


def _texts(values: Sequence[Any]) -> tuple[str, ...]:
    """The choices' texts, without letters of their own."""
    texts = [as_text(value) or "" for value in values]
    marked = [_MARK.match(text) for text in texts]
    if all(mark and mark[1] == letter for mark, letter in zip(marked, ascii_uppercase, strict=False)):
        texts = [text[mark.end() :] for text, mark in zip(texts, marked, strict=True) if mark]
    return tuple(texts)


def _spelled(text: str) -> Any:
    """A list that a cell spells as text: JSON, Python's repr, 'A. x B. y', or a line each."""
    if text.lstrip()[:1] in ("[", "{") and (found := chat.spelled_list(text)) is not None:
        return found
    marks = list(_MARK.finditer(text))
    if len(marks) >= 2 and [mark[1] for mark in marks] == list(ascii_uppercase[: len(marks)]):
        ends = [mark.start() for mark in marks[1:]] + [len(text)]
        return [text[mark.end() : end].strip(" ;,\n") for mark, end in zip(marks, ends, strict=True)]
    return [line for line in text.splitlines() if line.strip()]
