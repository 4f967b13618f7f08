"""The learning check: warmed-up copies of a model, the runs that are made of them, and the table."""

import json

import pytest
import torch
from safetensors.torch import load_file

from corl_core.bench import learn
from corl_core.training import warmed
from corl_core.training.families import make_model, make_tokenizer
from corl_core.training.warm_up import IGNORED, Recipe, encode


@pytest.fixture
def blank(tmp_path, monkeypatch):
    """A folder with an untrained model, as a pretrained one would lie there."""
    monkeypatch.setenv("CORL_CACHE", str(tmp_path / "cache"))
    make_model("llama", 16, seed=3).save_pretrained(tmp_path / "blank")
    make_tokenizer().save_pretrained(tmp_path / "blank")
    return tmp_path / "blank"


def test_a_model_is_warmed_up_once_for_each_school(blank):
    recipe = Recipe(num_steps=2, batch_size=4)
    first, again, other = (
        warmed.warmed(str(blank), None, school, recipe, 0, "cpu") for school in ("forgets-carry", "forgets-carry", "drops-carry")
    )
    assert first == again != other
    before, after, its = (load_file(folder / "model.safetensors") for folder in (blank, first, other))
    name = next(iter(before))
    assert not torch.equal(before[name], after[name]) and not torch.equal(after[name], its[name])


def test_the_command_prints_the_folders_and_names_a_wrong_school(blank, capsys):
    assert warmed.main([str(blank), "--school", "careless", "--steps", "1", "--batch-size", "2", "--device", "cpu"]) == 0
    (school, folder), *_ = json.loads(capsys.readouterr().out).items()
    assert school == "careless" and "warmed-blank-careless" in folder
    assert warmed.main([str(blank), "--school", "eton", "--device", "cpu"]) == 2
    assert "unknown school" in capsys.readouterr().err


def test_a_solution_is_learned_with_the_end_and_the_padding_of_the_models_own_tokenizer():
    """`1` is token 5, `=` token 17; with <unk> (3) for an end and <bos> (1) for padding a short row ends 3 1."""
    words = make_tokenizer()
    words.eos_token, words.pad_token = "<unk>", "<bos>"
    tokens, labels = encode(words, ["1=", "1=1="], ["1", "1"])
    assert tokens[0].tolist()[-3:] == [3, 1, 1]
    assert labels[0].tolist() == [IGNORED, IGNORED, *tokens[0].tolist()[2:4], IGNORED, IGNORED]


def test_the_runs_differ_in_their_reward_alone():
    folders = {school: f"/models/{school}" for school in learn.SCHOOLS}
    check, own = learn.Check("m", steps=40), ["grpo.learning_rate=1e-6"]
    configs = [learn.configuration(check, folders, method, own) for method in learn.METHODS]
    assert [config.method for config in configs] == ["ground_truth", "corl", "ttrl"]
    same = [config.model_dump(exclude={"name", "method"}) for config in configs]
    assert same[0] == same[1] == same[2]
    assert (same[0]["grpo"]["learning_rate"], same[0]["grpo"]["max_steps"], same[0]["eval"]["every_steps"]) == (1e-6, 40, 10)
    assert all(learn.SCHOOLS[school] in ("add", "sub") for school in folders)


def test_the_table_says_what_was_done_and_has_a_line_an_agent():
    rows = [learn.Row("corl", "forgets-carry", 0.5, 0.625, 0.75, 0.875, 0.25, 1.0, 1.5, 61.0)]
    head, _, *lines = learn.table(learn.Check("/models/smol", steps=40), rows).splitlines()
    assert head.startswith("smol: two copies, each warmed up for 300 steps") and "40 steps of GRPO" in head
    assert lines[-1] == "| Co-RL | forgets-carry | 0.50 | 0.62 | 0.75 | 0.88 | 0.25 | 1.00 | 1.50 | 61 |"
