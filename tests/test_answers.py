"""From completion to answer to canonical key."""

import pytest

from corl_core.answers import answer, parse


@pytest.mark.parametrize(
    ("completion", "key"),
    [
        ("7+8=15;4+3+1=8;\\boxed{85}", "85"),
        ("First \\boxed{3}. Wait: \\boxed{5}", "5"),
        ("Therefore boxed{7}.", "7"),
        ("\\boxed{\\boxed{8}}", "8"),
        ("\\boxed{\\frac{1}{2}}", "1/2"),
        ("\\boxed{12\\,\\text{cm}}", "12"),
        ("\\boxed{a+b}", "a+b"),
        ("It is 12, surely", None),
        ("3 cases and then 17 more", None),
        ("\\boxed{", None),
        ("\\boxed{12", None),
        ("\\boxed{3} and then \\boxed{12", None),
        ("\\boxed{}", None),
        ("\\boxed{  }", None),
        ("Put it in \\boxed{}. My answer: 7", None),
    ],
)
def test_the_last_box_that_closes_is_the_answer(completion, key):
    parsed = parse(completion)
    assert (parsed.key if parsed else None) == key


@pytest.mark.parametrize(
    "spellings",
    [
        ["1,000", "1000", "1{,}000", "1000.0", "+1000", " 1 000 "],
        ["0.5", ".5", "\\frac12", "\\dfrac{1}{2}", "2/4", "0.50"],
        ["-3", "−3", "-3.0", "-6/2", "-\\frac{6}{2}", "\\frac{-6}{2}"],
        ["90^\\circ", "90°", "90"],
        ["\\$18", "$18", "18"],
        ["50\\%", "50"],
        ["\\text{C}", "C"],
    ],
)
def test_spellings_of_one_answer_have_one_key(spellings):
    assert len({answer(text).key for text in spellings}) == 1


def test_different_answers_keep_different_keys():
    texts = ["1", "-1", "1/3", "0.3333", "10", "(1,2)", "(2,1)", "a+b", "+b", "1/0", "4\\sqrt{2}", "4"]
    assert len({answer(text).key for text in texts}) == len(texts)


@pytest.mark.parametrize("text", ["", "  ", "$", "\\text{}"])
def test_an_answer_that_says_nothing_is_none(text):
    assert answer(text) is None


def test_a_very_long_number_is_compared_as_text_and_returns_at_once():
    assert answer("9" * 100_000).key == "9" * 100_000
