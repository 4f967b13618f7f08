"""The shape of a decoder-only transformer, and the parameters that follow from it by arithmetic.

Read from the entries of a model's config.json; no training library is needed. What a config leaves out has transformers'
default: as many key-value heads as heads, heads that fill the width, no biases.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from corl_core.config import ConfigError

PLAIN_MLP = {"gpt_neox", "gpt2", "opt", "bloom", "gptj", "phi", "starcoder2", "falcon", "gpt_bigcode"}  # two matrices, not three
TIED_BY_DEFAULT = {"gemma", "gemma2", "gemma3_text", "gpt2", "opt", "bloom", "falcon", "cohere", "cohere2"}
QK_NORM = {"qwen3", "olmo2", "gemma3_text"}
NAMES = {  # ours → a config's names of it
    "layers": ("num_hidden_layers", "n_layer", "num_layers"),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "heads": ("num_attention_heads", "n_head"),
    "vocab": ("vocab_size",),
}


@dataclass(frozen=True)
class Shape:
    """Sizes of a decoder. `gated`: a gated MLP of three matrices (Llama, Qwen) instead of two (GPT-NeoX)."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    mlp: int
    vocab: int
    tied: bool
    gated: bool = True
    qkv_bias: bool = False
    biases: bool = False  # on every other linear layer and on the norms, as in GPT-NeoX
    qk_norm: bool = False

    @property
    def query(self) -> int:
        """Width of all queries together."""
        return self.heads * self.head_dim

    @property
    def key(self) -> int:
        """Width of all keys together, and of all values."""
        return self.kv_heads * self.head_dim

    def projections(self) -> dict[str, tuple[int, int]]:
        """name → (inputs, outputs) of a layer's linear layers, named as in Llama."""
        sizes = {
            "q_proj": (self.hidden, self.query), "k_proj": (self.hidden, self.key), "v_proj": (self.hidden, self.key),
            "o_proj": (self.query, self.hidden), "gate_proj": (self.hidden, self.mlp), "up_proj": (self.hidden, self.mlp),
            "down_proj": (self.mlp, self.hidden),
        }  # fmt: skip
        return {name: size for name, size in sizes.items() if self.gated or name != "gate_proj"}

    @property
    def linear_parameters(self) -> int:
        """Of the matrices in the layers: what a token is multiplied with, apart from the head."""
        return self.layers * sum(rows * columns for rows, columns in self.projections().values())

    @property
    def embedding_parameters(self) -> int:
        """Of the embedding, and of the head where it is not the same matrix."""
        return self.vocab * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """All of them: matrices, embeddings, biases and norms."""
        norm = self.hidden * (2 if self.biases else 1)
        small = 2 * norm + (2 * self.head_dim if self.qk_norm else 0)
        small += self.query + 2 * self.key if self.qkv_bias else 0
        small += 2 * self.hidden + self.mlp if self.biases else 0
        return self.linear_parameters + self.embedding_parameters + self.layers * small + norm

    def adapter_parameters(self, rank: int, targets: str | Sequence[str]) -> int:
        """LoRA's (arXiv 2106.09685): rank × (inputs + outputs) of each adapted linear layer; 'all-linear' is all but the head."""
        layers = self.projections()
        wanted = layers if isinstance(targets, str) else [name for name in layers if name in targets]
        return self.layers * rank * sum(sum(layers[name]) for name in wanted)


def from_config(config: Mapping[str, Any], name: str) -> Shape:
    """The shape that a config.json describes. Raises ConfigError where it describes something else than a dense decoder."""
    config = config.get("text_config") or config
    kind = str(config.get("model_type", ""))
    found = {ours: next((config[key] for key in keys if config.get(key)), None) for ours, keys in NAMES.items()}
    if missing := [NAMES[ours][0] for ours, value in found.items() if not isinstance(value, int)]:
        raise ConfigError(f"model='{name}' cannot be forecast: its config.json has no {missing[0]}; --probe measures it")
    if any((config.get(key) or 0) > 1 for key in ("num_experts", "num_local_experts", "n_routed_experts")):
        raise ConfigError(f"model='{name}' is a mixture of experts, which the forecast does not know; --probe measures it")
    gated, hidden, heads = kind not in PLAIN_MLP, found["hidden"], found["heads"]
    plain = not gated
    return Shape(
        layers=found["layers"],
        hidden=hidden,
        heads=heads,
        kv_heads=config.get("num_key_value_heads") or heads,
        head_dim=config.get("head_dim") or hidden // heads,
        mlp=config.get("intermediate_size") or config.get("n_inner") or config.get("ffn_dim") or 4 * hidden,
        vocab=found["vocab"],
        tied=config.get("tie_word_embeddings", kind in TIED_BY_DEFAULT),
        gated=gated,
        qkv_bias=kind in ("qwen2", "qwen2_vl") or plain or bool(config.get("attention_bias")),
        biases=plain,
        qk_norm=kind in QK_NORM,
    )
