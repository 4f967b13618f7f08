"""Answers that people and models really gave: MATH-500, GSM8K, and four models' solutions of GSM8K."""

import json
import re
from collections import defaultdict
from pathlib import Path

import pytest

from corl_core.answers import answer, read, read_answer, same
from corl_core.grading import workers
from corl_core.rewards.matching import rewards

SHARED = Path(__file__).resolve().parents[2] / "shared"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared, which is not part of the repository")

MERGED = [  # the only answers of MATH-500 that are written differently and are one answer
    {"90", "90^\\circ"},
    {"120", "120^\\circ"},
    {"30", "30^\\circ"},
    {"36", "36^\\circ", "\\$36"},  # units are dropped
    {"15", "15\\mbox{ cm}^2"},
    {"5", "x=5"},  # a name says nothing
    {"1,-2", "-2,1"},  # both the roots of an equation, in no order
    {"\\frac{1}{4}", "\\frac14"},
    {"10080", "10,\\!080"},
    {"2\\sqrt{5}", "2 \\sqrt{5}"},
]
DISAGREEMENTS: dict[tuple[int, str], str] = {}  # (row, model) → why our grading is right and the record wrong


def lines(name: str) -> list[dict]:
    return [json.loads(line) for line in (SHARED / name).read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def math500() -> list[str]:
    yield [row["answer"] for row in json.loads((SHARED / "data" / "math500.json").read_text(encoding="utf-8"))]
    workers.close()


@needs_shared
def test_every_case_of_parsing_holds():
    for case in lines("cases/parse.jsonl"):
        parsed = read(case["completion"]).answer
        assert (parsed.shown if parsed else None) == case["answer"], case
        assert parsed is None or same(parsed.text, case["answer"]), case


@needs_shared
def test_every_case_of_equivalence_holds_in_both_orders():
    for case in lines("cases/same_answer.jsonl"):
        assert same(case["a"], case["b"]) == same(case["b"], case["a"]) == case["same"], case


@needs_shared
def test_all_answers_of_math500_parse_and_equal_themselves(math500):
    assert len(math500) == 500
    for text in math500:
        reading = read_answer(text)
        assert reading.outcome == "parsed", text
        assert read(f"So it is $\\boxed{{{text}}}$.").answer.key == reading.answer.key, text
        assert same(reading.answer.key, text) and same(reading.answer.shown, text), text


@needs_shared
def test_no_two_answers_of_math500_merge_wrongly(math500):
    spellings: dict[str, set[str]] = defaultdict(set)
    for text in math500:
        spellings[answer(text).key].add(text)
    merged = [texts for texts in spellings.values() if len(texts) > 1]
    assert sorted(map(sorted, merged)) == sorted(map(sorted, MERGED))


@needs_shared
def test_all_answers_of_gsm8k_parse_as_integers():
    for row in lines("data/gsm8k_test.jsonl"):
        gold = read_answer(row["answer"].rsplit("####", 1)[1])
        assert gold.outcome == "parsed" and re.fullmatch(r"-?\d+", gold.answer.key), row["answer"]


@needs_shared
def test_grading_agrees_with_the_records_of_four_models():
    """Their answers stand after 'A:'; put into a box, they go the way of every rollout."""
    rows = lines("data/gsm8k_model_solutions.jsonl")
    wrong: dict[tuple[int, str], str] = {}
    for number, row in enumerate(rows):
        truth = answer(final(row["ground_truth"]))
        for model in set(row) - {"question", "ground_truth"}:
            given = final(row[model]["solution"])
            completion = row[model]["solution"] if given is None else f"\\boxed{{{given}}}"
            if rewards([read(completion).answer], truth.key) != (float(row[model]["is_correct"]),):
                wrong[number, model] = given
    assert len(rows) == 1319 and wrong.keys() == DISAGREEMENTS.keys()


def final(solution: str) -> str | None:
    found = re.findall(r"^A: *(.*)$", solution, re.MULTILINE)
    return found[-1] if found else None
