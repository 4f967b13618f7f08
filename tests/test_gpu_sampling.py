"""Decode steps as CUDA graphs, on a GPU: what the eager steps of `test_static_sampling.py` are on a CPU.

    python -m pytest --noconftest tests/test_gpu_sampling.py      (needs nothing beside torch, transformers and pydantic)
"""

import pytest
import torch

from corl_core.bench import shapes
from corl_core.bench.rollouts import Ids
from corl_core.training.rollout import Sampler
from corl_core.training.sampling import attention, draw, graphs, lean, static
from corl_core.training.sampling.cache import heads_of
from corl_core.training.sampling.static import StaticDecoder

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
    sampler.sample(PROMPTS, 8, seed=1)  # with the workspaces of libraries, which stay
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    sampler.sample(PROMPTS, 8, seed=1)
    torch.cuda.synchronize()
    assert torch.cuda.memory_allocated() < before + 64 * 2**20


def test_graphs_beyond_the_most_are_dropped_and_captured_again(monkeypatch):
    monkeypatch.setattr(graphs, "MOST", 2)
    sampler = make()
    first = sampler.sample(PROMPTS, 16, seed=1)
    assert sampler.decoder.costs.num_graphs == 2
    again = sampler.sample(PROMPTS, 16, seed=1)
    assert again.completion_ids == first.completion_ids and worst(sampler, again) < 1e-3


@pytest.mark.parametrize("way", [None, *attention.WAYS])
def test_every_way_of_attention_is_the_models(way):
    sampler = make("smollm2-135m", torch.bfloat16, tokens=40)
    heads = heads_of(sampler.model.config)
    if way and way not in dict(attention.agreeing(*attention.trial(heads, 24, 128, "cuda", torch.bfloat16))):
        assert way not in ("products", "kernel")
        pytest.skip("this card has no kernel for it")
    sampler.decoder = StaticDecoder(sampler.model, way=way)
    assert worst(sampler, sampler.sample(PROMPTS, 8, seed=1)) < 0.25
    assert sampler.decoder.way == (way or "kernel")


@pytest.mark.parametrize("rows", [2, 100], ids=["split", "whole"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize(("heads", "group", "dim"), [(2, 8, 128), (4, 1, 64), (1, 3, 80), (1, 20, 256)])
def test_the_kernel_reads_what_a_row_sees_and_nothing_else(heads, group, dim, dtype, rows):
    draw = torch.Generator("cuda").manual_seed(1)
    query, key, value = (
        torch.randn(rows, heads, num, dim, device="cuda", dtype=dtype, generator=draw) for num in (group, 1300, 1300)
    )
    start = torch.arange(rows, device="cuda") * 1100 // rows
    slot = torch.tensor([1250], device="cuda")
    bias, bounds = (make(start, slot, 1300, torch.float32) for make in (attention.bias_of, attention.bounds_of))
    wanted = attention.products(query.float(), key.float(), value.float(), bias, dim**-0.5)
    key[:, :, 1251:] = value[:, :, 1251:] = float("nan")
    for row in range(1, rows):
        key[row, :, : start[row]] = value[row, :, : start[row]] = float("nan")
    got = attention.WAYS["kernel"].attend(query, key, value, bounds, dim**-0.5).float()
    assert float((got - wanted).norm() / wanted.norm()) < 5e-3


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("words", [50, 151_936])
def test_a_draw_in_one_kernel_is_the_draw(words, dtype):
    generator = torch.Generator("cuda").manual_seed(1)
    logits = 4 * torch.randn(40, words, device="cuda", dtype=dtype, generator=generator)
    noise = torch.empty(40, words, device="cuda").exponential_(generator=generator)
    scale = torch.full((1,), 1.25, device="cuda")
    assert draw.has_kernel(logits.device, dtype)
    wanted, measures = draw.draw(logits.cpu(), scale.cpu(), noise.cpu())
    token, measured = draw.draw(logits, scale, noise)
    assert token.tolist() == wanted.tolist()
    assert torch.allclose(measured.cpu(), measures, atol=1e-3)


def test_small_functions_are_one_kernel_for_any_number_of_rows():
    torch._dynamo.reset()
    for rows, length in ((3, 1), (128, 1), (40, 1), (16, 91), (5, 33)):
        q, k = (torch.randn(rows, heads, length, 128, device="cuda", dtype=torch.bfloat16) for heads in (16, 2))
        cos, sin = (torch.randn(rows, 1, length, 128, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        wanted = lean.rotated(*(part.cpu().float() for part in (q, k, cos, sin)))
        for one, other in zip(lean.rotated(q, k, cos, sin), wanted, strict=True):
            assert one.is_contiguous() and float((one.cpu().float() - other).norm() / other.norm()) < 5e-3
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as watched:
        lean.rotated(q, k, cos, sin)
        torch.cuda.synchronize()
    assert sum(one.count for one in watched.key_averages() if "triton" in one.key) == 1


def test_a_capture_that_fails_leaves_the_stream_and_the_other_path_in_order(monkeypatch):
    """A copy to the host, which no graph can hold."""
    told = []
    sampler = make(tokens=20, told=lambda *line: told.append(line))
    sampler._may_fall_back = True
    stream, own = torch.cuda.current_stream(), graphs.Graphs._capture

    def capture(self, call):
        return own(self, lambda: (call(), self._state.token.cpu() if torch.cuda.is_current_stream_capturing() else None))

    monkeypatch.setattr(graphs.Graphs, "_capture", capture)
    samples = sampler.sample(PROMPTS, 8, seed=1)
    assert sampler.path == "shared" and len(told) == 1 and torch.cuda.current_stream() == stream
    assert worst(sampler, samples) < 1e-3
    torch.cuda.empty_cache()
    assert 0 <= float(torch.rand(1, device="cuda")) < 1, "CUDA's default generator is usable"
    assert sampler.sample(PROMPTS, 8, seed=1).completion_ids == samples.completion_ids


def test_memory_that_runs_out_once_is_met_with_smaller_goes(monkeypatch):
    sampler, left = make(tokens=20), [1]

    def cache(*arguments):
        if left and left.pop():
            torch.empty(2**50, dtype=torch.uint8, device="cuda")
        return static_cache(*arguments)

    static_cache = static.SlotCache
    monkeypatch.setattr(static, "SlotCache", cache)
    assert worst(sampler, sampler.sample(PROMPTS, 8, seed=1)) < 1e-3
    assert sampler.path == "static" and sampler.decoder.goes == 2 and sampler.decoder.costs.num_graphs
