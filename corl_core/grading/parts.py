"""What the shapes of answers share: a key with its outcome, the key of a text, and splitting outside brackets."""

import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from corl_core.grading.workers import Outcome


class Keyed(NamedTuple):
    """A canonical key, and how it came about: with `timeout` and `error` it is the text."""

    key: str
    outcome: Outcome = "parsed"


Part = Callable[[str], Keyed]  # the key of a part of an answer
_QUOTED = re.compile(r"'[^']+'|\"[^\"]+\"")


def text_key(text: str) -> str:
    """The key of what is no mathematics: words without their case, LaTeX without needless spaces."""
    if re.search(r"[\\^_=+]", text):
        return re.sub(r"(?<!\w)\s+|\s+(?!\w)", "", text)
    text = text[1:-1] if _QUOTED.fullmatch(text) else text
    return re.sub(r"\b([ap])\.\s?m\b\.?", r"\1m", " ".join(text.casefold().split()))


def worst(found: Iterable[Keyed]) -> Outcome:
    return max((part.outcome for part in found), key=("parsed", "timeout", "error").index, default="parsed")


def split(text: str, separator: str) -> list[str]:
    """The stripped parts between separators (a regular expression) that stand outside all brackets."""
    parts, start, level = [], 0, 0
    for match in re.finditer(rf"[()\[\]{{}}]|{separator}", text):
        if match[0] in "([{":
            level += 1
        elif match[0] in ")]}":
            level -= 1
        elif level == 0:
            parts.append(text[start : match.start()].strip())
            start = match.end()
    return [*parts, text[start:].strip()]


def enclosed(text: str) -> bool:
    """Whether the first bracket closes at the very end, as in (1,2] and not in (1)(2)."""
    level = 0
    for index, character in enumerate(text):
        level += (character in "([{") - (character in ")]}")
        if level <= 0:
            return index == len(text) - 1 and level == 0 and index > 0
    return False
