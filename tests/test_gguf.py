"""A GGUF file is a base model like any other: unpacked, trained, saved as safetensors."""

from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM

from corl_core import extras
from corl_core.training import models
from corl_core.training.families import make_model, make_tokenizer

gguf = pytest.importorskip("gguf", reason="the package gguf is not installed")
NAMES = {
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down", "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}  # fmt: skip


def write_gguf(model, path: Path) -> None:
    """A tiny Llama as llama.cpp writes one; its rotary halves are interleaved, so query and key rows change places."""
    config, out = model.config, gguf.GGUFWriter(str(path), "llama")
    out.add_block_count(config.num_hidden_layers)
    out.add_context_length(128)
    out.add_embedding_length(config.hidden_size)
    out.add_feed_forward_length(config.intermediate_size)
    out.add_head_count(4)
    out.add_head_count_kv(4)
    out.add_layer_norm_rms_eps(config.rms_norm_eps)
    out.add_rope_dimension_count(config.hidden_size // 4)
    out.add_rope_freq_base(10_000.0)
    out.add_vocab_size(config.vocab_size)
    out.add_tensor("token_embd.weight", model.model.embed_tokens.weight.detach().numpy())
    out.add_tensor("output_norm.weight", model.model.norm.weight.detach().numpy())
    for number, layer in enumerate(model.model.layers):
        for name, short in NAMES.items():
            weight = layer.get_submodule(name).weight.detach().numpy()
            if short in ("attn_q", "attn_k"):
                weight = weight.reshape(4, 2, -1, weight.shape[1]).swapaxes(1, 2).reshape(weight.shape)
            out.add_tensor(f"blk.{number}.{short}.weight", np.ascontiguousarray(weight))
    out.write_header_to_file()
    out.write_kv_data_to_file()
    out.write_tensors_to_file()
    out.close()


def test_a_gguf_file_is_unpacked_and_saved_as_safetensors(tmp_path):
    model = make_model("llama", 64, seed=0)
    for name in ("packed", "words", "saved"):
        (tmp_path / name).mkdir()
    write_gguf(model, tmp_path / "packed" / "m.gguf")
    make_tokenizer().save_pretrained(tmp_path / "words")
    loaded, _ = models.pretrained(tmp_path / "packed", None, torch.float32, "m.gguf", str(tmp_path / "words"))
    ids = torch.tensor([[8, 11, 14, 7]])
    torch.testing.assert_close(loaded(ids).logits, model(ids).logits)
    assert all(weight.requires_grad for weight in loaded.parameters())
    loaded.save_pretrained(tmp_path / "saved")
    torch.testing.assert_close(AutoModelForCausalLM.from_pretrained(tmp_path / "saved")(ids).logits, model(ids).logits)


def test_a_gguf_file_that_is_not_there_is_told_in_words(tmp_path):
    with pytest.raises(models.ModelError, match="cannot load model="):
        models.pretrained(tmp_path, None, torch.float32, "m.gguf")


def test_without_the_package_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(extras, "lacks", lambda name: True)
    with pytest.raises(models.ModelError, match=r"gguf_file='m\.gguf' needs the package gguf.*: pip install gguf"):
        models.pretrained(tmp_path, None, torch.float32, "m.gguf")
