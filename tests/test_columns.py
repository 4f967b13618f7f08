"""Which column holds what, what a gold answer says, and choices: as public data sets have them."""

import json

import pytest

from corl_core.config import DataConfig
from corl_core.data.sources import DataError, Loaded, load_training


def loaded(tmp_path, rows: list[dict], **fields) -> Loaded:
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return load_training(DataConfig(train=str(path), **fields), 99, 0)


CHAT = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "2+2?"}]


@pytest.mark.parametrize(
    ("row", "question", "answer"),
    [
        ({"question": "2+2?", "answer": "Two and two.\n#### 1,004"}, "question", "1,004"),  # GSM8K
        ({"problem": "2+2?", "level": "Level 1", "solution": r"So \boxed{1} or \boxed{\frac{1}{2}}."}, "problem", r"\frac{1}{2}"),
        ({"problem": "2+2?", "solution": r"So \boxed{5}.", "answer": "4", "subject": "x"}, "problem", "4"),  # MATH-500
        ({"id": 0, "problem": "2+2?", "answer": 27.0, "url": "x"}, "problem", "27"),  # AMC
        ({"prompt": "2+2?", "solution": "34", "source_prompt": CHAT}, "prompt", "34"),  # DAPO
        ({"Problem": "2+2?", "Answer": 70}, "Problem", "70"),  # AIME
        ({"query": "2+2?", "response": "It is 4.\nThe answer is: 4"}, "query", "4"),  # MetaMath
        ({"prompt": CHAT, "reward_model": {"ground_truth": "4"}, "extra_info": {"index": 1}}, "prompt", "4"),  # verl
        ({"data_source": "x", "extra_info": {"question": "2+2?", "answer": "#### 4"}}, "extra_info.question", "4"),
        ({"messages": [*CHAT, {"role": "assistant", "content": r"\boxed{4}"}]}, "messages", "4"),
        ({"conversations": [{"from": "human", "value": "2+2?"}, {"from": "gpt", "value": "A: 4"}]}, "conversations", "4"),
        ({"problem": "2+2?", "solution": "<think>5?</think> <answer> 4 </answer>", "original_answer": "Prose"}, "problem", "4"),
        ({"question": "2+2?", "ground_truth": "She makes 4.\nA: 18"}, "question", "18"),
        ({"Question": "2+2?", "correct answer": "yes"}, "Question", "yes"),
        ({"题目": "2+2?", "答案": "4"}, "题目", "4"),
    ],
)
def test_columns_and_answers_are_found_as_public_data_has_them(row, question, answer, tmp_path):
    found = loaded(tmp_path, [row])
    assert found.columns.question == question
    assert (found.questions[0].question, found.questions[0].answer) == ("2+2?", answer)
    assert question in found.columns.said()


def test_a_chat_that_pandas_wrote_into_csv_is_read(tmp_path):
    import pandas as pd

    pd.DataFrame([{"prompt": CHAT, "answer": 4}]).to_csv(tmp_path / "q.csv", index=False)
    (question,) = load_training(DataConfig(train=str(tmp_path / "q.csv")), 9, 0).questions
    assert (question.question, question.answer) == ("2+2?", "4")


def test_a_column_without_values_is_passed_over(tmp_path):
    found = loaded(tmp_path, [{"question": "", "problem": "2+2?", "answer": None, "solution": r"\boxed{4}"}])
    assert (found.columns.question, found.columns.answer) == ("problem", "solution")


def test_columns_can_be_named_nested_ones_too(tmp_path):
    row = {"frage": "2+2?", "antwort": "5", "anders": "Zwei und zwei?", "meta": {"truth": {"value": "4"}}}
    named = loaded(tmp_path, [row], question_column="frage", answer_column="meta.truth.value", paraphrase_column="anders")
    (question,) = named.questions
    assert (question.question, question.answer, question.paraphrase) == ("2+2?", "4", "Zwei und zwei?")
    assert named.names == ("frage", "antwort", "anders", "meta.truth.value")


def test_a_wrong_name_lists_the_columns_that_exist(tmp_path):
    with pytest.raises(DataError, match="'fragen' is not a column; the columns are frage, x; did you mean 'frage'"):
        loaded(tmp_path, [{"frage": "2+2?", "x": 1}], question_column="fragen")
    with pytest.raises(DataError, match=r"no column looks like a question; set data.question_column to"):
        loaded(tmp_path, [{"frage": "2+2?", "antwort": "4"}])


def test_chats_with_more_in_them_than_is_asked_are_noted(tmp_path):
    turns = [*CHAT, {"role": "assistant", "content": "4"}, {"role": "user", "content": [{"type": "text", "text": "And 3+3?"}]}]
    found = loaded(tmp_path, [{"prompt": turns, "answer": "6"}])
    assert found.questions[0].question == "And 3+3?"
    assert "system messages in the data are not used; set data.system_prompt" in found.notes[0]
    assert "1 chats have several user turns" in found.notes[1]


def test_images_are_shown_to_be_left_out(tmp_path):
    found = loaded(tmp_path, [{"problem": "a", "images": ["x.png"]}, {"problem": "b", "images": None}])
    assert found.columns.image == "images"
    assert found.notes == (
        "column 'images' holds images in 1 of 2 rows, and this version trains on text only: the models will not see them",
    )


CAPITALS = ["Lyon", "Paris", "Nice"]


@pytest.mark.parametrize(
    ("fields", "answer"),
    [
        ({"choices": CAPITALS, "answer": 1}, "B"),  # MMLU: an index
        ({"choices": CAPITALS, "answer": "Paris"}, "B"),  # MathVista: a text
        ({"options": CAPITALS, "answer": "B", "answer_index": 1}, "B"),  # MMLU-Pro
        ({"options": ["A. Lyon", "B. Paris", "C. Nice"], "answer": "(b)"}, "B"),
        ({"options": CAPITALS, "answer": "B. Paris"}, "B"),
        ({"options": CAPITALS, "solution": r"Hence \boxed{\text{B}}"}, "B"),
        ({"choices": {"text": CAPITALS, "label": ["1", "2", "3"]}, "answerKey": "2"}, "B"),  # ARC
        ({"options": {"A": "Lyon", "B": "Paris", "C": "Nice"}, "answer": "B"}, "B"),
        ({"option": "A. Lyon; B. Paris; C. Nice", "answer": "B"}, "B"),  # We-Math
        ({"choices": "['Lyon', 'Paris', 'Nice']", "answer": "B"}, "B"),
        ({"A": "Lyon", "B": "Paris", "C": "Nice", "answer": "B"}, "B"),
        ({"option_a": "Lyon", "option_b": "Paris", "option_c": "Nice", "answer": "Paris"}, "B"),
        ({"choices": CAPITALS, "answer": "Rome"}, None),
        ({"choices": CAPITALS, "answer": None}, None),
    ],
)
def test_choices_become_lettered_lines_and_the_gold_a_letter(fields, answer, tmp_path):
    (question,) = loaded(tmp_path, [{"question": "Capital of France?"} | fields]).questions
    assert question.question == "Capital of France?\nA. Lyon\nB. Paris\nC. Nice"
    assert question.answer == answer


def test_a_gold_that_names_no_choice_is_unlabelled_and_named(tmp_path):
    found = loaded(tmp_path, [{"question": "a", "choices": CAPITALS, "answer": "Rome"}])
    assert [(trouble.where, trouble.what) for trouble in found.unreadable] == [("line 1", "'Rome' names none of the choices")]


def test_indices_count_from_one_when_the_column_shows_it(tmp_path):
    rows = [{"question": str(n), "choices": CAPITALS, "answer": n} for n in (1, 2, 3)]
    assert [question.answer for question in loaded(tmp_path, rows).questions] == ["A", "B", "C"]
    rows = [{"question": str(n), "choices": CAPITALS, "answer": n} for n in (0, 1, 2)]
    assert [question.answer for question in loaded(tmp_path, rows).questions] == ["A", "B", "C"]


def test_numbers_that_are_all_texts_of_their_choices_are_texts(tmp_path):
    rows = [{"question": str(n), "choices": ["3", "1", "2"], "answer": str(n)} for n in (1, 2, 3)]
    assert [question.answer for question in loaded(tmp_path, rows).questions] == ["B", "C", "A"]


def test_a_right_answer_in_a_column_of_its_own_is_shuffled_among_the_wrong_ones(tmp_path):
    rows = [
        {"Question": f"q{n}", "Correct Answer": f"right {n}"} | {f"Incorrect Answer {i}": f"wrong {n} {i}" for i in (1, 2, 3)}
        for n in range(40)
    ]  # fmt: skip
    questions = loaded(tmp_path, rows).questions
    assert {question.answer for question in questions} == set("ABCD")
    assert all(f"{question.answer}. right" in question.question for question in questions)
    assert questions == loaded(tmp_path, rows).questions


def test_choices_that_the_question_lists_already_are_not_listed_twice(tmp_path):
    row = {"question": "Which?\nA. Lyon\nB. Paris", "choices": ["Lyon", "Paris"], "answer": "B"}
    (question,) = loaded(tmp_path, [row]).questions
    assert question.question.count("Lyon") == 1 and question.answer == "B"
