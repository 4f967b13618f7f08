"""Tiny transformers of three real architectures, and the character tokenizer that they share.

Two layers, four heads, about 0.1 million parameters at the default width: small enough that a step on a CPU takes
milliseconds, large enough to learn two-digit arithmetic from `corl_core/data/arithmetic.py`.
"""

import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    GPTNeoXConfig,
    LlamaConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerFast,
    Qwen2Config,
)

from corl_core.tiny_names import FAMILIES, check_family, check_width

__all__ = ["BOS", "EOS", "FAMILIES", "PAD", "VOCABULARY", "make_model", "make_tokenizer"]

NUM_LAYERS = 2
NUM_HEADS = 4
MAX_TOKENS = 128
PAD, BOS, EOS = 0, 1, 2
BOXED = "\\boxed{"
_SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")
_CHARACTERS = tuple("0123456789+-*=;:,.?() abcdefghijklmnopqrstuvwxyz\n")
VOCABULARY = (*_SPECIAL, *_CHARACTERS, "}", BOXED)


def make_tokenizer() -> PreTrainedTokenizerFast:
    """One token a character, except that `\\boxed{` is one token; pads on the left; adds no special token.

    It is a byte-level BPE without merges, because transformers loads the tokenizer of any Qwen2 folder as one:
    so the three families, saved and loaded, read text alike. A character outside the vocabulary is left out.
    """
    byte_level = {" ": "\u0120", "\n": "\u010a"}
    ids = {byte_level.get(token, token): i for i, token in enumerate(VOCABULARY) if token != BOXED}
    tokenizer = Tokenizer(models.BPE(vocab=ids, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_tokens([AddedToken(BOXED, normalized=False)])
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=MAX_TOKENS,
        **dict(zip(("pad_token", "bos_token", "eos_token", "unk_token"), _SPECIAL, strict=True)),
    )


def make_model(family: str, width: int, seed: int) -> PreTrainedModel:
    """An untrained model with weights drawn from `seed`; the global random state is left as it was."""
    config = _config(family, width)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.generation_config.update(pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS, do_sample=True)
    return model


def _config(family: str, width: int) -> PreTrainedConfig:
    check_family(family)
    check_width(width)
    shared = dict(
        vocab_size=len(VOCABULARY),
        hidden_size=width,
        num_hidden_layers=NUM_LAYERS,
        num_attention_heads=NUM_HEADS,
        max_position_embeddings=MAX_TOKENS,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        tie_word_embeddings=True,
    )
    if family == "llama":
        return LlamaConfig(intermediate_size=3 * width, num_key_value_heads=NUM_HEADS, **shared)
    if family == "qwen2":
        return Qwen2Config(intermediate_size=3 * width, num_key_value_heads=NUM_HEADS, **shared)
    # With NeoX's own defaults (parallel residual, rotary on a quarter of a head) so small a model hardly learns.
    return GPTNeoXConfig(intermediate_size=4 * width, rotary_pct=1.0, use_parallel_residual=False, **shared)
