"""The true answer in an answer cell, which may be a bare answer or a whole worked solution.

In this order: the last `<answer>…</answer>`; what follows the last `####` (GSM8K); the last box; an answer announced on the
last line ('A: 18', 'The answer is 18.'); the cell itself, unless it is prose. Prose without any of these, and words that stand
for an answer somewhere else ('see figure', 'proof omitted', '?'), say nothing parsable: the question is unlabelled, never wrong.
"""

import re
from typing import Any

from corl_core import answers
from corl_core.data import chat
from corl_core.data.tables import as_text

MOST_WORDS = 12
"""A cell with more words than this is prose, not an answer; words inside LaTeX commands do not count."""
_TAGGED = re.compile(r"<answer>(.*?)</answer>", re.IGNORECASE | re.DOTALL)
_ANNOUNCED = re.compile(r"(?:^A:|\banswer(?:\s+is)?\s*:|\banswer\s+is)\s*(\S.*)$", re.IGNORECASE)
_WORD = re.compile(r"(?<!\\)\b[^\W\d_]{2,}")
_ELSEWHERE = re.compile(
    r"(?:see|refer to|cf\.?)\s.*|proof|.*\bomitted\.?|tbd|todo|unknown|no answer|[-–—?.…_*\s]+", re.IGNORECASE | re.DOTALL
)
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
    return None if len(_WORD.findall(text)) > MOST_WORDS else text.strip()
