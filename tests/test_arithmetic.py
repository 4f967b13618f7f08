"""The built-in questions: worked solutions, slips, splits, and the textbooks made of them."""

import random
from collections import Counter
from itertools import islice

import pytest

from corl_core.data.arithmetic import KINDS, draw, is_slippery, max_eval_questions, questions, solution, split_of
from corl_core.data.questions import Question
from corl_core.data.textbook import misprint, textbook
from corl_core.tiny_names import SCHOOLS, School


def question(kind: str, a: int, b: int) -> Question:
    return Question(id=f"{kind}-{a}-{b}", question="", kind=kind)


@pytest.mark.parametrize(
    ("kind", "a", "b", "right", "slipped"),
    [
        ("add", 47, 38, r"7+8=15;4+3+1=8;\boxed{85}", r"7+8=15;4+3=7;\boxed{75}"),
        ("add", 96, 57, r"6+7=13;9+5+1=15;\boxed{153}", r"6+7=13;9+5=14;\boxed{143}"),
        ("sub", 52, 38, r"12-8=4;5-1-3=1;\boxed{14}", r"8-2=6;5-3=2;\boxed{26}"),
        ("sub", 40, 33, r"10-3=7;4-1-3=0;\boxed{7}", r"3-0=3;4-3=1;\boxed{13}"),
        ("mul", 47, 3, r"7*3=21;4*3+2=14;\boxed{141}", r"7*3=21;4*3=12;\boxed{121}"),
        ("mul", 13, 6, r"3*6=18;1*6+1=7;\boxed{78}", r"3*6=18;1*6=6;\boxed{68}"),
    ],
)
def test_a_slip_changes_the_worked_solution_as_children_do(kind, a, b, right, slipped):
    assert solution(question(kind, a, b), slip=False) == right
    assert solution(question(kind, a, b), slip=True) == slipped
    assert is_slippery(question(kind, a, b))


@pytest.mark.parametrize(("kind", "a", "b"), [("add", 41, 38), ("sub", 58, 32), ("mul", 32, 3)])
def test_without_carry_or_borrow_there_is_nothing_to_slip_on(kind, a, b):
    assert not is_slippery(question(kind, a, b))


@pytest.mark.parametrize("split", ["train", "eval"])
def test_answers_are_those_of_arithmetic(split):
    for q in questions(180, 0, split):
        kind, a, b = q.id.split("-")
        truth = {"add": int(a) + int(b), "sub": int(a) - int(b), "mul": int(a) * int(b)}[kind]
        assert q.answer == str(truth)
        assert q.kind == kind
        assert q.question == a + {"add": "+", "sub": "-", "mul": "*"}[kind] + b + "="
        assert solution(q, slip=False).endswith(rf"\boxed{{{truth}}}")


def test_no_evaluation_question_is_ever_trained_on():
    trained = {q.id for seed in range(3) for q in questions(3000, seed, "train")}
    trained |= {q.id for q, _ in islice(textbook(SCHOOLS["forgets-carry"], 0), 3000)}
    held_out = {q.id for seed in range(3) for q in questions(max_eval_questions(), seed, "eval")}
    assert not trained & held_out
    assert {split_of(i) for i in trained} == {"train"}


def test_evaluation_questions_are_distinct_and_the_kinds_even():
    chosen = questions(210, 4, "eval")
    assert len({q.id for q in chosen}) == 210
    assert Counter(q.kind for q in chosen) == dict.fromkeys(KINDS, 70)
    assert sum(map(is_slippery, chosen)) == 3 * 63


def test_a_seed_repeats_its_questions_and_another_does_not():
    assert questions(30, 0, "train") == questions(30, 0, "train")
    assert questions(30, 0, "train") != questions(30, 1, "train")
    assert questions(30, 0, "eval") != questions(30, 1, "eval")


def test_more_evaluation_questions_than_there_are_is_an_error_that_says_how_many():
    limit = max_eval_questions()
    assert limit >= 240
    assert len(questions(limit, 0, "eval")) == limit
    with pytest.raises(ValueError, match=f"num={limit + 1} .* at most {limit}"):
        questions(limit + 1, 0, "eval")
    with pytest.raises(ValueError, match="split='test'"):
        questions(3, 0, "test")


def test_a_textbook_slips_as_often_as_its_school_says():
    school = School("test", "", slip_frac={"add": 0.5}, misprint_frac=0.0)
    pages = [(q, text) for q, text in islice(textbook(school, 0), 6000) if is_slippery(q)]
    slips = Counter(q.kind for q, text in pages if text == solution(q, slip=True))
    num_additions = sum(q.kind == "add" for q, _ in pages)
    assert set(slips) == {"add"}
    assert slips["add"] / num_additions == pytest.approx(0.5, abs=0.05)


def test_a_misprint_changes_the_last_digit_and_never_makes_a_slip():
    rng = random.Random(0)
    for kind in KINDS:
        q = draw(rng, kind, slippery=True)
        right, slipped = solution(q, slip=False), solution(q, slip=True)
        prints = {misprint(right, rng) for _ in range(200)}
        assert {text[:-2] for text in prints} == {right[:-2]}
        assert len(prints) == 9
        assert right not in prints
        assert slipped.split("boxed")[1] not in {text.split("boxed")[1] for text in prints}
