"""Question sources: built in, from files, and as a dataset in the Hub's layout."""

import json
from pathlib import Path

import pytest

from corl_core.config import DataConfig
from corl_core.data.questions import Question
from corl_core.data.sources import DataError, Loaded, held_out_questions, load_training, question_order, training_questions

SHARED = Path(__file__).resolve().parents[2] / "shared" / "data"


def rows_file(tmp_path, name: str, rows: list[dict]) -> str:
    import pandas as pd

    path, frame = tmp_path / name, pd.DataFrame(rows)
    match path.suffix:
        case ".jsonl":
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        case ".json":
            path.write_text(json.dumps(rows))
        case ".csv":
            frame.to_csv(path, index=False)
        case ".tsv":
            frame.to_csv(path, index=False, sep="\t")
        case ".parquet":
            frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize("name", ["q.jsonl", "q.json", "q.csv", "q.tsv", "q.parquet"])
def test_every_file_kind_gives_the_same_questions(name, tmp_path):
    rows = [{"problem": "What is 2, doubled?", "answer": "4"}, {"problem": "数は\n何？", "answer": "7"}]
    source = rows_file(tmp_path, name, rows)
    questions = training_questions(DataConfig(train=source), 99, 0)
    assert [(q.question, q.answer) for q in questions] == [("What is 2, doubled?", "4"), ("数は\n何？", "7")]
    assert len({q.id for q in questions}) == 2


def load_text(tmp_path, name: str, content: str | bytes, **fields) -> Loaded:
    path = tmp_path / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return load_training(DataConfig(train=str(path), **fields), 99, 0)


def pairs(loaded: Loaded) -> list[tuple[str, str | None]]:
    return [(question.question, question.answer) for question in loaded.questions]


TWO = [("2+2?", "4"), ("3+3?", "6")]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("bom.jsonl", b'\xef\xbb\xbf{"question": "2+2?", "answer": "4"}\n{"question": "3+3?", "answer": 6}'),
        ("crlf.jsonl", b'{"question": "2+2?", "answer": "4"}\r\n\r\n{"question": "3+3?", "answer": "6"}\r\n'),
        ("list.jsonl", b'[{"question": "2+2?", "answer": "4"},\n {"question": "3+3?", "answer": 6}]'),
        ("lines.json", b'{"question": "2+2?", "answer": "4"}\n{"question": "3+3?", "answer": "6"}\n'),
        ("pretty.jsonl", b'{\n "question": "2+2?",\n "answer": "4"\n}\n{\n "question": "3+3?",\n "answer": "6"\n}'),
        ("wrapped.json", b'{"version": 1, "data": [{"question": "2+2?", "answer": "4"}, {"question": "3+3?", "answer": "6"}]}'),
        ("bom.csv", b"\xef\xbb\xbfquestion,answer\r\n2+2?,4\r\n3+3?,6\r\n"),
        ("excel.csv", b"question;answer\r\n2+2?;4\r\n3+3?;6\r\n;\r\n"),
        ("says.csv", b"sep=;\r\nquestion;answer\r\n2+2?;4\r\n3+3?;6\r\n"),
        ("unicode.csv", "question\tanswer\r\n2+2?\t4\r\n3+3?\t6\r\n".encode("utf-16")),
        ("floats.csv", b"question,answer\n2+2?,4.0\n3+3?,6.0\n"),
        ("numbers.jsonl", b'{"question": "2+2?", "answer": 4.0}\n{"question": "3+3?", "answer": [6]}'),
    ],
)
def test_what_editors_and_spreadsheets_do_to_a_file_does_not_matter(name, content, tmp_path):
    loaded = load_text(tmp_path, name, content)
    assert pairs(loaded) == TWO and not loaded.dropped and not loaded.unreadable


def test_a_western_excel_file_is_read_and_noted(tmp_path):
    loaded = load_text(tmp_path, "q.csv", "question;answer\nWie groß ist x?;3\n".encode("cp1252"))
    assert pairs(loaded) == [("Wie groß ist x?", "3")]
    assert "line 2 is not UTF-8: the file was read as Windows-1252" in loaded.notes[0]


def test_quoted_newlines_keep_the_text_and_the_line_numbers(tmp_path):
    loaded = load_text(tmp_path, "q.csv", 'question,answer\n"first\r\nsecond, ""third""",1\nno quotes, two commas,2\nlast,3\n')
    assert pairs(loaded) == [('first\nsecond, "third"', "1"), ("last", "3")]
    assert loaded.places == ("line 2", "line 5")
    (dropped,) = loaded.dropped
    assert dropped.where == "line 4" and dropped.what.startswith("3 cells where the header has 2; put text that holds")


def test_every_script_and_emoji_load_unchanged(tmp_path):
    texts = ["数は何ですか？", "كم يساوي ٢+٢؟", "🦆 + 🦆 = ?", "x\u2028y"]
    content = "".join(json.dumps({"question": text, "answer": 4}, ensure_ascii=False) + "\n" for text in texts)
    assert [question.question for question in load_text(tmp_path, "q.jsonl", content).questions] == texts
    quoted = "question,answer\n" + "".join(f'"{text}",4\n' for text in texts)
    assert [question.question for question in load_text(tmp_path, "q.csv", quoted).questions] == texts


def test_half_an_emoji_does_not_stop_the_run_that_writes_it_down(tmp_path):
    (question,) = load_text(tmp_path, "q.jsonl", '{"question": "\\ud83d and?", "answer": 4}').questions
    assert question.question == "? and?" and question.question.encode()


def test_decimals_and_dates_of_a_parquet_file_are_text(tmp_path):
    import datetime
    from decimal import Decimal

    import pandas as pd

    rows = {
        "question": ["a", "b", "c"],
        "answer": [Decimal("4.00"), Decimal("0.50"), None],
        "day": [datetime.date(2026, 1, 1)] * 3,
    }
    pd.DataFrame(rows).to_parquet(tmp_path / "q.parquet")
    loaded = load_training(DataConfig(train=str(tmp_path / "q.parquet")), 9, 0)
    assert [question.answer for question in loaded.questions] == ["4", "0.50", None] and loaded.places[0] == "row 1"


def test_rows_with_differing_fields_load(tmp_path):
    loaded = load_text(tmp_path, "q.jsonl", '{"question": "a", "level": 1}\n{"answer": 2, "question": "b"}\n')
    assert pairs(loaded) == [("a", None), ("b", "2")]


@pytest.mark.parametrize("nothing", ["null", '""', '"  "', "NaN", '"nan"', '"N/A"', "[]"])
def test_a_missing_answer_is_unlabelled(nothing, tmp_path):
    loaded = load_text(tmp_path, "q.jsonl", f'{{"question": "a", "answer": {nothing}}}\n{{"question": "b", "answer": 0}}')
    assert pairs(loaded) == [("a", None), ("b", "0")]
    assert loaded.num_labelled == 1 and not loaded.unreadable
    assert pairs(load_text(tmp_path, "bare.jsonl", '{"question": "a"}')) == [("a", None)]


def test_an_answer_that_says_nothing_parsable_is_unlabelled_and_named(tmp_path):
    prose = "It follows from the lemma that we have just shown that the sum of all of the terms is finite."
    answers = [prose, "so \\boxed{}", "see figure", "Proof omitted.", "?", "3"]
    loaded = load_text(tmp_path, "q.jsonl", "\n".join(json.dumps({"question": "a", "answer": answer}) for answer in answers))
    assert [question.answer for question in loaded.questions] == [*[None] * 5, "3"]
    assert [trouble.where for trouble in loaded.unreadable] == [f"line {n}" for n in range(1, 6)]
    assert "gives no answer that can be parsed" in loaded.unreadable[0].what


def test_duplicates_stay_with_one_id(tmp_path):
    loaded = load_text(tmp_path, "q.jsonl", '{"question": "a", "answer": 1}\n' * 2)
    assert len(loaded.questions) == 2 and len({question.id for question in loaded.questions}) == 1


def test_a_row_without_a_question_is_dropped_and_named(tmp_path):
    loaded = load_text(tmp_path, "q.jsonl", '{"question": "a"}\n\n{"question": null}\n{"question": " "}\n')
    assert pairs(loaded) == [("a", None)]
    assert [(trouble.where, trouble.what) for trouble in loaded.dropped] == [
        ("line 3", "column 'question' holds no question"), ("line 4", "column 'question' holds no question")
    ]  # fmt: skip


def test_only_the_first_so_many_questions_are_used(tmp_path):
    content = "".join(f'{{"question": "q{n}"}}\n' for n in range(9))
    assert len(load_text(tmp_path, "q.jsonl", content, num_questions=4).questions) == 4


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", "", "q.jsonl' is empty"),
        ("q.jsonl", "{broken", "q.jsonl', line 1: not valid JSON"),
        ("q.jsonl", '{"question": "a"}\n{"question": "b"\n', "q.jsonl', line 3: not valid JSON .*fix or remove this line"),
        ("q.jsonl", '{"question": "a"}\n"b"\n', "q.jsonl', line 2: str where an object like"),
        ("q.json", '[{"question": "a"}\n {"question": "b"}]', "q.json', line 2: not valid JSON .expecting ','"),
        ("q.json", '[{"question": "a"}, 3]', r"item 2 \(line 1\): int where an object"),
        ("q.csv", 'question,answer\na,1\n"b,2\nc,3\n', "q.csv', line 3: the quotes do not fit"),
        ("q.csv", b"question,answer\na,\x00\x01\n", "q.csv', line 2: binary content"),
        ("q.csv", b"PK\x03\x04rest", "an Excel workbook; save the sheet as CSV"),
        ("q.jsonl", b"\x80\x04\x95rest", "a Python pickle, which is never opened"),
        ("q.jsonl", b"\x1f\x8b\x08", "compressed .gzip.; unpack it first"),
        ("q.jsonl", b'{"question": "a"}\n{"question": "\xff"}', "q.jsonl', line 2: not UTF-8 text; save the file as UTF-8"),
        ("q.parquet", b"PAR1nothing", "q.parquet' is a damaged Parquet file"),
        ("q.csv", "question,answer\n", "q.csv' has no rows with questions"),
        ("q.csv", "question,answer\n,4\n", "column 'question' is empty in all 1 rows; set data.question_column"),
    ],
)
def test_what_cannot_be_read_is_one_sentence_with_file_and_line(name, content, message, tmp_path):
    with pytest.raises(DataError, match=message) as raised:
        load_text(tmp_path, name, content)
    assert "\n" not in str(raised.value)


def test_a_file_that_is_not_there_names_the_near_miss(tmp_path):
    (tmp_path / "train.jsonl").touch()
    for name in ("questions.txt", "maths.xlsx"):
        with pytest.raises(DataError, match="there is no such file"):
            training_questions(DataConfig(train=name), 9, 0)
    with pytest.raises(DataError, match=r"there is no such file in .*; did you mean 'train.jsonl'\?"):
        training_questions(DataConfig(train=str(tmp_path / "trian.jsonl")), 9, 0)


def test_held_out_questions_are_never_trained_on():
    data = DataConfig(train="arithmetic")
    train = {q.id for q in training_questions(data, 5000, 0)}
    held_out = {q.id for q in held_out_questions(data, 200)}
    assert len(held_out) == 200 and not train & held_out


def test_without_an_evaluation_source_a_file_has_no_held_out_questions(tmp_path):
    source = rows_file(tmp_path, "q.jsonl", [{"question": "a", "answer": "1"}])
    assert held_out_questions(DataConfig(train=source), 9) == []


def test_the_order_is_whole_passes_and_the_same_for_every_agent():
    questions = [Question(str(n), str(n)) for n in range(5)]
    order = question_order(questions, 12, seed=1)
    assert sorted(q.id for q in order[:5]) == sorted(q.id for q in order[5:10]) == ["0", "1", "2", "3", "4"]
    assert order == question_order(questions, 12, seed=1) != question_order(questions, 12, seed=2)
    assert order[:5] != order[5:10]


@pytest.mark.skipif(not SHARED.exists(), reason="the shared data folder is not beside this checkout")
def test_gsm8k_and_math500_load_with_their_answers():
    gsm8k = training_questions(DataConfig(train=str(SHARED / "gsm8k_test.jsonl")), 9, 0)
    math = training_questions(DataConfig(train=str(SHARED / "math500.json")), 9, 0)
    assert len(gsm8k) == 1319 and all(q.answer and "####" not in q.answer for q in gsm8k)
    assert len(math) == 500 and all(q.answer for q in math)


PROSE = ["He has 3+4=7 apples in total. So he ends with seven.", "I do not know", "We get 3", "There are 12 cats.", "She left.",
         "So he ends with seven", "I don't know", "The total is 12", "Nobody can say!", "Is it five?", "It is 5"]  # fmt: skip
SHORT = ["Evelyn", "New York", "even", "p - q", "10 cubic meters", "5 miles per hour", "June 20", "3 hours and 20 minutes", "5",
         "x = 5", "10 in.", "10:30 a.m.", "3 ft 4 in", "no solution", "I", "\\frac{270}7\\text{ degrees}", "yes"]  # fmt: skip


@pytest.mark.parametrize("gold", PROSE)
def test_prose_is_no_gold_answer_and_is_named(gold, tmp_path):
    loaded = load_text(tmp_path, "q.jsonl", json.dumps({"question": "a", "answer": gold}))
    assert pairs(loaded) == [("a", None)] and len(loaded.unreadable) == 1


@pytest.mark.parametrize("gold", SHORT)
def test_a_short_gold_that_is_no_sentence_is_an_answer(gold, tmp_path):
    assert pairs(load_text(tmp_path, "q.jsonl", json.dumps({"question": "a", "answer": gold}))) == [("a", gold)]


@pytest.mark.parametrize("marked", ["We get 3\n#### 3", "We get \\boxed{3}", "We get it: <answer>3</answer>", "The answer is 3."])
def test_marked_prose_is_a_gold_answer(marked, tmp_path):
    assert pairs(load_text(tmp_path, "q.jsonl", json.dumps({"question": "a", "answer": marked}))) == [("a", "3")]
