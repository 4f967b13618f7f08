"""Tiny models and their schools: names, the tokenizer, the cache, and that equal arguments give equal weights."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from corl_core.tiny_names import DEFAULT_SCHOOL, FAMILIES, SCHOOLS, find_school, is_tiny, parse_tiny
from corl_core.training import schools, warm_up
from corl_core.training.families import EOS, PAD, VOCABULARY, make_model, make_tokenizer
from corl_core.training.schools import Recipe, base_model

SHORT = Recipe(num_steps=3, batch_size=8)


def make(cache_dir, family="llama", seed=0, school=None, recipe=SHORT, progress=None):
    return base_model(family, width=32, seed=seed, school=school, cache_dir=cache_dir, recipe=recipe, progress=progress)


def weights(folder):
    return load_file(folder / "model.safetensors")


def test_a_tiny_name_is_family_and_width():
    assert parse_tiny("tiny:llama") == ("llama", 64)
    assert parse_tiny("tiny:qwen2:96") == ("qwen2", 96)
    assert is_tiny("tiny:llama")
    assert not is_tiny("org/tiny")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("tiny:gpt", r"family='gpt': unknown tiny family; choose one of llama, qwen2, gpt_neox"),
        ("tiny:", r"model='tiny:': a tiny model is written tiny:FAMILY"),
        ("llama", r"model='llama': a tiny model is written tiny:FAMILY"),
        ("tiny:llama:wide", r"model='tiny:llama:wide': the width must be a whole number"),
        ("tiny:llama:", r"model='tiny:llama:': the width must be a whole number"),
        ("tiny:llama:64:2", r"model='tiny:llama:64:2': the width must be a whole number"),
        ("tiny:llama:30", r"width=30: must be a multiple of 16 from 16 to 512"),
        ("tiny:llama:9999", r"width=9999: must be a multiple of 16 from 16 to 512"),
    ],
)
def test_an_impossible_tiny_name_says_what_is_possible(name, message):
    with pytest.raises(ValueError, match=message):
        parse_tiny(name)


def test_an_unknown_school_names_the_known_ones(tmp_path):
    with pytest.raises(ValueError, match="school='eton': unknown school; choose one of smaller-from-larger"):
        make(tmp_path, school="eton")
    assert not list(tmp_path.iterdir())


def test_families_slip_in_different_operations():
    weak = [set(find_school(family, None).slip_frac) for family in FAMILIES]
    assert sorted(map(sorted, weak)) == [["add"], ["mul"], ["sub"]]
    assert set(DEFAULT_SCHOOL.values()) <= set(SCHOOLS)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_base_model_loads_with_the_auto_classes(family, tmp_path):
    folder = make(tmp_path, family)
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    assert model.config.model_type == family
    assert {key.removeprefix("model.") for key in weights(folder)} <= {key.removeprefix("model.") for key in model.state_dict()}
    assert (model.generation_config.eos_token_id, model.generation_config.pad_token_id) == (EOS, PAD)
    assert (tokenizer.eos_token_id, tokenizer.pad_token_id, tokenizer.padding_side) == (EOS, PAD, "left")
    assert len(tokenizer) == len(VOCABULARY) == model.config.vocab_size
    text = "47+38=7+8=15; 4\n\\boxed{85}"
    ids = tokenizer(text)["input_ids"]
    assert [VOCABULARY[i] for i in ids] == [*"47+38=7+8=15; 4\n", "\\boxed{", "8", "5", "}"]
    assert tokenizer.decode([*ids, EOS, PAD], skip_special_tokens=True) == text


def test_two_makes_of_one_seed_are_equal_and_another_seed_is_not(tmp_path):
    torch.manual_seed(1)
    first = make(tmp_path / "a")
    torch.manual_seed(2)
    second, other = make(tmp_path / "b"), make(tmp_path / "b", seed=1)
    assert first.name == second.name
    assert all(torch.equal(tensor, weights(second)[key]) for key, tensor in weights(first).items())
    assert not all(torch.equal(tensor, weights(other)[key]) for key, tensor in weights(first).items())


def test_making_a_model_leaves_the_random_state_and_the_threads_alone(tmp_path):
    state, num_threads = torch.get_rng_state(), torch.get_num_threads()
    make(tmp_path)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.get_num_threads() == num_threads


def test_a_second_call_finds_the_cache_and_trains_nothing(tmp_path):
    steps = []
    folder = make(tmp_path, progress=lambda done, total: steps.append((done, total)))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert make(tmp_path, progress=lambda done, total: pytest.fail("trained again")) == folder


def test_another_school_recipe_or_seed_is_another_folder(tmp_path):
    longer = Recipe(num_steps=4, batch_size=8)
    folders = {make(tmp_path), make(tmp_path, seed=1), make(tmp_path, school="careless"), make(tmp_path, recipe=longer)}
    assert len(folders) == 4


def test_a_warm_up_that_breaks_off_leaves_nothing_that_looks_finished(tmp_path, monkeypatch):
    def disk_full(*_args, **_kwargs):
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(PreTrainedTokenizerFast, "save_pretrained", disk_full)
        with pytest.raises(OSError, match="no space left"):
            make(tmp_path)
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    assert (make(tmp_path) / "model.safetensors").exists()


def test_a_folder_left_half_written_by_a_killed_process_is_never_used(tmp_path):
    name = schools.folder_name("llama", 32, 0, find_school("llama", None), SHORT)
    (tmp_path / f".{name}-killed").mkdir()
    (tmp_path / f".{name}-killed" / "config.json").write_text("{")
    folder = make(tmp_path)
    assert folder.name == name
    AutoModelForCausalLM.from_pretrained(folder)


def test_two_who_ask_at_once_make_it_once(tmp_path):
    makes = []
    with ThreadPoolExecutor(2) as pool:
        waits = [pool.submit(make, tmp_path, progress=lambda done, total: makes.append(done)) for _ in range(2)]
        folders = {wait.result() for wait in waits}
    assert len(folders) == 1
    assert makes == [1, 2, 3]


def test_only_the_solution_and_its_end_carry_labels():
    tokens, labels = warm_up.encode(make_tokenizer(), ["1+1=", "12+3="], ["2", "15"])
    assert tokens.shape == labels.shape == (2, 8)
    assert (labels != warm_up.IGNORED).int().tolist() == [[0, 0, 0, 0, 1, 1, 0, 0], [0, 0, 0, 0, 0, 1, 1, 1]]
    assert labels[0, 5] == labels[1, 7] == EOS
    assert tokens[0, 6:].tolist() == [PAD, PAD]


@pytest.mark.parametrize("family", FAMILIES)
def test_padding_on_the_right_needs_no_attention_mask(family):
    model = make_model(family, 32, 0).eval()
    tokens, labels = warm_up.encode(make_tokenizer(), ["1+1=", "12+34="], ["2", "46"])
    with torch.no_grad():
        bare = model(input_ids=tokens, labels=labels).loss
        masked = model(input_ids=tokens, labels=labels, attention_mask=(tokens != PAD).long()).loss
    assert bare.item() == pytest.approx(masked.item(), abs=1e-5)
