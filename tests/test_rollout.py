"""Sampling: the same distribution as a plain forward pass, whatever the padding and the cache do."""

import pytest
import torch
from tokenizers.processors import TemplateProcessing
from transformers import AutoModelForCausalLM, AutoTokenizer

from corl_core.config import DataConfig
from corl_core.training.models import is_templated, prompt
from corl_core.training.rollout import Sampler, entropy, self_certainty

PROMPTS = ["47+38=", "9*3=", "52-38="]


@pytest.fixture(scope="module", params=["llama", "qwen2"])
def sampler(request, base_models) -> Sampler:
    folder = base_models[request.param]
    return Sampler(AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder), 24, 0.7)


def test_log_probabilities_entropies_and_certainties_equal_a_separate_forward(sampler):
    """What is taken while sampling, with shared prefixes and a cache, is what a plain forward over the whole text gives."""
    samples = sampler.sample(PROMPTS, 4, seed=1)
    for row, (prompt_ids, completion) in enumerate(zip(samples.prompt_ids, samples.completion_ids, strict=True)):
        with torch.no_grad():
            logits = sampler.model(torch.tensor([prompt_ids + completion])).logits[0, len(prompt_ids) - 1 : -1]
        probabilities = torch.softmax(logits / 0.7, -1)
        drawn = probabilities.gather(1, torch.tensor(completion)[:, None])[:, 0].log()
        uniform = torch.full_like(probabilities, 1 / probabilities.shape[-1])
        divergence = (uniform * (uniform / probabilities).log()).sum(-1)
        expected = (drawn, torch.distributions.Categorical(probabilities).entropy(), divergence)
        got = (samples.logprobs[row], samples.entropies[row], samples.self_certainties[row])
        for values, wanted in zip(got, expected, strict=True):
            torch.testing.assert_close(torch.tensor(values), wanted, atol=2e-5, rtol=1e-4)


def test_entropy_and_certainty_of_four_logits_are_as_worked_out_by_hand():
    """Logits (0,0,0,0), (2,0,0,0) and (10,0,0,0): of the second, Z = e^2 + 3 = 10.389056, p = (.711235, 3 x .096255), so
    H = .711235 * .340752 + .288765 * 2.340752 = .918284 and KL(U || p) = (.340752 + 3 * 2.340752) / 4 - log 4 = .454459."""
    logp = torch.log_softmax(torch.tensor([[0.0, 0, 0, 0], [2.0, 0, 0, 0], [10.0, 0, 0, 0]]), -1)
    assert entropy(logp).tolist() == pytest.approx([1.386294, 0.918284, 0.001498], abs=1e-6)
    assert self_certainty(logp).tolist() == pytest.approx([0.0, 0.454459, 6.113842], abs=1e-5)


def test_a_rows_measures_do_not_depend_on_the_other_rows(sampler):
    """The same prompts in another order, with another prompt length beside them, give each row the same entropies."""
    greedy = Sampler(sampler.model, sampler.tokenizer, 6, 1e-3)
    alone = {text: greedy.sample([text], 1, seed=0) for text in PROMPTS}
    together = greedy.sample(PROMPTS[::-1], 1, seed=0)
    for row, text in enumerate(PROMPTS[::-1]):
        assert together.texts[row] == alone[text].texts[0]
        assert together.entropies[row] == pytest.approx(alone[text].entropies[0], abs=1e-3)


def test_groups_are_contiguous_and_hold_their_own_prompt(sampler):
    samples = sampler.sample(PROMPTS, 4, seed=1)
    assert [sampler.tokenizer.decode(ids) for ids in samples.prompt_ids] == [p for p in PROMPTS for _ in range(4)]
    assert len(samples.texts) == len(samples.completion_ids) == 12


def test_a_draw_follows_from_the_seed_alone(sampler):
    first = sampler.sample(PROMPTS, 4, seed=5)
    torch.rand(17)
    assert sampler.sample(PROMPTS, 4, seed=5).completion_ids == first.completion_ids
    assert sampler.sample(PROMPTS, 4, seed=6).completion_ids != first.completion_ids


def test_a_completion_ends_with_its_first_end_token_or_is_cut(sampler):
    samples = sampler.sample(PROMPTS, 32, seed=2)
    end = sampler.tokenizer.eos_token_id
    for ids, finished in zip(samples.completion_ids, samples.finished, strict=True):
        assert (ids[-1] == end) == finished and end not in ids[:-1]
        assert finished or len(ids) == 24
    assert any(samples.finished)


def test_first_tokens_come_as_often_as_the_model_says(sampler):
    with torch.no_grad():
        logits = sampler.model(torch.tensor([sampler.tokenizer(PROMPTS[0])["input_ids"]])).logits[0, -1]
    expected = torch.softmax(logits / 0.7, -1)
    drawn = torch.tensor([ids[0] for ids in sampler.sample(PROMPTS[:1], 4000, seed=3).completion_ids])
    observed = torch.bincount(drawn, minlength=len(expected)) / 4000
    assert (observed - expected).abs().max() < 4 * (0.25 / 4000) ** 0.5  # four standard errors at the worst p


def test_the_model_is_left_in_the_mode_it_was_in(sampler):
    for training in (True, False):
        sampler.model.train(training)
        sampler.sample(PROMPTS, 1, seed=0)
        assert sampler.model.training is training


@pytest.mark.parametrize(("chat_template", "expected"), [("auto", "<bos>Q47+38="), ("never", "<bos>47+38=")])
def test_a_prompt_begins_with_one_bos_whether_the_template_or_the_tokenizer_writes_it(base_models, chat_template, expected):
    """Llama-like tokenizers add a BOS of their own, and their chat templates write one too."""
    tokenizer = AutoTokenizer.from_pretrained(base_models["llama"])
    tokenizer.chat_template = "{{ bos_token }}Q{{ messages[0]['content'] }}"
    bos = (tokenizer.bos_token, tokenizer.bos_token_id)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(single="<bos> $A", special_tokens=[bos])
    data = DataConfig(prompt_template="{question}", chat_template=chat_template)
    model = AutoModelForCausalLM.from_pretrained(base_models["llama"])
    sampler = Sampler(model, tokenizer, 4, 1.0, templated=is_templated(data, tokenizer))
    (ids,) = sampler.sample([prompt("47+38=", data, tokenizer)], 1, seed=0).prompt_ids
    assert tokenizer.decode(ids) == expected.replace("Q", "")  # the tiny tokenizer has no capital letters
    assert ids.count(tokenizer.bos_token_id) == 1
