"""The parts of a decode step: buckets, draws, attention, the replaced kernels, the copy of the weights, the state."""

import copy

import pytest
import torch
from sampling_models import grouped
from transformers import AutoModelForCausalLM, MistralConfig

from corl_core.bench import shapes
from corl_core.training.sampling import attention
from corl_core.training.sampling.buckets import bucket, rows_for
from corl_core.training.sampling.draw import draw
from corl_core.training.sampling.lean import Lean, Rotation
from corl_core.training.sampling.step import State
from corl_core.training.sampling.weights import Unsupported, Weights, require


def test_the_fastest_way_of_attention_is_taken_among_those_that_are_right(monkeypatch):
    """Milliseconds are made up here: a GPU's clock measures them."""
    query, key, value = torch.randn(3, 2, 4, 16), torch.randn(3, 2, 8, 16), torch.randn(3, 2, 8, 16)
    bias = attention.bias_of(torch.tensor([0, 2, 7]), torch.tensor([7]), 8, torch.float32)
    ways = attention.WAYS | {
        "wrong": lambda *inputs: attention.products(*inputs) * 1.1,
        "broken": lambda *_: (_ for _ in ()).throw(RuntimeError("no kernel")),
    }
    speed = iter([3.0, 2.0, 1.0, 0.5])
    monkeypatch.setattr(attention, "WAYS", {name: way for name, way in ways.items() if name != "cudnn"})
    monkeypatch.setattr(attention, "_milliseconds", lambda call: (call(), next(speed))[1])
    chooser = attention.Attention()
    assert chooser.choose(query, key, value, bias) == {"products": 3.0, "fused": 2.0} and chooser.way == "fused"


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


def test_norms_and_rotary_embeddings_are_replaced_while_sampling_and_only_then():
    from transformers.models.qwen3 import modeling_qwen3

    model, own = grouped(), modeling_qwen3.apply_rotary_pos_emb
    lean = Lean(model, torch.float32)
    assert lean.parts == ["norms", "rotary"]
    with lean():
        assert isinstance(modeling_qwen3.apply_rotary_pos_emb, Rotation) and "forward" in model.model.norm.__dict__
    assert modeling_qwen3.apply_rotary_pos_emb is own and "forward" not in model.model.norm.__dict__


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
