"""Sampling at fixed addresses, by eager steps on a CPU: the same distribution as a plain forward pass, whatever is padded, moved,
retired or masked. Only the capture of a step in a CUDA graph needs a GPU."""

from functools import partial

import pytest
import torch
from sampling_models import errors, grouped, ids_of, ids_sampler, make
from torch.nn.attention import SDPBackend
from transformers import AutoModelForCausalLM, GenerationConfig, MiniCPM3Config

from corl_core.training import families
from corl_core.training.rollout import Sampler
from corl_core.training.sampling import attention, lean, static
from corl_core.training.sampling.weights import Unsupported

PROMPTS = ["47+38=", "9*3=", "52-38="]  # the second is padded


@pytest.fixture(scope="module", params=["llama", "qwen2", "gpt_neox"])
def sampler(request, base_models) -> Sampler:
    if request.param == "gpt_neox":  # unschooled: one that babbles
        return Sampler(families.make_model("gpt_neox", 64, 0).eval(), families.make_tokenizer(), 24, 0.7, path="static")
    return make(base_models[request.param])


def test_what_is_measured_equals_a_separate_forward_pass(sampler):
    assert errors(sampler, sampler.sample(PROMPTS, 4, seed=1), 0.7) < 1e-4


@pytest.mark.parametrize("backend", [None, SDPBackend.MATH])
def test_key_heads_that_serve_several_query_heads_are_read_for_each(backend, monkeypatch):
    """By matrix products, and as torch's fused kernels are asked, by the one that a CPU has too."""
    way = attention.DEFAULT
    if backend is not None:
        way, math = "math", attention.Way(partial(attention.fused, backend))
        call = partial(attention.attend, math.attend)
        monkeypatch.setitem(attention.WAYS, way, math)
        monkeypatch.setitem(attention.ALL_ATTENTION_FUNCTIONS._global_mapping, attention.implementation(way), call)
    sampler = ids_sampler(grouped(), 20, way=way)
    assert errors(sampler, sampler.sample(ids_of(9, 4), 3, seed=1), 1.0) < 1e-4


def test_a_way_that_cannot_do_what_attention_is_given_is_left_for_products(monkeypatch):
    """Values narrower than keys, in multi-head latent attention, which a model's configuration does not tell of."""
    torch.manual_seed(0)
    config = MiniCPM3Config(
        vocab_size=64, hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=4,
        q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=16, qk_nope_head_dim=16, v_head_dim=16, eos_token_id=None,
    )  # fmt: skip
    widths = []

    def picky(query, key, value, *rest):
        widths.append((key.shape[3], value.shape[3]))
        if key.shape[3] != value.shape[3]:
            raise ValueError("values as wide as keys")
        return attention.products(query, key, value, *rest)

    monkeypatch.setitem(attention.WAYS, "picky", attention.Way(picky))
    call = partial(attention.attend, picky)
    monkeypatch.setitem(attention.ALL_ATTENTION_FUNCTIONS._global_mapping, attention.implementation("picky"), call)
    monkeypatch.setattr(attention, "best", lambda *_: "picky")
    latent, plain = (ids_sampler(model, 9) for model in (AutoModelForCausalLM.from_config(config).eval(), grouped()))
    with pytest.warns(UserWarning, match="attention by 'picky' fails here and is left out: ValueError"):
        samples = latent.sample(ids_of(9, 4), 3, seed=1)
    assert errors(latent, samples, 1.0) < 1e-4 and latent.decoder.way == "products" and widths == [(32, 16)]
    assert latent.sample(ids_of(9, 4), 3, seed=1) == samples
    assert errors(plain, plain.sample(ids_of(9, 4), 3, seed=1), 1.0) < 1e-4 and plain.decoder.way == "picky"
    with pytest.raises(ValueError, match="values as wide as keys"):
        ids_sampler(latent.model, 9, way="picky").sample(ids_of(9), 1, seed=1)


def test_two_decoders_have_each_their_own_way(monkeypatch):
    model, seen = grouped(), []
    own = attention.ALL_ATTENTION_FUNCTIONS[attention.implementation("products")]
    monkeypatch.setitem(attention.WAYS, "other", attention.WAYS["products"])
    try:
        attention.ALL_ATTENTION_FUNCTIONS.register(
            attention.implementation("other"), lambda *args, **more: (seen.append(1), own(*args, **more))[1]
        )
        one, other = ids_sampler(model, 6), ids_sampler(model, 6, way="other")
        first = one.sample(ids_of(9), 2, seed=1)
        assert not seen and other.sample(ids_of(9), 2, seed=1) == first
        assert seen and one.sample(ids_of(9), 2, seed=1) == first
    finally:
        attention.ALL_ATTENTION_FUNCTIONS._global_mapping.pop(attention.implementation("other"), None)


def test_completions_that_cross_a_bucket_of_slots_stay_exact():
    """Prompts of 120 and 131 tokens and 140 new ones pass slots 128 (never a bucket here) and 256."""
    sampler = ids_sampler(grouped(), 140)
    samples = sampler.sample(ids_of(120, 131), 2, seed=1)
    assert {len(ids) for ids in samples.completion_ids} == {140}
    assert errors(sampler, samples, 1.0) < 1e-4


def test_the_most_likely_tokens_are_those_of_generate(sampler):
    greedy = Sampler(sampler.model, sampler.tokenizer, 24, 1e-4, path="static")
    samples = greedy.sample(PROMPTS, 1, seed=0)
    batch = sampler.tokenizer(PROMPTS, return_tensors="pt", padding=True, padding_side="left")
    out = sampler.model.generate(**batch, generation_config=GenerationConfig(
        max_new_tokens=24, do_sample=False, pad_token_id=0, eos_token_id=sampler.tokenizer.eos_token_id))  # fmt: skip
    wanted = sampler.tokenizer.batch_decode(out[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)
    assert samples.texts == wanted


def test_a_completion_ends_with_its_first_end_token_or_is_cut(sampler):
    short = Sampler(sampler.model, sampler.tokenizer, 19, 0.7, path="static")
    samples, end = short.sample(PROMPTS, 32, seed=2), sampler.tokenizer.eos_token_id
    for ids, finished in zip(samples.completion_ids, samples.finished, strict=True):
        assert (ids[-1] == end) == finished and end not in ids[:-1]
        assert finished or len(ids) == 19
    assert any(samples.finished) and not all(samples.finished)


def test_a_draw_follows_from_the_seed_alone(sampler):
    first = sampler.sample(PROMPTS, 4, seed=5)
    torch.rand(17)
    sampler.sample(PROMPTS[:1], 2, seed=9)  # leaves other keys and values in the cache
    assert sampler.sample(PROMPTS, 4, seed=5) == first
    assert sampler.sample(PROMPTS, 4, seed=6).completion_ids != first.completion_ids


def test_rows_that_retire_change_nothing_for_those_that_go_on(base_models):
    """At a temperature so low that draws are certain, retiring rows one by one, in eights or never gives the same completions."""
    never = make(base_models["llama"], temperature=1e-4, check_every=1000).sample(PROMPTS, 8, seed=3)
    for settings in ({"check_every": 1}, {"check_every": 3, "row_unit": 8}):
        sampler = make(base_models["llama"], temperature=1e-4, **settings)
        moved = _count_moves(sampler)
        samples = sampler.sample(PROMPTS, 8, seed=3)
        assert samples.completion_ids == never.completion_ids and samples.finished == never.finished
        assert moved and sorted(moved, reverse=True) == moved


def _count_moves(sampler: Sampler) -> list[int]:
    """Rows left after each move, as it goes."""
    moves, retire = [], sampler.decoder._retire
    sampler.decoder._retire = lambda active, rows, slot: (moves.append(rows), retire(active, rows, slot))
    return moves


def test_retired_rows_leave_exact_measures_at_a_usual_temperature(base_models):
    sampler = make(base_models["qwen2"], tokens=40, check_every=2, row_unit=8)
    moved = _count_moves(sampler)
    assert errors(sampler, sampler.sample(PROMPTS, 16, seed=4), 0.7) < 1e-4
    assert moved


def test_tokens_come_as_often_as_the_model_says(base_models):
    """First tokens of 4,000 completions, and second ones where the first is the likeliest: chi-square over the tokens that are
    expected at least five times, below its mean plus five standard deviations (sqrt(2 df))."""
    sampler = make(base_models["llama"], tokens=2, temperature=1.5)
    drawn = torch.tensor([[*ids, 0][:2] for ids in sampler.sample(PROMPTS[:1], 4000, seed=3).completion_ids])
    prompt = sampler.tokenizer(PROMPTS[0])["input_ids"]
    likeliest = int(torch.bincount(drawn[:, 0]).argmax())
    for tokens, context in ((drawn[:, 0], prompt), (drawn[drawn[:, 0] == likeliest, 1], [*prompt, likeliest])):
        with torch.no_grad():
            p = torch.softmax(sampler.model(torch.tensor([context])).logits[0, -1] / 1.5, -1)
        expected, observed = p * len(tokens), torch.bincount(tokens, minlength=len(p))
        often = expected >= 5
        square = float(((observed - expected)[often] ** 2 / expected[often]).sum())
        freedom = max(1, int(often.sum()) - 1)
        assert len(tokens) > 100 and square < freedom + 5 * (2 * freedom) ** 0.5


def test_both_paths_draw_from_one_distribution(sampler):
    """Mean log-probability of 600 completions each, within four standard errors of their difference."""
    shared = Sampler(sampler.model, sampler.tokenizer, 24, 0.7, path="shared")
    sums = [torch.tensor([sum(row) for row in one.sample(PROMPTS, 200, seed=11).logprobs]) for one in (sampler, shared)]
    error = sum(float(values.var()) / len(values) for values in sums) ** 0.5
    assert abs(float(sums[0].mean() - sums[1].mean())) < 4 * error


def test_a_bfloat16_copy_samples_what_a_bfloat16_model_would_and_follows_the_updates():
    model = grouped()
    sampler = ids_sampler(model, 16, bf16=True)
    before = sampler.sample(ids_of(9, 4), 4, seed=1)
    assert errors(sampler, before, 1.0) < 0.1 and next(model.parameters()).dtype == torch.float32
    places = sampler.decoder._weights.places()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    after = sampler.sample(ids_of(9, 4), 4, seed=1)
    assert errors(sampler, after, 1.0) < 0.1 and after.logprobs != before.logprobs
    assert sampler.decoder._weights.places() == places
    assert sampler.decoder._weights.num_bytes == 2 * sum(p.numel() for p in model.parameters())


def test_the_sampler_makes_its_own_copy_when_it_is_first_asked():
    model = grouped()
    sampler = Sampler(model, ids_sampler(model, 5).tokenizer, 8, 1.0, path="static", bf16=True)
    assert errors(sampler, sampler.sample(ids_of(9, 4), 2, seed=1), 1.0) < 0.1
    assert "bfloat16 copy of the weights" in sampler.decoder.description()
    with torch.no_grad():
        model.lm_head.weight.mul_(2)
    assert errors(sampler, sampler.sample(ids_of(9, 4), 2, seed=1), 1.0) < 0.1


class Adapter(torch.nn.Module):
    """W x + B A x in place of W x, as peft does it."""

    def __init__(self, layer: torch.nn.Linear):
        super().__init__()
        self.base_layer = layer
        self.a = torch.nn.Linear(layer.in_features, 4, bias=False)
        self.b = torch.nn.Linear(4, layer.out_features, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.base_layer(x) + self.b(self.a(x))


@pytest.mark.parametrize("bf16", [False, True])
def test_adapters_are_part_of_the_step(bf16):
    model = grouped()
    for layer in model.model.layers:
        layer.self_attn.q_proj = Adapter(layer.self_attn.q_proj)
    sampler = ids_sampler(model, 12, bf16=bf16)
    assert errors(sampler, sampler.sample(ids_of(6, 5), 4, seed=1), 1.0) < (0.1 if bf16 else 1e-4)
    with torch.no_grad():
        model.model.layers[0].self_attn.q_proj.b.weight.add_(0.5)
    assert errors(sampler, sampler.sample(ids_of(6, 5), 4, seed=1), 1.0) < (0.1 if bf16 else 1e-4)


def test_weights_that_move_are_seen():
    model = grouped()
    sampler = ids_sampler(model, 6)
    sampler.sample(ids_of(5), 2, seed=1)
    step, places = sampler.decoder._run, sampler.decoder._places
    sampler.sample(ids_of(5), 2, seed=1)
    assert sampler.decoder._run is step
    weight = model.model.layers[0].mlp.up_proj.weight
    weight.data = weight.data.clone() * 2
    assert errors(sampler, sampler.sample(ids_of(5), 2, seed=1), 1.0) < 1e-4
    assert sampler.decoder._run is not step and sampler.decoder._places != places


def test_memory_is_given_back_on_demand_and_made_anew():
    sampler = ids_sampler(grouped(), 6, keep=False)
    first = sampler.sample(ids_of(5), 2, seed=1)
    assert sampler.decoder._cache is None and sampler.decoder.costs.cache_bytes == 2 * 2 * 2 * 2 * 128 * 16 * 4
    assert sampler.sample(ids_of(5), 2, seed=1) == first


def test_more_rollouts_than_the_cache_may_hold_are_sampled_in_even_parts():
    """A row of 128 slots takes 2 x 2 layers x 2 heads x 16 x 128 x 4 bytes = 64 KiB, a prompt of 4 rollouts 256 KiB; a card of
    4 MiB gives .15 of it, 614 KiB, to the cache: 5 prompts need 1280 KiB, in three goes of at most two."""
    sampler = ids_sampler(grouped(), 8, keep=True)
    sampler.decoder._memory = 4 * 2**20
    assert sampler.decoder._prompts_at_once(5, 4, 20) == 2
    samples = sampler.sample(ids_of(5, 6, 7, 8, 9), 4, seed=1)
    assert [len(ids) for ids in samples.prompt_ids] == [5] * 4 + [6] * 4 + [7] * 4 + [8] * 4 + [9] * 4
    assert errors(sampler, samples, 1.0) < 1e-4 and sampler.decoder._cache.shape[0] == 8


def test_one_completion_of_one_token():
    sampler = ids_sampler(grouped(), 1)
    samples = sampler.sample(ids_of(4), 1, seed=0)
    assert [len(ids) for ids in samples.completion_ids] == [1] and errors(sampler, samples, 1.0) < 1e-4


def test_a_step_that_differs_from_the_models_own_forward_is_refused(monkeypatch):
    """Attention over one slot too few."""
    short = attention.Way(attention.products, lambda start, *rest: attention.bias_of(start + 3, *rest))
    monkeypatch.setitem(attention.WAYS, "products", short)
    with pytest.raises(Unsupported, match="its decode step differs from its forward pass by"):
        ids_sampler(grouped(), 6).sample(ids_of(9), 2, seed=1)


def test_the_other_path_takes_over_with_one_warning(monkeypatch):
    told = []
    sampler = Sampler(grouped(), ids_sampler(grouped(), 6).tokenizer, 6, 1.0, told=lambda *line: told.append(line))
    assert sampler.path == "shared"  # on a CPU
    wanted = sampler.sample(ids_of(5), 3, seed=1)
    sampler.path = "static"
    monkeypatch.setattr(static, "require", lambda *_: (_ for _ in ()).throw(Unsupported("it is too odd")))
    assert sampler.sample(ids_of(5), 3, seed=1) == wanted == sampler.sample(ids_of(5), 3, seed=1)
    assert [path for path, _ in told] == ["shared"] and "WARNING" in told[0][1] and "it is too odd" in told[0][1]


def test_a_path_that_was_asked_for_by_name_does_not_fall_back(monkeypatch):
    monkeypatch.setattr(static, "require", lambda *_: (_ for _ in ()).throw(Unsupported("it is too odd")))
    with pytest.raises(Unsupported, match="it is too odd"):
        ids_sampler(grouped(), 6).sample(ids_of(5), 1, seed=1)


def test_a_replaced_norm_that_is_wrong_is_refused(monkeypatch):
    """The forward pass that it is held against has the model's own norms."""
    monkeypatch.setattr(lean, "_norm_agrees", lambda *_: True)
    monkeypatch.setattr(lean, "_fused_norm", lambda norm: lambda states: states * norm.weight)
    with pytest.raises(Unsupported, match="its decode step differs from its forward pass by"):
        ids_sampler(grouped(), 6).sample(ids_of(9), 2, seed=1)


def _run_out(monkeypatch, times: int) -> None:
    """Memory for the cache is not to be had so many times."""
    own, left = static.State, [True] * times

    def state(*arguments):
        if left and left.pop():
            raise torch.OutOfMemoryError("CUDA out of memory")
        return own(*arguments)

    monkeypatch.setattr(static, "State", state)


def test_memory_that_runs_out_once_is_met_with_half_the_prompts_at_a_time(monkeypatch):
    """Four prompts: all, then two by two, as those of a decoder that has always had two goes."""
    wanted = ids_sampler(grouped(), 8)
    wanted.decoder.goes = 2
    sampler, told = ids_sampler(grouped(), 8), []
    sampler._told = lambda *line: told.append(line)
    _run_out(monkeypatch, 1)
    samples = sampler.sample(ids_of(5, 6, 7, 8), 3, seed=1)
    assert sampler.path == "static" and sampler.decoder.goes == 2 and sampler.decoder._cache.shape[0] == 6
    assert told[0][0] == "static" and "half the prompts at a time" in told[0][1]
    assert samples == wanted.sample(ids_of(5, 6, 7, 8), 3, seed=1) and errors(sampler, samples, 1.0) < 1e-4
    sampler.sample(ids_of(5, 6, 7, 8), 3, seed=2)
    assert len(told) == 1


def test_memory_that_runs_out_again_hands_over_to_the_other_path(monkeypatch):
    sampler, told = ids_sampler(grouped(), 8), []
    sampler._told, sampler._may_fall_back = lambda *line: told.append(line), True
    _run_out(monkeypatch, 2)
    assert errors(sampler, sampler.sample(ids_of(5, 6), 3, seed=1), 1.0) < 1e-4
    assert sampler.path == "shared" and sampler.decoder is None and "OutOfMemoryError: CUDA out of memory" in told[0][1]


def test_buffers_that_cannot_be_made_leave_none_half_made(monkeypatch):
    sampler = ids_sampler(grouped(), 8)
    _run_out(monkeypatch, 2)
    with pytest.raises(torch.OutOfMemoryError):
        sampler.sample(ids_of(5, 6), 3, seed=1)
    assert sampler.decoder._cache is None and sampler.decoder._state is None and sampler.decoder._run is None
    assert errors(sampler, sampler.sample(ids_of(5, 6), 3, seed=1), 1.0) < 1e-4


def test_why_the_path_failed_is_printed_whole(monkeypatch, capfd):
    sampler = ids_sampler(grouped(), 8)
    sampler._may_fall_back = True

    def failing_draw(*_):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(static, "draw", failing_draw)
    sampler.sample(ids_of(5), 2, seed=1)
    assert "in failing_draw" in capfd.readouterr().err
