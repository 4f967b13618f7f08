"""Weights come as safetensors alone: a .bin is a pickle, and a model's own code is never run."""

import json

import pytest
import torch

from corl_core.training.families import make_model, make_tokenizer
from corl_core.training.models import ModelError, pretrained


def test_weights_in_a_pickle_are_refused_in_words(tmp_path):
    model = make_model("llama", 64, 0)
    model.save_pretrained(tmp_path)
    make_tokenizer().save_pretrained(tmp_path)
    assert pretrained(tmp_path, None, torch.float32)
    torch.save(model.state_dict(), tmp_path / "pytorch_model.bin")
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(ModelError, match=r"model\.safetensors"):
        pretrained(tmp_path, None, torch.float32)


def test_a_models_own_code_is_never_run(tmp_path):
    make_tokenizer().save_pretrained(tmp_path)
    config = {"model_type": "evil", "auto_map": {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}}
    (tmp_path / "config.json").write_text(json.dumps(config))
    (tmp_path / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    with pytest.raises(ModelError):
        pretrained(tmp_path, None, torch.float32)
    assert not (tmp_path / "ran").exists()
