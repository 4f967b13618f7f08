"""The parts of a decode step: buckets, draws, attention, the replaced kernels, the copy of the weights, the state."""

import copy
from contextlib import contextmanager, nullcontext
from functools import partial
from types import SimpleNamespace

import pytest
import torch
from sampling_models import grouped
from torch.nn.attention import SDPBackend
from transformers import AutoModelForCausalLM, LlamaConfig, MistralConfig, Qwen3Config, Qwen3ForCausalLM

from corl_core.bench import shapes
from corl_core.config_models import LoraSettings
from corl_core.training import adapters
from corl_core.training.sampling import attention, graphs, joined, static
from corl_core.training.sampling.buckets import CACHE_FRAC, KEPT_FRAC, bucket, prompts_at_once, rows_for
from corl_core.training.sampling.cache import heads_of
from corl_core.training.sampling.draw import draw
from corl_core.training.sampling.lean import Lean, Rotation
from corl_core.training.sampling.step import State
from corl_core.training.sampling.weights import Unsupported, Weights, require


def test_ways_of_attention_are_timed_where_they_are_right(monkeypatch):
    """Milliseconds are made up here: a GPU's clock measures them."""
    model = grouped()
    inputs = attention.trial(heads_of(model.config), 3, 8, "cpu", torch.float32)
    assert [tuple(part.shape) for part in inputs] == [(3, 2, 3, 16), (3, 2, 8, 16), (3, 2, 8, 16), (3,), (1,)]
    ways = {
        "products": attention.Way(attention.products),
        "math": attention.Way(partial(attention.fused, SDPBackend.MATH)),
        "wrong": attention.Way(lambda *inputs: attention.products(*inputs) * 1.1),
        "broken": attention.Way(lambda *_: (_ for _ in ()).throw(RuntimeError("no kernel"))),
    }
    speed = iter([3.0, 2.0, 1.0, 0.5])
    monkeypatch.setattr(attention, "WAYS", ways)
    monkeypatch.setattr(attention, "_milliseconds", lambda call: (call(), next(speed))[1])
    with pytest.warns(UserWarning, match=r"attention by 'broken' fails here and is left out: RuntimeError\('no kernel'\)"):
        assert attention.milliseconds(*inputs) == {"products": 3.0, "math": 2.0}


def test_a_draw_is_the_winner_of_the_race_and_what_is_measured_is_its_distribution():
    """Logits (log 1, log 2, log 5) are p = (.125, .25, .625). Noise (.1, .5, 1) gives p / e = (1.25, .5, .625): token 0. Entropy
    .125 log 8 + .25 log 4 + .625 log 1.6 = .900256; certainty -log 3 - mean log p = -1.098612 + 1.311917 = .213304."""
    logits = torch.tensor([[1.0, 2.0, 5.0]]).log()
    token, measured = draw(logits, torch.ones(1), torch.tensor([[0.1, 0.5, 1.0]]))
    assert token.tolist() == [0]
    assert measured[:, 0].tolist() == pytest.approx([-2.079442, 0.900256, 0.213304], abs=1e-5)


def test_a_draw_in_pieces_is_the_draw(monkeypatch):
    from corl_core.training.sampling import draw as module

    logits, noise = torch.randn(7, 11), torch.rand(7, 11) + 0.01
    whole = draw(logits, torch.ones(1), noise.clone())
    monkeypatch.setattr(module, "CHUNK", 30)  # two rows
    pieces = draw(logits, torch.ones(1), noise.clone())
    assert torch.equal(whole[0], pieces[0]) and torch.equal(whole[1], pieces[1])


def test_buckets_are_few_and_waste_at_most_a_fifth():
    assert [bucket(size, 128) for size in (1, 128, 129, 512, 513, 1024, 1025, 1281, 2049)] == [
        128, 128, 256, 512, 640, 1024, 1280, 1536, 2560,
    ]  # fmt: skip
    assert all(size <= bucket(size, 8) and bucket(size, 8) - size < max(8, 0.2 * bucket(size, 8)) for size in range(1, 600))
    assert len({bucket(size, 128) for size in range(1, 8193)}) == 20
    assert (rows_for(97, 128), rows_for(96, 128), rows_for(1, 128), rows_for(1, 8)) == (128, 96, 8, 8)


@pytest.mark.parametrize("prompts", [1, 7, 20, 31, 128])
def test_a_cache_that_fills_its_share_stays_between_calls(prompts):
    """12 rollouts of a prompt, of 1 GiB each on a card of 141 GiB: of 21 prompts and more, goes of what CACHE_FRAC allows, whose
    bucket of rows is at most a quarter larger; noise of 152 k words in float32 comes on top."""
    at_once = prompts_at_once(prompts, 2**30, 141 * 2**30)
    assert at_once <= CACHE_FRAC * 141
    rows = bucket(at_once * 12, 8)
    assert rows / 12 * 2**30 + rows * 151936 * 4 <= KEPT_FRAC * 141 * 2**30


def test_a_copy_ties_what_is_tied_shares_what_is_frozen_and_has_no_hooks():
    model = shapes.make_model("tiny", "cpu", torch.float32)
    model.register_forward_hook(lambda *_: pytest.fail("a hook of the trained model ran"))
    model.model.layers[0].self_attn.q_proj.weight.data = model.model.layers[0].self_attn.q_proj.weight.data.bfloat16()
    model.forward = lambda *_, **__: pytest.fail("the wrapped forward ran")
    copied = Weights(model, bf16=True).model
    assert copied.lm_head.weight is copied.model.embed_tokens.weight
    assert copied.model.layers[0].self_attn.q_proj.weight is model.model.layers[0].self_attn.q_proj.weight
    assert "forward" in model.__dict__ and model._forward_hooks
    assert copied(torch.tensor([[3, 4]])).logits.dtype == torch.bfloat16


def test_what_takes_fewer_kernels_is_replaced_while_sampling_and_only_then():
    from transformers.models.qwen3 import modeling_qwen3

    model, own = grouped(), modeling_qwen3.apply_rotary_pos_emb
    lean = Lean(model, torch.float32)
    assert lean.parts == ["norms", "rotary", "gates", "queries, keys and values"]
    layer = model.model.layers[0]
    places = (model.model.norm, layer.mlp, layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj)
    with lean():
        assert isinstance(modeling_qwen3.apply_rotary_pos_emb, Rotation) and all("forward" in place.__dict__ for place in places)
    assert modeling_qwen3.apply_rotary_pos_emb is own and not any("forward" in place.__dict__ for place in places)


def test_joined_products_follow_the_weights_and_answer_only_those_who_ask_in_order():
    model = grouped()
    attention, lean = model.model.layers[0].self_attn, Lean(model, torch.float32)
    parts = (attention.q_proj, attention.k_proj, attention.v_proj)
    states, others = torch.randn(2, 3, 1, parts[0].in_features)
    before = [part(states) for part in parts]
    with torch.no_grad():
        for part in parts:
            part.weight.mul_(2)
    with lean():  # no refresh yet: it answers with the weights of before
        for part, wanted in zip(parts, before, strict=True):
            assert torch.allclose(part(states), wanted, atol=1e-6)
    lean.refresh()
    now = [part(states) for part in parts]
    with lean():
        for part, wanted in zip(parts, now, strict=True):
            assert torch.allclose(part(states), wanted, atol=1e-6)
        alone = [torch.nn.functional.linear(others, part.weight, part.bias) for part in parts]
        parts[0](states)
        assert torch.equal(parts[1](others), alone[1]), "the input of another call"
        assert torch.equal(parts[2](others), alone[2])
    assert not torch.allclose(now[0], before[0], atol=1e-3)


def test_the_joined_products_of_a_copy_for_sampling_take_no_memory_and_follow_the_training():
    model = grouped()
    weights = Weights(model, bf16=True)
    before = sum(part.untyped_storage().nbytes() for part in {p.data_ptr(): p for p in weights.model.parameters()}.values())
    lean = Lean(weights.model, torch.bfloat16, weights.free)
    storages = {p.untyped_storage().data_ptr(): p.untyped_storage().nbytes() for p in weights.model.parameters()}
    assert lean.num_bytes == 0 and sum(storages.values()) == before
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    weights.refresh()
    lean.refresh()
    pairs = zip(weights.model.parameters(), model.parameters(), strict=True)
    assert all(torch.equal(copied, trained.to(torch.bfloat16)) for copied, trained in pairs)
    ids = torch.tensor([[3, 4, 5]])
    wanted = weights.model(ids).logits
    with lean():
        assert torch.allclose(weights.model(ids).logits, wanted, atol=0.03)


def test_products_that_adapters_have_replaced_are_not_joined():
    model = adapters.add(grouped(), LoraSettings(r=4, target_modules=["q_proj"]), seed=0)
    assert joined.find(model) == []


@pytest.mark.parametrize("act", ["silu", "gelu"])
def test_a_gate_with_another_activation_is_left_alone(act):
    config = Qwen3Config(
        vocab_size=20, hidden_size=16, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        head_dim=8, hidden_act=act,
    )  # fmt: skip
    assert ("gates" in Lean(Qwen3ForCausalLM(config), torch.float32).parts) == (act == "silu")


def test_a_norm_of_another_kind_is_left_alone():
    class OddRMSNorm(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight, self.variance_epsilon = torch.nn.Parameter(torch.ones(8)), 1e-6

        def forward(self, x):
            return x * 2 * self.weight

    assert Lean(torch.nn.Sequential(OddRMSNorm()), torch.float32).parts == []


def test_models_that_it_does_not_do_are_named_with_the_reason():
    config = MistralConfig(
        vocab_size=40, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        sliding_window=16,
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config)
    require(model, 16)
    with pytest.raises(Unsupported, match=r"sliding window of 16 tokens is shorter than prompt and completion \(17\)"):
        require(model, 17)
    model = copy.copy(grouped())
    type_ = type("Odd", (type(model),), {"_supports_attention_backend": False})
    model.__class__ = type_
    with pytest.raises(Unsupported, match="Odd does not use transformers' attention interface"):
        require(model, 8)
    model.__class__ = type("Broken", (type(grouped()),), {"_can_compile_fullgraph": False})
    with pytest.raises(Unsupported, match="of Broken that its forward pass is not of one piece"):
        require(model, 8)


@pytest.mark.parametrize(
    ("rope", "length"),
    [({"rope_type": "dynamic", "factor": 2.0}, 8),
     ({"rope_type": "longrope", "short_factor": [1.0] * 8, "long_factor": [2.0] * 8,
       "original_max_position_embeddings": 32}, 33)],
)  # fmt: skip
def test_frequencies_that_change_with_the_length_are_refused(rope, length):
    config = LlamaConfig(
        vocab_size=40, hidden_size=32, intermediate_size=32, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1,
        max_position_embeddings=64, rope_parameters={"rope_theta": 1e4, **rope},
    )  # fmt: skip
    model = AutoModelForCausalLM.from_config(config)
    with pytest.raises(Unsupported, match=f"rotary frequencies change with the length .rope_type '{rope['rope_type']}'"):
        require(model, length)
    if rope["rope_type"] == "longrope":
        require(model, 32)


def test_a_model_that_it_does_not_do_is_not_copied_first(monkeypatch):
    model = grouped()
    model.__class__ = type("Broken", (type(model),), {"_can_compile_fullgraph": False})
    monkeypatch.setattr(static, "Weights", lambda *_: pytest.fail("the weights were copied"))
    with pytest.raises(Unsupported, match="Broken"):
        static.StaticDecoder(model, bf16=True)


def test_finding_out_what_may_be_replaced_leaves_the_random_state_alone():
    model, before = shapes.make_model("tiny", "cpu", torch.float32), torch.get_rng_state()
    Lean(model, torch.float32)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_trial_of_a_step_can_be_undone():
    """What a capture's trial runs rely on."""
    state = State(4, 5, 7, torch.tensor([2]))
    state.rollout[:3], state.ended[:3] = torch.arange(3), False
    saved = state.position_state()
    before = [part.clone() for part in saved]
    state.write(4, torch.tensor([1, 2, 3, 4]), torch.ones(3, 4))
    state.slot.add_(1)
    assert state.tokens[:3, 0].tolist() == [1, 2, 3] and state.ended.tolist() == [False, True, False, True]
    state.put_back(saved)
    assert all(torch.equal(now, then) for now, then in zip(state.position_state(), before, strict=True))


class Cuda:
    """As much of torch.cuda as graphs need: the current stream, captures that take a GiB each and end as they are told."""

    def __init__(self, fails: bool = False):
        self.fails, self.now, self.held, self.captures, self.replays = fails, self._stream("own"), 2**33, 0, 0
        self.ended, self.released, self.is_capturing = [], [], False  # the last: as the default generator believes
        self.CUDAGraph = lambda: SimpleNamespace(replay=self._replay)
        self.graph_pool_handle = lambda: (0, 1)
        self.Stream = lambda device: self._stream("side")
        self.stream = lambda stream: nullcontext()
        self.current_stream = lambda: self.now
        self.memory_reserved, self.empty_cache = lambda device: self.held, lambda: None
        self.library = SimpleNamespace(
            _cuda_endAllocateToPool=lambda device, pool: self.ended.append(pool),
            _cuda_releasePool=lambda device, pool: self.released.append(pool),
        )  # fmt: skip

    def _stream(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(name=name, device_index=0, wait_stream=lambda other: None, synchronize=lambda: None)

    def _replay(self) -> None:
        self.replays += 1

    def set_stream(self, stream) -> None:
        self.now = stream

    @contextmanager
    def graph(self, graph, pool=None, stream=None, capture_error_mode=""):
        own, self.now, self.is_capturing = self.now, stream, True
        yield
        self.captures, self.held = self.captures + 1, self.held + 2**30
        if self.fails and pool:
            raise RuntimeError("operation failed due to a previous error during capture")
        self.now, self.is_capturing = own, False


def _graphs(monkeypatch, cuda: Cuda) -> graphs.Graphs:
    monkeypatch.setattr(graphs, "torch", SimpleNamespace(cuda=cuda, _C=cuda.library))
    monkeypatch.setattr(graphs, "_side_stream", cuda.Stream)
    return graphs.Graphs(lambda rows, length: None, State(4, 5, 7, torch.tensor([2])))


def test_the_graph_whose_use_is_longest_ago_makes_room(monkeypatch):
    """Of two at most: 1, 2, 1 again, 3 in place of 2, 1 still there, 2 captured again; four captures of six replays."""
    cuda = Cuda()
    monkeypatch.setattr(graphs, "MOST", 2)
    run = _graphs(monkeypatch, cuda)
    for rows in (1, 2, 1, 3, 1, 2):
        run(rows, 128)
    assert (cuda.captures, cuda.replays, len(run)) == (4, 6, 2)
    assert run.num_bytes == 4 * 2**30


def test_a_capture_that_fails_as_it_ends_gives_back_stream_and_allocator_and_leaves_the_pool_to_its_graph(monkeypatch):
    cuda = Cuda(fails=True)
    run = _graphs(monkeypatch, cuda)
    with pytest.raises(RuntimeError, match="previous error during capture"):
        run(1, 128)
    assert cuda.current_stream().name == "own" and cuda.ended == [(0, 1)] and not cuda.released and len(run) == 0
    assert not cuda.is_capturing, "random numbers can be drawn again"
