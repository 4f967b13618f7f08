"""`bench answers`: how long grading takes, for answers as questions of school mathematics have them.

Four in five are numbers in many spellings, the rest formulas, tuples, lists and texts. 'first' reads each for the first
time, with a worker that runs; 'again' finds them remembered, as most rollouts of a group are.
"""

import random
import time
from dataclasses import dataclass

from corl_core.answers import forget, read

NUMBERS = (
    "{a}",
    "{a}.{b}",
    "\\frac{{{a}}}{{{b}}}",
    "\\${a},{b}00",
    "{a}\\%",
    "{a}\\text{{ cm}}",
    "{a}^\\circ",
    "{a}\\frac{{1}}{{{b}}}",
)
OTHERS = (
    "{b}\\sqrt{{{c}}}",
    "{c}\\pi",
    "(\\frac{{{a}}}{{{c}}},{b})",
    "{c}x+{d}",
    "{a}, {b}",
    "\\text{{C}}",
    "[{a},\\infty)",
    "x={a}",
)


@dataclass(frozen=True)
class Timing:
    """Seconds for `num_answers` completions, `num_different` of which differ."""

    num_answers: int
    num_different: int
    first_s: float
    again_s: float


def completions(num_answers: int, seed: int = 0) -> list[str]:
    rng, texts = random.Random(seed), []
    for _ in range(num_answers):
        form = rng.choice(NUMBERS if rng.random() < 0.8 else OTHERS)
        numbers = {"a": rng.randint(1, 999), "b": rng.randint(2, 99), "c": rng.randint(2, 30), "d": rng.randint(1, 20)}
        texts.append(f"So the answer is \\boxed{{{form.format(**numbers)}}}.")
    return texts


def measure(num_answers: int) -> Timing:
    texts = completions(num_answers)
    for form in (*NUMBERS, *OTHERS):
        read(f"\\boxed{{{form.format(a=1001, b=1003, c=1009, d=1013)}}}")
    forget()
    times = []
    for _ in range(2):
        start = time.perf_counter()
        for text in texts:
            read(text)
        times.append(time.perf_counter() - start)
    return Timing(num_answers, len(set(texts)), *times)


def table(timing: Timing) -> str:
    """Markdown: one line."""
    return "\n".join(
        [
            "| answers | different | first (s) | again (s) |",
            "| --- | --- | --- | --- |",
            f"| {timing.num_answers:,} | {timing.num_different:,} | {timing.first_s:.2f} | {timing.again_s:.2f} |",
        ]
    )
