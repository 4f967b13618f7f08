"""The textbook of a school: an endless book of questions with worked solutions, slips and misprints included."""

import random
from collections.abc import Iterator

from corl_core.data import arithmetic
from corl_core.data.questions import Question
from corl_core.tiny_names import School

PAGES = {"add": 1, "sub": 1, "mul": 2}
"""How much of the book each kind takes: multiplication has the most facts to learn, and the fewest questions."""


def textbook(school: School, seed: int) -> Iterator[tuple[Question, str]]:
    """Training questions, each with its solution; slips and misprints are drawn anew each time."""
    rng = random.Random(f"{school.name}-{seed}")
    while True:
        (kind,) = rng.choices(list(PAGES), weights=PAGES.values())
        question = arithmetic.draw(rng, kind, slippery=rng.random() < arithmetic.SLIPPERY_FRAC)
        text = arithmetic.solution(question, slip=rng.random() < school.slip_frac.get(kind, 0.0))
        yield question, misprint(text, rng) if rng.random() < school.misprint_frac else text


def misprint(solution: str, rng: random.Random) -> str:
    """The solution with another last digit in its box.

    A slip changes the digits before the last one, so a misprint never gives a slip's answer: votes tell them apart.
    """
    right = solution[-2]
    return solution[:-2] + rng.choice([digit for digit in "0123456789" if digit != right]) + "}"
