"""vLLM's wiring, against a stand-in (`fake_vllm.py`): which weights it samples from, with which seeds, and what comes back."""

import math
import os
import threading

import pytest
import torch
from fake_vllm import install
from transformers import AutoModelForCausalLM, AutoTokenizer

from corl_core import extras
from corl_core.config import ConfigError, load_config
from corl_core.config_models import RolloutSettings
from corl_core.training.trainer import grpo_arguments
from corl_core.training.vllm_rollouts import LAUNCHERS, VllmSampler, _turn_to_start

PROMPTS = ["47+38=", "9*3="]


def make(base_models, monkeypatch, tick=None, **settings) -> VllmSampler:
    install(monkeypatch)
    folder = base_models["llama"]
    model, tokenizer = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    chosen = RolloutSettings(backend="vllm", **settings)
    return VllmSampler(
        model, tokenizer, 6, 0.7, False, chosen, max_rows=16, max_model_length=128, server="http://127.0.0.1:1", tick=tick
    )  # fmt: skip


def wanted_logprobs(sampler: VllmSampler, samples) -> list[list[float]]:
    found = []
    for prompt, completion in zip(samples.prompt_ids, samples.completion_ids, strict=True):
        with torch.no_grad():
            logits = sampler.model(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1] / 0.7
        found.append(torch.log_softmax(logits, -1).gather(1, torch.tensor(completion)[:, None])[:, 0].tolist())
    return found


@pytest.mark.parametrize("sleeps", [True, False])
def test_it_samples_from_the_weights_of_now(base_models, monkeypatch, sleeps):
    sampler = make(base_models, monkeypatch, vllm_enable_sleep_mode=sleeps)
    for _ in range(2):
        samples = sampler.sample(PROMPTS, 3, seed=1)
        for got, wanted in zip(samples.logprobs, wanted_logprobs(sampler, samples), strict=True):
            assert got == pytest.approx(wanted, abs=1e-4)
        with torch.no_grad():
            for parameter in sampler.model.parameters():
                parameter.mul_(0.9)
    calls = sampler.generation.llm.calls
    once = ["wake weights", "reset", "wake kv_cache", "generate", "sleep"]
    assert calls == (["sleep", *once, *once] if sleeps else ["reset", "generate", "reset", "generate"])


def test_an_engine_that_samples_gives_signs_of_life(base_models, monkeypatch):
    """One at every step of the engine, which here has one rollout at a time."""
    ticks: list[bool] = []
    samples = make(base_models, monkeypatch, tick=lambda: ticks.append(True)).sample(PROMPTS, 3, seed=1)
    assert len(ticks) == sum(map(len, samples.completion_ids)) > 6


def test_the_trainer_does_not_take_itself_for_one_of_several_processes(base_models, monkeypatch):
    for name in LAUNCHERS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("MASTER_PORT", "1234")
    engines = [make(base_models, monkeypatch).generation.llm.environment for _ in range(2)]
    assert {engine["WORLD_SIZE"] for engine in engines} == {"1"}
    ports = {engine["MASTER_PORT"] for engine in engines}
    assert len(ports) == 2 and "1234" not in ports
    assert {name: os.environ.get(name) for name in LAUNCHERS} == dict.fromkeys(LAUNCHERS) | {"MASTER_PORT": "1234"}


def test_engines_of_one_card_start_one_after_another(base_models, monkeypatch, tmp_path, wait_for):
    """Each measures what it takes of the card by what is left of it."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    made: list[VllmSampler] = []
    with _turn_to_start(torch.device("cpu")):  # as another process that starts one
        thread = threading.Thread(target=lambda: made.append(make(base_models, monkeypatch)), daemon=True)
        thread.start()
        thread.join(3)
        assert thread.is_alive() and not made
    wait_for(lambda: made, "the second engine")


def test_the_update_weighs_single_tokens_as_the_released_code_does(small_run, tmp_path):
    assert grpo_arguments(small_run(), tmp_path, 0, use_cpu=True).vllm_importance_sampling_mode == "token_truncate"


def test_weights_are_sent_only_when_they_have_changed(base_models, monkeypatch):
    sampler = make(base_models, monkeypatch, vllm_enable_sleep_mode=False)
    for seed in range(3):
        sampler.sample(PROMPTS, 2, seed=seed)
    assert sampler.generation.llm.calls == ["reset", "generate", "generate", "generate"]


def test_samples_are_those_of_the_other_samplers_but_for_what_is_not_known(base_models, monkeypatch):
    sampler = make(base_models, monkeypatch)
    samples = sampler.sample(PROMPTS, 3, seed=1, num_trained=2)
    assert [sampler.tokenizer.decode(ids) for ids in samples.prompt_ids] == [PROMPTS[0]] * 3 + [PROMPTS[1]] * 3
    assert samples.trained == [True, True, False] * 2 and len(samples.for_training()["logprobs"]) == 4
    end = sampler.tokenizer.eos_token_id
    assert samples.finished == [ids[-1] == end for ids in samples.completion_ids]
    for ids, entropies in zip(samples.completion_ids, samples.entropies, strict=True):
        assert len(entropies) == len(ids) and all(map(math.isnan, entropies))


def test_each_prompt_has_a_seed_of_its_own_that_follows_from_the_agents(base_models, monkeypatch):
    sampler = make(base_models, monkeypatch)
    first, again, other = (sampler.sample([PROMPTS[0]] * 2, 3, seed=seed) for seed in (1, 1, 2))
    assert first.completion_ids == again.completion_ids != other.completion_ids
    seeds = [asked.seed for asked in sampler.generation.llm.asked]
    assert seeds[:2] == seeds[2:4] and len(set(seeds)) == 4
    assert sampler.generation.llm.settings["logprobs_mode"] == "processed_logprobs"


def test_a_server_is_asked_prompt_by_prompt_and_gets_the_weights(base_models, monkeypatch):
    import trl.generation.vllm_generation as generation

    told = []

    class Client:
        def __init__(self, base_url, group_port, connection_timeout):
            told.append((base_url, group_port))

        def init_communicator(self, device):
            pass

        def update_named_params(self, metadata, weights):
            told.append(len(list(weights)) == len(metadata) > 0)

        def reset_prefix_cache(self):
            pass

        def generate(self, prompts, n, temperature, max_tokens, generation_kwargs, **_):
            assert len(prompts) == 1 and temperature == 0.7 and max_tokens == 6
            made = [[generation_kwargs["seed"] % 50 + 3, 2] for _ in range(n)]
            return {"completion_ids": made, "logprobs": [[[-0.5], [None]] for _ in range(n)]}

    monkeypatch.setattr(generation, "VLLMClient", Client)
    ticks: list[bool] = []
    samples = make(base_models, monkeypatch, lambda: ticks.append(True), vllm_mode="server").sample(PROMPTS, 2, seed=1)
    assert len(ticks) == len(PROMPTS)
    assert told == [("http://127.0.0.1:1", 51216), True]
    assert samples.completion_ids[0] == samples.completion_ids[1] != samples.completion_ids[2]
    assert samples.logprobs[0][0] == -0.5 and math.isnan(samples.logprobs[0][1]) and all(samples.finished)


def test_without_vllm_it_says_what_to_install(base_models, monkeypatch):
    monkeypatch.setattr(extras, "lacks", lambda _: True)
    with pytest.raises(extras.MissingPackage, match=r"rollouts\.backend='vllm' needs the package vllm.*pip install '\.\[vllm\]'"):
        make(base_models, monkeypatch)


@pytest.mark.parametrize(
    ("overrides", "text"),
    [
        (["device=cpu"], "vLLM needs a GPU"),
        (["device=cuda", "method=rent"], "method 'rent': vLLM does not tell the entropy"),
        (["device=cuda", "rollouts.vllm_mode=server"], "agent 'llama' has no server"),
        (["device=cuda", "rollouts.vllm_servers={llama: 'http://x'}"], "use vllm_mode 'server', or remove vllm_servers"),
    ],
)
def test_what_vllm_cannot_do_is_refused(overrides, text):
    with pytest.raises(ConfigError, match=text):
        load_config("demo-pair", ["rollouts.backend=vllm", *overrides])
