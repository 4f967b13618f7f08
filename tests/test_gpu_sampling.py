"""Decode steps as CUDA graphs, on a GPU: what the eager steps of `test_static_sampling.py` are on a CPU.

    python -m pytest --noconftest tests/test_gpu_sampling.py      (needs nothing beside torch, transformers and pydantic)
"""

import pytest
import torch

from corl_core.bench import shapes
from corl_core.bench.rollouts import Ids
from corl_core.training.rollout import Sampler

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
PROMPTS = ["3 4 5 6 7 8 9", "10 11 12", "20 21 22 23"]


def make(name: str = "tiny", dtype: torch.dtype = torch.float32, tokens: int = 150, eos: int = 7, **settings) -> Sampler:
    model = shapes.make_model(name, "cuda", dtype)
    model.generation_config.eos_token_id = eos
    return Sampler(model, Ids(), tokens, 1.0, path="static", **settings)


def worst(sampler: Sampler, samples) -> float:
    """The largest difference of a log-probability from that of a separate forward pass."""
    found = 0.0
    for prompt, completion, got in zip(samples.prompt_ids, samples.completion_ids, samples.logprobs, strict=True):
        with torch.no_grad():
            ids = torch.tensor([prompt + completion], device="cuda")
            logits = sampler.model(ids).logits[0, len(prompt) - 1 : -1].float()
        drawn = torch.tensor(completion, device="cuda")[:, None]
        wanted = torch.log_softmax(logits, -1).gather(1, drawn)[:, 0]
        found = max(found, float((wanted - torch.tensor(got, device="cuda")).abs().max()))
    return found


def test_replayed_steps_are_the_models_whatever_ends_retires_or_crosses_a_bucket():
    """End token 7 of 55 comes after some 55 tokens, so that rows retire; 150 tokens cross slot 128."""
    sampler = make()
    samples = sampler.sample(PROMPTS, 16, seed=1)
    assert worst(sampler, samples) < 1e-3
    assert any(samples.finished) and len({len(ids) for ids in samples.completion_ids}) > 5
    assert sampler.decoder.costs.num_graphs > 2
    for ids, finished in zip(samples.completion_ids, samples.finished, strict=True):
        assert (ids[-1] == 7) == finished and 7 not in ids[:-1]


def test_a_draw_follows_from_the_seed_before_and_after_the_capture():
    sampler = make()
    first = sampler.sample(PROMPTS, 8, seed=3)
    assert sampler.sample(PROMPTS, 8, seed=3).completion_ids == first.completion_ids
    assert sampler.sample(PROMPTS, 8, seed=4).completion_ids != first.completion_ids


def test_weights_may_change_in_place_between_replays():
    sampler = make()
    sampler.sample(PROMPTS, 8, seed=1)
    graphs = sampler.decoder._run
    with torch.no_grad():
        sampler.model.model.layers[0].mlp.up_proj.weight.mul_(3)
    assert worst(sampler, sampler.sample(PROMPTS, 8, seed=1)) < 1e-3
    assert sampler.decoder._run is graphs


@pytest.mark.parametrize(("dtype", "bf16"), [(torch.bfloat16, False), (torch.float32, True)])
def test_bfloat16_stays_within_its_rounding(dtype, bf16):
    sampler = make("smollm2-135m", dtype, tokens=40, bf16=bf16)
    assert worst(sampler, sampler.sample(PROMPTS, 8, seed=1)) < 0.25


def test_memory_is_given_back_where_it_is_not_to_be_kept():
    sampler = make("smollm2-135m", torch.bfloat16, tokens=40, keep=False)
    before = torch.cuda.memory_allocated()
    sampler.sample(PROMPTS, 8, seed=1)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() < before + 64 * 2**20
