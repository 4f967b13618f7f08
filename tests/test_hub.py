"""Datasets in the Hub's layout, through the real loading code, offline."""

import json
import logging
from pathlib import Path

import pytest

from corl_core.config import DataConfig
from corl_core.data.sources import DataError, held_out_questions, load_training, training_questions


@pytest.fixture
def dataset(tmp_path) -> Path:
    """Two configurations, `main` with two splits, described by the README as on the Hub."""
    folder = tmp_path / "owner" / "maths"
    for name, question in (("main/train", "a"), ("main/test", "b"), ("socratic/train", "c")):
        path = folder / f"{name}-00000.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"question": question, "answer": f"so\n#### {ord(question)}"}) + "\n")
    (folder / "README.md").write_text(
        "---\nconfigs:\n- config_name: main\n  data_files:\n  - split: train\n    path: main/train-*\n"
        "  - split: test\n    path: main/test-*\n- config_name: socratic\n  data_files: socratic/train-*\n---\n# Maths\n"
    )
    return folder


def test_config_and_split_choose_the_rows(dataset):
    data = DataConfig(train=str(dataset), config="main", eval=str(dataset))
    assert [(q.question, q.answer) for q in training_questions(data, 9, 0)] == [("a", "97")]
    assert [q.question for q in held_out_questions(data, 9)] == ["b"]
    other = DataConfig(train=str(dataset), config="socratic")
    assert [q.question for q in training_questions(other, 9, 0)] == ["c"]
    assert load_training(other, 9, 0).places == ("row 1",)


def test_another_evaluation_dataset_has_its_own_configuration_and_columns(dataset, tmp_path):
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "test.csv").write_text("problem,answer\nd,100\n")
    data = DataConfig(train=str(dataset), config="main", question_column="question", eval=str(plain))
    assert [q.question for q in held_out_questions(data, 9)] == ["d"]
    data = DataConfig(train=str(plain), train_split="test", eval=str(dataset), eval_config="main")
    assert [q.question for q in held_out_questions(data, 9)] == ["b"]


def test_a_parquet_dataset_with_images_keeps_them_as_bytes(tmp_path):
    from datasets import Dataset, Features, Image, Value

    features = Features({"problem": Value("string"), "image": Image()})
    rows = {"problem": ["a"], "image": [{"bytes": b"not an image", "path": None}]}
    folder = tmp_path / "images"
    folder.mkdir()
    Dataset.from_dict(rows, features).to_parquet(str(folder / "train.parquet"))
    loaded = load_training(DataConfig(train=str(folder)), 9, 0)
    assert loaded.columns.image == "image" and "trains on text only" in loaded.notes[0]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "main.*socratic.*set data.config to one of those"),
        ({"config": "mian"}, "main.*set data.config to one of those"),
        ({"config": "main", "train_split": "dev"}, "train.*set the split .data.train_split, data.eval_split. to one of those"),
    ],
)
def test_a_missing_config_or_split_lists_those_that_exist(fields, message, dataset):
    with pytest.raises(DataError, match=message) as raised:
        training_questions(DataConfig(train=str(dataset), **fields), 9, 0)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("word", "near"), [("nope", ""), ("gsm8k", ""), ("arithmetics", "; did you mean 'arithmetic'?")]
)  # fmt: skip
def test_a_word_without_an_owner_is_never_looked_for_on_the_hub(word, near, monkeypatch, capsys):
    from corl_core.cli import main
    from corl_core.data import sources

    monkeypatch.setattr(sources, "read_dataset", lambda *_: pytest.fail("asked the Hub"))
    remedy = "to load a dataset from the Hub, write it as owner/name"
    with pytest.raises(DataError) as raised:
        training_questions(DataConfig(train=word), 9, 0)
    assert str(raised.value) == f"data '{word}': no file or folder has this name{near}; {remedy}"
    assert main(["check-data", word]) == 2
    assert capsys.readouterr().err == f"error: '{word}' is neither a preset nor a file{near}; {remedy}\n"


def test_the_hubs_retries_are_not_logged_line_by_line(dataset, caplog):
    training_questions(DataConfig(train=str(dataset), config="main"), 9, 0)
    logging.getLogger("huggingface_hub.utils._http").warning("Retrying in 1s [Retry 1/5].")
    assert not caplog.records


def test_an_empty_folder_and_an_unreachable_id_are_sentences(tmp_path):
    with pytest.raises(DataError, match=r"cannot be loaded.*put train.jsonl"):
        training_questions(DataConfig(train=str(tmp_path)), 9, 0)
    with pytest.raises(DataError, match=r"data 'owner/no-such-dataset' .*cannot be loaded"):
        training_questions(DataConfig(train="owner/no-such-dataset"), 9, 0)
    with pytest.raises(DataError, match="there is no such file"):
        training_questions(DataConfig(train="a/b/c"), 9, 0)
