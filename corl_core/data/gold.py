"""The true answer in an answer cell, which may be a bare answer or a whole worked solution.

In this order: the last `<answer>…</answer>`; what follows the last `####` (GSM8K); the last box; an answer announced on the
last line ('A: 18', 'The answer is 18.'); the cell itself, unless it is prose. Prose without any of these, and words that stand
for an answer somewhere else ('see figure', 'proof omitted', '?'), say nothing parsable: the question is unlabelled, never wrong.
Prose is what `is_prose` says; names (New York), amounts (5 miles per hour) and dates (June 20) are answers.
"""

import re
from typing import Any

from corl_core import answers
from corl_core.data import chat
from corl_core.data.tables import as_text

MOST_WORDS = 5
"""A cell with more words than this is prose, not an answer; words inside LaTeX commands do not count."""
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)
_ANNOUNCED = re.compile(r"(?:^A:|\banswer(?:\s+is)?\s*:|\banswer\s+is)\s*(\S.*)$", re.IGNORECASE)
_WORD = re.compile(r"(?<!\\)\b[^\W\d_]{2,}")
_ELSEWHERE = re.compile(
    r"(?:see|refer to|cf\.?)\s.*|proof|.*\bomitted\.?|tbd|todo|unknown|no answer|[-–—?.…_*\s]+", re.IGNORECASE | re.DOTALL
)
_SENTENCE = re.compile(
    r"(?:I|We|He|She|It|They|You|There|So|Thus|Therefore|Hence|This|That|Then)"
    r"(?:'\w+)?,?\s+[A-Za-z']+(?:\s|[.!?]|$)"
)
_WORDS_THEN_DIGIT = re.compile(r"[A-Za-z' ,]*\d")
_WHOLE = re.compile(r"([+-]?\d+)\.0+")


def gold_text(value: Any) -> str | None:
    """What an answer cell says, before anybody parses it: None when the cell is empty."""
    messages = chat.messages(value) if not isinstance(value, str) else None
    return as_text(chat.reply(messages) if messages else value)


def readable(text: str) -> str | None:
    """The answer that a cell's text gives, None when it gives none that parses."""
    found = _extract(text)
    if found is None or _ELSEWHERE.fullmatch(found.strip()):
        return None
    if whole := _WHOLE.fullmatch(found.strip()):
        found = whole[1]
    parsed = answers.answer(found)
    return parsed.text if parsed else None


def _extract(text: str) -> str | None:
    if tagged := _TAGGED.findall(text):
        text = tagged[-1].strip()
    if "####" in text:
        after = text.rpartition("####")[2].strip()
        return after.splitlines()[0] if after else None
    if "boxed" in text:
        boxed = answers.parse(text)
        return boxed.text if boxed else None
    lines = text.strip().splitlines()
    if lines and (announced := _ANNOUNCED.search(lines[-1].strip())):
        return announced[1].rstrip(".")
    return None if is_prose(text.strip()) else text.strip()


def is_prose(text: str) -> bool:
    """A sentence: many words, or several that end like one, start like one, or stand before a number (We get 3)."""
    words = len(_WORD.findall(text))
    if words > MOST_WORDS or _SENTENCE.match(text):
        return True
    amount = re.match(r"[^A-Za-z]*\d", text) is not None
    ends = re.search(r"[A-Za-z]{2}[.!?]$", text) is not None
    return (ends and words >= (3 if amount else 2)) or (not amount and words >= 2 and _WORDS_THEN_DIGIT.match(text) is not None)
