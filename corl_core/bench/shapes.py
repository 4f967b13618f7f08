"""Shapes of real models, by name: what transformers needs to make one with random weights, without a hub.

Speed and memory follow from the shape alone, so a measurement needs no trained weights. Sources: each model's config.json.
No training library is loaded until a model is made.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from corl_core.config import ConfigError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

_QWEN2 = dict(model_type="qwen2", max_position_embeddings=32768, rope_theta=1e6, rms_norm_eps=1e-6)
_QWEN3 = dict(model_type="qwen3", max_position_embeddings=40960, rope_theta=1e6, rms_norm_eps=1e-6, head_dim=128)
_LLAMA = dict(model_type="llama", max_position_embeddings=131072, rope_theta=5e5, rms_norm_eps=1e-5, vocab_size=128256)


def _shape(
    base: Mapping[str, Any], hidden: int, layers: int, heads: int, kv_heads: int, mlp: int, tied: bool, **more: Any
) -> dict[str, Any]:
    return {
        **base, "hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads,
        "num_key_value_heads": kv_heads, "intermediate_size": mlp, "tie_word_embeddings": tied, **more,
    }  # fmt: skip


SHAPES: dict[str, dict[str, Any]] = {  # keyword arguments of transformers' configurations, and 'model_type'
    "tiny": _shape(
        _QWEN2, 64, 2, 4, 4, 192, True, vocab_size=55, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2
    ),
    "smollm2-135m": _shape(_LLAMA, 576, 30, 9, 3, 1536, True, vocab_size=49152, max_position_embeddings=8192, rope_theta=1e5),
    "qwen2.5-0.5b": _shape(_QWEN2, 896, 24, 14, 2, 4864, True, vocab_size=151936),
    "qwen2.5-1.5b": _shape(_QWEN2, 1536, 28, 12, 2, 8960, True, vocab_size=151936),
    "qwen2.5-3b": _shape(_QWEN2, 2048, 36, 16, 2, 11008, True, vocab_size=151936),
    "qwen2.5-7b": _shape(_QWEN2, 3584, 28, 28, 4, 18944, False, vocab_size=152064),
    "qwen3-1.7b": _shape(_QWEN3, 2048, 28, 16, 8, 6144, True, vocab_size=151936),
    "llama-3.2-1b": _shape(_LLAMA, 2048, 16, 32, 8, 8192, True, head_dim=64),
    "llama-3.2-3b": _shape(_LLAMA, 3072, 28, 24, 8, 8192, True, head_dim=128),
    "llama-3.1-8b": _shape(_LLAMA, 4096, 32, 32, 8, 14336, False, head_dim=128),
}


def shape(name: str) -> dict[str, Any]:
    """Raises ConfigError for a name that is not known."""
    if name not in SHAPES:
        raise ConfigError(f"model='{name}' is no known shape; there are {', '.join(SHAPES)}")
    return dict(SHAPES[name])


def num_parameters(name: str) -> int:
    """By arithmetic, without making the model: embeddings, attention, gated MLP and norms."""
    s = shape(name)
    hidden, heads, kv, mlp = s["hidden_size"], s["num_attention_heads"], s["num_key_value_heads"], s["intermediate_size"]
    head = s.get("head_dim", hidden // heads)
    qkv_bias = (heads + 2 * kv) * head if s["model_type"] == "qwen2" else 0
    qk_norm = 2 * head if s["model_type"] == "qwen3" else 0
    layer = 2 * hidden * heads * head + 2 * hidden * kv * head + qkv_bias + qk_norm + 3 * hidden * mlp + 2 * hidden
    embeddings = s["vocab_size"] * hidden * (1 if s["tie_word_embeddings"] else 2)
    return embeddings + s["num_hidden_layers"] * layer + hidden


def make_config(name: str) -> "PreTrainedConfig":
    from transformers import AutoConfig

    kwargs = shape(name)
    theta = kwargs.pop("rope_theta")
    vocab = kwargs["vocab_size"]
    ids = {"bos_token_id": vocab - 2, "eos_token_id": vocab - 1, "pad_token_id": vocab - 1}  # ids that no text here uses
    rope = {"rope_type": "default", "rope_theta": theta}
    return AutoConfig.for_model(kwargs.pop("model_type"), rope_parameters=rope, **{**ids, **kwargs})


def make_model(name: str, device: str, dtype: "torch.dtype", seed: int = 0) -> "PreTrainedModel":
    """Random weights (normal, 0.02; norms 1, biases 0) drawn on the device itself: seconds for 8 billion parameters."""
    import torch
    from transformers import AutoModelForCausalLM

    config = make_config(name)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config, dtype=dtype)
    model = model.to_empty(device=device)
    generator = torch.Generator(device).manual_seed(seed)
    with torch.no_grad():
        for parameter_name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(0.0, 0.02, generator=generator)
            else:
                parameter.fill_(0.0 if parameter_name.endswith("bias") else 1.0)
    model.tie_weights()
    with torch.device(device):
        _restore_buffers(model, config)
    return model.eval()


def _restore_buffers(model: "PreTrainedModel", config: "PreTrainedConfig") -> None:
    """Rotary frequencies are buffers that no checkpoint holds; making the module again computes them."""
    for module in model.modules():
        for child_name, child in list(module.named_children()):
            if hasattr(child, "inv_freq"):
                setattr(module, child_name, type(child)(config=config))


def save(name: str, folder: Path, dtype: "torch.dtype", device: str = "cpu") -> Path:
    """A model folder of that shape that `from_pretrained` reads, with a tokenizer that was made here."""
    model = make_model(name, device, dtype)
    model.generation_config.eos_token_id = model.config.eos_token_id
    model.save_pretrained(folder)
    make_tokenizer(name).save_pretrained(folder)
    return folder


def make_tokenizer(name: str) -> "PreTrainedTokenizerBase":
    """The characters of the tiny families, with the shape's end token; the rest of the vocabulary has a name and no text. It is
    part of the vocabulary proper, for added tokens take time that grows faster than their number."""
    import json

    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerFast

    from corl_core.training.families import make_tokenizer as characters

    tokenizer = characters()
    first, size = len(tokenizer), shape(name)["vocab_size"]
    if size <= first:
        return tokenizer
    state = json.loads(tokenizer.backend_tokenizer.to_str())
    added = {token["content"]: token["id"] for token in state["added_tokens"]}
    state["model"]["vocab"] |= added | {f"<{number}>": first + number for number in range(size - first)}
    last = f"<{size - first - 1}>"
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(state)), padding_side=tokenizer.padding_side, eos_token=last,
        pad_token=last, bos_token=tokenizer.bos_token, unk_token=tokenizer.unk_token, clean_up_tokenization_spaces=False,
        model_max_length=tokenizer.model_max_length,
    )  # fmt: skip
