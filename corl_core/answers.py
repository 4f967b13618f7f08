"""From a completion to an answer, and from an answer to the canonical key that votes count.

Contract
* The answer is the inside of the last `\\boxed{…}` (the backslash may be missing). No box, an empty one, or a last one that
  never closes is no answer: there is no fallback to the last number in the text, so truncated reasoning does not vote.
  Without an answer a rollout has no vote, equals nothing, and gets reward 0.
* Two answers are equivalent exactly when their keys are equal. Equivalence is therefore reflexive, symmetric and
  transitive, and the order of rollouts changes no vote. The key of what is no garble is itself an answer, with that key.
* No text raises, hangs or takes longer than about a second: numbers are computed here, within bounds; formulas in worker
  processes (`grading/workers.py`), which only formulas start. A formula whose time runs out is compared as text.

What is decided where mathematics leaves it open
* Numbers are exact: 0.5 is 1/2, but 0.3333 is not 1/3 and 3.14 is not pi. 1,000 is a thousand; '1, 000' is a list.
* 50% is 50. Currency, degrees and units are dropped, also unequal ones: 12 cm is 12, and 12 m too.
* A numeral with a base equals itself only: 1011_2 is neither 11 nor 1011. Times and ratios (10:30) are text.
* A capital letter alone, in brackets or before an option's text (C, (C), C. 12) is a choice; a small one a variable.
* Tuples, intervals and vectors are ordered and keep their brackets: (0,1) is not [0,1). Lists and sets are not ordered:
  '1, 2', '2 and 1' and {1,2} are one answer. A set counts an element once, a list as often as it is given; {5} is 5.
* x=5 is 5, as is 2x=10, and f(x)=x^2 is x^2: a name alone says nothing. Equations with more unknowns, and of a higher
  degree, are equal when they are multiples of each other; y=2x is not 2x. x>2 is (2,oo), and x \\in S is S.
* 1\\frac{1}{2} and '1 1/2' are mixed numbers. e is Euler's number, i the imaginary unit, 2j two times j.
* Powers too large to write out, sums, integrals and limits are not evaluated; they equal their own spelling.
* Plain text with words is text, not a product of letters: 'it is 5', LA, 17 R 2, 7th, 5 (five). So are several amounts
  (3 ft 4 in) and congruences (\\pmod, \\equiv). Small letters side by side are a product: xy, 2ab, 2x, 3m; but one number
  with one unit is the number: 10 L, 3 m, 5 ft.
* Words ('twelve', 'Evelyn') are text, compared without regard to case; letters in formulas keep their case.
"""

import re
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal

from corl_core.grading.boxes import box_span, last_box
from corl_core.grading.clean import clean
from corl_core.grading.parts import Keyed, text_key
from corl_core.grading.shapes import keyed
from corl_core.grading.units import trim
from corl_core.grading.workers import one_answer

Outcome = Literal["parsed", "no_box", "unclosed", "empty", "timeout", "error"]
MAX_CHARS = 2_000  # of an answer; longer ones are compared as they stand
_INTEGER = re.compile(r"0|-?[1-9]\d{0,17}")
_CHOICE = re.compile(r"[A-Z]")
_WORDS = re.compile(r"(?<!\S)[A-Za-z.]{2,}")
_FRACTION = re.compile(r"-?\d{1,15}(?:/[1-9]\d{0,14})?")


@dataclass(frozen=True)
class Answer:
    """A parsed answer: the text as written, and its canonical key."""

    text: str
    key: str

    @property
    def shown(self) -> str:
        """The answer in plain LaTeX for people: a decimal where one is exact and short, else a fraction, else the text."""
        if _CHOICE.fullmatch(self.key):
            return self.key
        if not _FRACTION.fullmatch(self.key):
            text = trim(clean(self.text))
            return text if _WORDS.search(text) else re.sub(r"(?<!\w)\s+|\s+(?!\w)", "", text)
        number = Fraction(self.key)
        decimal = f"{float(number):.6f}".rstrip("0").rstrip(".")
        if Fraction(decimal) == number:
            return self.key if number.denominator == 1 else decimal
        return f"{'-' if number < 0 else ''}\\frac{{{abs(number.numerator)}}}{{{number.denominator}}}"


@dataclass(frozen=True)
class Reading:
    """What was read, and how it went.

    parsed                   there is an answer
    no_box, unclosed, empty  there is none: no box at all, a last box that never closes, or nothing in it
    timeout                  there is one, but its mathematics took longer than a second: compared as text
    error                    there is one, but the worker ended or failed: compared as text
    """

    answer: Answer | None
    outcome: Outcome


def read(completion: str) -> Reading:
    """The answer that a completion gives, with its outcome. Only the completion is read, never the prompt."""
    inside, why_not = last_box(completion)
    return read_answer(inside) if inside is not None else Reading(None, why_not or "empty")


def span(completion: str) -> tuple[int, int] | None:
    """Where the text of the answer stands in a completion: start and end; None where there is no answer."""
    return box_span(completion)


def read_answer(text: str) -> Reading:
    """An answer from its own text (a true answer, the inside of a box), with its outcome."""
    found = _remembered(text) if len(text) <= MAX_CHARS else _key(text)
    return Reading(Answer(text.strip(), found.key) if found.key else None, found.outcome if found.key else "empty")


def parse(completion: str) -> Answer | None:
    """The answer that a completion gives, or None."""
    return read(completion).answer


def answer(text: str) -> Answer | None:
    """An answer from its own text; None if nothing is left of it."""
    return read_answer(text).answer


def same(a: str, b: str) -> bool:
    """Whether two answer texts are equivalent; a text that says nothing equals nothing."""
    first, second = answer(a), answer(b)
    return first is not None and second is not None and first.key == second.key


def _key(text: str) -> Keyed:
    if _INTEGER.fullmatch(text):
        return Keyed(text)
    if len(text) > MAX_CHARS:
        return Keyed(" ".join(text.split()))
    cleaned = clean(text)
    with one_answer():
        found = keyed(cleaned)
    return found if found.outcome == "parsed" else Keyed(text_key(trim(cleaned)), found.outcome)


_remembered = lru_cache(maxsize=65_536)(_key)  # also makes one process give one text one key, whatever the load


def forget() -> None:
    """Forgets the keys of all answers read so far."""
    _remembered.cache_clear()
