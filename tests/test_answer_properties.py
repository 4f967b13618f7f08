"""What holds for all answers: equivalence is a partition, order changes no vote, and no text is an exception."""

import random
import time
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from corl_core.answers import answer, parse, read, read_answer, same
from corl_core.grading import workers
from corl_core.grading.numbers import spell, value
from corl_core.votes import vote

LATEX = [
    "\\frac",
    "\\sqrt",
    "\\boxed",
    "\\text",
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    "^",
    "_",
    "\\pm",
    "\\cup",
    "\\{",
    "\\}",
    ",",
    "=",
    "<",
    "\\le",
]
PIECES = st.sampled_from(
    [*LATEX, "\\", "$", "%", "1", "2", "10", ".", "x", "pi", "e", "i", "C", " and ", " ", "+", "-", "/", "*", "!", "|", "\\\\"]
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(PIECES, max_size=25).map("".join))
quick = settings(max_examples=300, deadline=None)


@pytest.fixture(scope="module", autouse=True)
def _a_worker_that_runs():
    read_answer("x+\\sqrt{2}")
    yield
    workers.close()


def spellings(number: Fraction) -> list[str]:
    """Ways to write a fraction whose denominator divides 1000."""
    top, bottom, sign = abs(number.numerator), number.denominator, "-" if number < 0 else ""
    decimal = f"{top * 1000 // bottom // 1000}.{top * 1000 // bottom % 1000:03d}"
    return [
        f"{sign}\\frac{{{top}}}{{{bottom}}}", f"{sign}{2 * top}/{2 * bottom}", f"{sign}{decimal}", f"{sign}\\${decimal}",
        f"{sign}{decimal}\\%", f"{sign}{decimal}\\text{{ cm}}", f"x = {sign}{decimal}", f"${sign}\\dfrac{{{top}}}{{{bottom}}}$",
        f"{sign}{top // bottom}\\frac{{{top % bottom}}}{{{bottom}}}" if bottom > 1 and top > bottom else f"({sign}{decimal})",
    ]  # fmt: skip


numbers = st.builds(Fraction, st.integers(-10_000, 10_000), st.sampled_from([1, 2, 4, 5, 8, 10, 100, 1000]))


@given(numbers, st.randoms())
@quick
def test_every_spelling_of_a_number_has_its_key(number, rng):
    assert {answer(text).key for text in spellings(number)} == {spell(number)}


@given(st.lists(numbers, min_size=1, max_size=12), st.randoms())
@quick
def test_the_same_rollouts_in_any_order_elect_the_same_vote(values, rng):
    group = [parse(f"\\boxed{{{rng.choice(spellings(number))}}}") for number in values] + [None, None]
    first = vote(group, tie="abstain")
    rng.shuffle(group)
    again = vote(group, tie="abstain")
    assert (first.key, first.count, first.num_parsed, first.tied) == (again.key, again.count, again.num_parsed, again.tied)


FORMULAS = [["\\sqrt{8}", "2\\sqrt{2}", "8^{1/2}"], ["a(b+1)", "ab+a", "a+ba"], ["(1,\\pi)", "(1.0, \\pi)"], ["x^2=4", "4=x^2"],
            ["1,2", "\\{2,1\\}", "2 and 1"], ["\\text{yes}", "Yes"], ["B", "(B)"], ["[0,1)", "0\\le x<1"], []]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(range(8)), st.integers(0, 2)), min_size=1, max_size=16), st.randoms())
@quick
def test_formulas_elect_the_same_vote_in_any_order(picks, rng):
    group = [answer(FORMULAS[kind][index % len(FORMULAS[kind])]) for kind, index in picks]
    first = vote(group, tie="abstain")
    assert first.key == vote(rng.sample(group, len(group)), tie="abstain").key
    assert len({one.key for one in group}) == len({kind for kind, _ in picks})


@given(TEXTS, TEXTS)
@quick
@example("\\frac{1}{0}", "x^{2}^{3}")
@example("0^{-1}", "|1|2|")
@example("\ud800", "\\begin{pmatrix}&\\\\\\end{pmatrix}")
def test_no_text_raises_or_takes_long_and_equivalence_is_reflexive_and_symmetric(a, b):
    start = time.monotonic()
    for text in (a, b):
        reading = read_answer(text)
        assert (reading.answer is None) == (reading.outcome == "empty")
        assert same(text, text) == (reading.answer is not None)
        assert reading.answer is None or reading.answer.shown
        assert read(f"\\boxed{{{text}}}").outcome in ("parsed", "empty", "unclosed", "timeout", "error")
    assert same(a, b) == same(b, a)
    assert time.monotonic() - start < 6.0


@given(st.text(alphabet="0123456789+-*/^().! {}", max_size=30))
@quick
def test_arithmetic_agrees_with_a_calculator_or_gives_up(text):
    try:
        got = value(text)
    except Exception as error:
        assert type(error).__name__ == "TooBig"
        return
    assert got is None or isinstance(got, Fraction)


@pytest.mark.parametrize("seed", range(5))
def test_equivalence_is_transitive_over_mixed_kinds(seed):
    rng = random.Random(seed)
    texts = [rng.choice(kind) for kind in FORMULAS[:8] for _ in range(3)]
    for a, b, c in (rng.sample(texts, 3) for _ in range(200)):
        assert not (same(a, b) and same(b, c)) or same(a, c)
