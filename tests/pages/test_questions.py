"""New run page, questions: uploads, guessed columns, findings, the prompt, paraphrases."""

import json

import pytest
import yaml

from tests.pages.test_new_run import field

ROWS = [
    {"problem": f"What is {n}+1?", "solution": f"\\boxed{{{n + 1}}}", "rephrased": f"{n} plus 1?", "level": 1} for n in range(9)
]  # fmt: skip


def lines(rows: list[dict]) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.fixture
def with_file(app, empty_store, tmp_path):
    """The page with a file of questions typed in."""

    def opened(rows: list[dict]):
        path = tmp_path / "q.jsonl"
        path.write_bytes(lines(rows))
        at = app(empty_store, "new_run")
        field(at, "data.train").set_value(str(path)).run()
        return at

    return opened


def told(text: str) -> str:
    """What a person reads, without the escapes."""
    return text.replace("\\", "")


def uploader(at):
    return at.file_uploader[0]


def shown_yaml(at) -> dict:
    return yaml.safe_load(at.code[1].value)


def table(at, column: str) -> list:
    frame = next(element.value for element in at.dataframe if column in element.value.columns)
    return list(frame[column])


def test_guessed_columns_are_shown_and_can_be_changed(with_file, said):
    at = with_file(ROWS)
    assert not at.exception and not at.error
    assert "problem (guessed)" in field(at, "data.question_column").options
    assert "solution (guessed)" in field(at, "data.answer_column").options
    assert "none found" in field(at, "data.choices_column").options
    assert table(at, "True answer")[:3] == ["1", "2", "3"] == table(at, "Counted as")[:3]
    field(at, "data.answer_column").select("level").run()
    assert shown_yaml(at)["data"]["answer_column"] == "level"
    assert table(at, "True answer")[:3] == ["1", "1", "1"]
    field(at, "data.answer_column").select("").run()
    assert "answer_column" not in shown_yaml(at)["data"]


def test_the_exact_prompt_is_shown_and_says_what_a_chat_template_does(with_file, said):
    at = with_file(ROWS)
    field(at, "data.prompt_template").set_value("Q: {question}\nA: ").run()
    assert "Q: What is 0+1?\nA:" in [text.value for text in at.text]
    assert "With the spaces or line breaks around it" in said(at)
    assert "Exactly this text, which the models continue." in said(at)
    field(at, "data.chat_template").select("always").run()
    assert "As the user's message, in each model's own chat template." in said(at)


def test_findings_and_refusals_are_on_the_page(with_file, said):
    prose = "The reader will find this in the figure on the next page, beside all of the other values."
    at = with_file([*({**row, "note": prose} for row in [*ROWS, ROWS[0]]), {"problem": "Empty?"}, {"problem": None}])
    assert "1 training questions repeat another" in said(at).replace("\\", "")
    assert "1 training rows are left out: line 12" in said(at).replace("\\", "")
    field(at, "data.answer_column").select("note").run()
    field(at, "method").select("ground_truth").run()
    assert ":material/block:" in said(at) and "0 of 11 true answers parse" in said(at).replace("\\", "")
    assert at.button(key="launch").disabled and "Launch is off: method 'ground_truth' needs true answers" in told(said(at))


def test_paraphrases_stand_beside_their_questions_and_agents_are_chosen_to_read_them(with_file):
    at = with_file([{**ROWS[0], "rephrased": "7 plus 1?"}, *ROWS[1:]])
    assert table(at, "Numbers changed")[:2] == ["lost 0; added 7", ""]
    at.pills[0].select("qwen2").run()
    assert [agent.get("paraphrase", False) for agent in shown_yaml(at)["agents"]] == [False, True, False]


@pytest.mark.parametrize("content", ['{"problem": "a"}\n{broken', '{"frage": "a"}', ""])
def test_data_that_cannot_be_used_is_a_sentence_on_the_page(content, app, empty_store, tmp_path):
    path = tmp_path / "q.jsonl"
    path.write_text(content)
    at = app(empty_store, "new_run")
    field(at, "data.train").set_value(str(path)).run()
    assert not at.exception and len(at.error) == 1 and "jsonl" in at.error[0].value
    assert at.button(key="launch").disabled
    field(at, "data.train").set_value(str(tmp_path / "no.csv")).run()
    assert "there is no such file" in at.error[0].value.replace("\\", "")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("", "raining questions are empty: give 'arithmetic', a file or a dataset id"),
        ("/etc/passwd", "/etc/passwd"),
        ("no.csv", "there is no such file"),
        ("arithmetics", "did you mean 'arithmetic'?; to load a dataset from the Hub, write it as owner/name"),
    ],
)
def test_launch_is_off_with_the_reason_beside_it_while_the_source_is_refused(source, message, app, empty_store):
    at = app(empty_store, "new_run")
    assert not at.button(key="launch").disabled
    field(at, "data.train").set_value(source).run()
    assert not at.exception and message in told(at.error[0].value) and at.button(key="launch").disabled
    (beside,) = [told(caption.value) for caption in at.caption if "Launch is off" in caption.value]
    assert message in beside
    field(at, "data.train").set_value("arithmetic").run()
    assert not at.button(key="launch").disabled and not any("Launch is off" in caption.value for caption in at.caption)


def test_an_upload_becomes_the_training_questions_under_a_name_of_its_own(app, empty_store):
    at = app(empty_store, "new_run")
    uploader(at).set_value(("../../etc/passwd", lines(ROWS), "text/plain")).run()
    assert not at.exception and not at.error
    (kept,) = (empty_store / "uploads").iterdir()
    assert kept.suffix == ".jsonl" and kept.read_bytes() == lines(ROWS) and len(kept.stem) == 16
    assert field(at, "data.train").value == str(kept.resolve())
    assert table(at, "True answer")[0] == "1"


def test_an_accepted_upload_is_called_by_the_persons_name_and_never_as_markup(app, empty_store, said):
    at = app(empty_store, "new_run")
    uploader(at).set_value(("my **algebra**.jsonl", lines(ROWS), "text/plain")).run()
    assert "9 training questions from 'my **algebra**.jsonl'" in told(said(at)) and "**algebra**" not in said(at)
    (kept,) = (empty_store / "uploads").iterdir()
    assert not any(kept.stem in element.value for element in at.markdown)
    uploader(at).set_value(("frage.csv", b"frage\nWas?\n", "text/csv")).run()
    assert "Data 'frage.csv'" in told(at.error[0].value) and at.button(key="launch").disabled


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\my\\q.csv", "q.csv"),
        ("a\n b\x00.csv", "a b .csv"),
        ("", "upload"),
        ("x" * 99, "x" * 80),
    ],
)
def test_the_name_of_an_upload_is_one_short_line(given, name):
    from corl_core.data.uploads import called

    assert called(given) == name


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("q.jsonl", b"\x80\x04\x95 a pickle", "a Python pickle, which is never opened"),
        ("q.csv", b"PK\x03\x04", "an Excel workbook; save the sheet as CSV"),
        ("q.csv", b"", "is empty"),
        ("q.parquet", b"PAR1 damaged", "a damaged Parquet file"),
        ("q.csv", b"question,answer\n" + b"x" * (10 << 20), "10 MB are allowed"),
    ],
)
def test_an_upload_that_cannot_be_used_is_refused_and_not_kept(name, content, message, app, empty_store):
    at = app(empty_store, "new_run")
    uploader(at).set_value((name, content, "text/csv")).run()
    assert not at.exception and message in told(at.error[0].value) and f"'{name}'" in told(at.error[0].value)
    assert not (empty_store / "uploads").exists() and field(at, "data.train").value == "arithmetic"


def test_text_from_the_data_is_never_markup(with_file, said):
    at = with_file(
        [{"problem": "a", "answer": "<img src=x> **bold** and more words than an answer ever has, one two three four"}] * 8
    )
    assert "\\<img" in said(at) and "**bold**" not in said(at)


def test_a_dataset_is_read_only_when_asked(app, empty_store, monkeypatch):
    from corl_core.data import sources
    from corl_core.data.tables import Row, Table

    asked = []

    def read(*arguments):
        asked.append(arguments)
        return Table((Row("row 1", {"question": "2+2?", "answer": "4"}),) * 8)

    monkeypatch.setattr(sources, "read_dataset", read)
    at = app(empty_store, "new_run")
    field(at, "data.train").set_value("owner/maths").run()
    assert not asked and field(at, "data.train_split").value == "train"
    next(button for button in at.button if button.label.startswith("Load the dataset")).click().run()
    assert asked[0] == ("owner/maths", None, "train", None) and table(at, "True answer")[0] == "4"
