"""What ends a completion, with tokenizers and templates built here in the manner of Qwen, Llama 3 and plain base models."""

import pytest
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers import models as tokenizer_models
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from corl_core.config import load_config
from corl_core.training import models, stops
from corl_core.training.rollout import Sampler

CHATML = (
    "{% for m in messages %}{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
LLAMA3 = (
    "{{ '<|begin_of_text|>' }}{% for m in messages %}{{ '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' }}"
    "{{ m['content'] | trim + '<|eot_id|>' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}"
)
NO_SYSTEM = "{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}" + CHATML
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
SPECIAL += ["<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]


def tokenizer(template: str | None, eos: str = "<|endoftext|>") -> PreTrainedTokenizerFast:
    """A byte-level tokenizer with the special tokens of both families, ids 0 to 6 in the order of SPECIAL."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    inner = Tokenizer(tokenizer_models.BPE(vocab={c: i for i, c in enumerate([*SPECIAL, *alphabet])}, merges=[]))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made = PreTrainedTokenizerFast(tokenizer_object=inner, eos_token=eos, padding_side="left")
    made.add_special_tokens({"additional_special_tokens": [token for token in SPECIAL if token != eos]})
    made.chat_template = template
    return made


def model(eos_token_id: int | list[int] | None) -> LlamaForCausalLM:
    sizes = dict(vocab_size=263, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=1)
    made = LlamaForCausalLM(LlamaConfig(**sizes))
    made.generation_config.eos_token_id = eos_token_id
    return made


@pytest.mark.parametrize(
    ("template", "eos", "of_model", "templated", "expected"),
    [
        (CHATML, "<|endoftext|>", 0, True, [0, 2]),  # Qwen2.5 base: its chat template ends turns with <|im_end|>
        (CHATML, "<|im_end|>", [2, 0], True, [2, 0]),  # Qwen2.5 instruct: both are named already
        (LLAMA3, "<|eot_id|>", [3, 6], True, [3, 6]),  # Llama 3 instruct: several
        (LLAMA3, "<|eot_id|>", None, True, 6),
        (None, "<|endoftext|>", 0, False, 0),  # a base model without a template
        (CHATML, "<|endoftext|>", 0, False, 0),  # chat_template: never
    ],
)
def test_every_token_that_ends_a_completion_is_named(template, eos, of_model, templated, expected):
    llm = model(of_model)
    stops.name_all(llm, tokenizer(template, eos), templated)
    assert llm.generation_config.eos_token_id == expected


def test_the_end_of_a_turn_is_what_the_template_puts_behind_an_answer():
    assert stops.end_of_turn(tokenizer(CHATML)) == SPECIAL.index("<|im_end|>")
    assert stops.end_of_turn(tokenizer(LLAMA3)) == SPECIAL.index("<|eot_id|>")
    assert stops.end_of_turn(tokenizer(None)) is None
    assert stops.end_of_turn(tokenizer("{% for m in messages %}{{ m['content'] }} and on{% endfor %}")) is None


def test_the_sampler_stops_at_each_of_them():
    llm, words = model(0), tokenizer(CHATML)
    stops.name_all(llm, words, templated=True)
    assert Sampler(llm, words, 4, 1.0)._eos.tolist() == [0, 2]


def test_a_generation_config_that_transformers_would_not_save_is_mended(tmp_path):
    llm = model(0)
    llm.generation_config.update(do_sample=False, temperature=0.6, top_p=0.9)
    stops.name_all(llm, tokenizer(None), templated=False)
    llm.save_pretrained(tmp_path)
    assert (tmp_path / "generation_config.json").is_file()


def test_instruct_models_get_their_template_and_base_models_the_plain_prompt():
    data = load_config("demo", ["data.prompt_template='{question} Box it.'", "data.system_prompt=Be brief."]).data
    assert models.prompt("1+1?", data, tokenizer(None)) == "1+1? Box it."
    assert models.prompt("1+1?", data, tokenizer(CHATML)) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n1+1? Box it.<|im_end|>\n<|im_start|>assistant\n"
    )
    assert models.prompt("1+1?", data.model_copy(update={"chat_template": "never"}), tokenizer(CHATML)) == "1+1? Box it."
    with pytest.raises(models.ModelError, match="no chat template; use 'auto'"):
        models.prompt("1+1?", data.model_copy(update={"chat_template": "always"}), tokenizer(None))


def test_a_template_that_takes_no_system_message_is_told_in_words():
    data = load_config("demo", ["data.system_prompt=Be brief."]).data
    with pytest.raises(models.ModelError, match=r"refuses a system message .*System role not supported.*system_prompt=''"):
        models.prompt("1+1?", data, tokenizer(NO_SYSTEM))
    assert "im_start" in models.prompt("1+1?", data.model_copy(update={"system_prompt": ""}), tokenizer(NO_SYSTEM))


def test_a_templated_prompt_gets_no_second_begin_token():
    """Llama 3's template writes <|begin_of_text|>; tokenizing it must not add another."""
    words = tokenizer(LLAMA3)
    data = load_config("demo").data
    ids = words(models.prompt("1+1?", data, words), add_special_tokens=not models.is_templated(data, words)).input_ids
    assert ids.count(SPECIAL.index("<|begin_of_text|>")) == 1


def test_another_tokenizer_is_loaded_and_one_that_is_too_large_is_refused(tmp_path):
    llm = model(0)
    llm.save_pretrained(tmp_path / "model")
    tokenizer(CHATML).save_pretrained(tmp_path / "words")
    loaded, words = models.pretrained(tmp_path / "model", None, "auto", tokenizer=str(tmp_path / "words"))
    assert words.chat_template == CHATML and words.padding_side == "left" and loaded.config.vocab_size == 263
    large = tokenizer(CHATML)
    large.add_tokens([f"word{i}" for i in range(9)])
    large.save_pretrained(tmp_path / "large")
    with pytest.raises(models.ModelError, match=r"has 272 tokens and model='.*' knows 263"):
        models.pretrained(tmp_path / "model", None, "auto", tokenizer=str(tmp_path / "large"))


def test_a_tokenizer_is_pinned_by_its_revision(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda where, **options: asked.append((where, options["revision"])))
    models.load_tokenizer("org/model", "abc")
    models.load_tokenizer("org/model", "abc", tokenizer="org/words@v2")
    models.load_tokenizer("org/model", "abc", tokenizer="org/words")
    (tmp_path / "a@b").mkdir()
    models.load_tokenizer("org/model", "abc", tokenizer=str(tmp_path / "a@b"))
    assert asked == [("org/model", "abc"), ("org/words", "v2"), ("org/words", None), (str(tmp_path / "a@b"), None)]
