"""From a completion to an answer, and from an answer to the canonical key that votes count.

Contract
* `parse(completion)` is the last `\\boxed{…}` (the backslash may be missing) or None: no box, an empty box
  or a box that never closes is no answer. There is no fallback to the last number in the text: truncated
  reasoning must not vote.
* `Answer.key` is canonical: two answers are equivalent exactly when their keys are equal, so equivalence is
  reflexive, symmetric and transitive, and the order of rollouts cannot change a vote's classes.
* Numbers become exact fractions: '1,000', '1{,}000' and '1000.0' are one key, as are '0.5', '\\frac12', '2/4'.
* A percent sign is dropped, so '50\\%' is 50; units in \\text{…}, degrees and currency signs are dropped.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

_BOX = re.compile(r"\\?boxed\s*\{")
_DROPPED = re.compile(r"\\(?:left|right|displaystyle|,|;|!|:|\s)|\\?\$|\\?%|\^\s*\{?\s*\\circ\s*\}?|°|~")
_UNIT = re.compile(r"(?<=[0-9}])\s*\\(?:text|mathrm|textbf|mbox)\s*\{[^{}]*\}$")
_TEXT = re.compile(r"\\(?:text|mathrm|textbf|mbox)\s*\{([^{}]*)\}")
_FRACTION = re.compile(r"(-?)\\[dt]?frac\s*(?:\{(-?\d+)\}|(\d))\s*(?:\{(-?\d+)\}|(\d))")
_DECIMAL = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")


@dataclass(frozen=True)
class Answer:
    """A parsed answer: the text as written, and its canonical key."""

    text: str
    key: str


def parse(completion: str) -> Answer | None:
    """The answer that a completion gives, or None. Only the completion is read, never the prompt."""
    text = last_box(completion)
    return answer(text) if text is not None else None


def answer(text: str) -> Answer | None:
    """An answer from its own text (a gold answer, the inside of a box); None if nothing is left of it."""
    key = canonical_key(text)
    return Answer(text.strip(), key) if key else None


def last_box(completion: str) -> str | None:
    """The inside of the last box that closes, unwrapping a box in a box; None when the last box stays open."""
    starts = list(_BOX.finditer(completion))
    if not starts:
        return None
    inside = _balanced(completion, starts[-1].end())
    return inside.strip() or None if inside is not None else None


def _balanced(text: str, start: int) -> str | None:
    depth = 1
    for index in range(start, len(text)):
        depth += (text[index] == "{") - (text[index] == "}")
        if depth == 0:
            return text[start:index]
    return None


@lru_cache(maxsize=65_536)
def canonical_key(text: str) -> str:
    """The canonical spelling of an answer; '' when nothing is left."""
    text = text.strip().replace("−", "-").replace("{,}", ",")
    text = _UNIT.sub("", _DROPPED.sub("", text))
    text = _TEXT.sub(r"\1", text)
    text = _THOUSANDS.sub("", "".join(text.split())).rstrip(".")
    number = _number(text)
    return _spell(number) if number is not None else text


def _number(text: str) -> Fraction | None:
    if match := _FRACTION.fullmatch(text):
        sign, *parts = match.groups()
        top, bottom = (int(part) for part in parts if part is not None)
    elif match := re.fullmatch(r"([+-]?)(\d+)/(\d+)", text):
        sign, top, bottom = match[1], int(match[2]), int(match[3])
    elif _DECIMAL.fullmatch(text) and len(text) <= 400:
        return Fraction(text)
    else:
        return None
    return None if bottom == 0 else Fraction(-top if sign == "-" else top, bottom)


def _spell(number: Fraction) -> str:
    return str(number.numerator) if number.denominator == 1 else f"{number.numerator}/{number.denominator}"
