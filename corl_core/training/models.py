"""Base models: a tiny schooled one, a folder, a GGUF file, or a Hugging Face id; and prompts in the form a model expects."""

import os
from pathlib import Path
from typing import Any, Literal

import torch
from jinja2 import TemplateError
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from corl_core import extras
from corl_core.config import AgentConfig, ConfigError, DataConfig, RunConfig
from corl_core.seeds import derive
from corl_core.tiny_names import is_tiny, parse_tiny
from corl_core.training import adapters, stops
from corl_core.training.schools import base_model
from corl_core.training.warm_up import Progress

PROJECT = Path(__file__).resolve().parents[2]
disable_progress_bar()  # bars of milliseconds only fill the logs


class ModelError(ConfigError):
    """A model that cannot be loaded; the text names it and why."""


def pick_device(wanted: Literal["auto", "cpu", "cuda"]) -> Literal["cpu", "cuda"]:
    """Where a process computes. Raises ModelError for a GPU that is asked for by name and not there, so that no large model
    trains on a CPU unawares."""
    if wanted == "cuda" and not torch.cuda.is_available():
        seen = os.environ.get("CUDA_VISIBLE_DEVICES")
        raise ModelError(f"device='cuda', but torch sees no GPU (CUDA_VISIBLE_DEVICES={seen}); use device 'auto' or 'cpu'")
    return "cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu"


def cache_dir() -> Path:
    """Where tiny base models are kept: `CORL_CACHE`, or runs/base_models in the project."""
    return Path(os.environ.get("CORL_CACHE") or PROJECT / "runs" / "base_models")


def base_seed(run_seed: int, agent: AgentConfig) -> int:
    """Seed of a tiny base model: another run seed or another agent seed gives another model of the family."""
    return 10 * run_seed + agent.seed


def load(
    config: RunConfig, agent: AgentConfig, device: str, progress: Progress | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The agent's own copy of its base model in its `dtype` (or 4-bit), without adapters, and its tokenizer. Its generation
    config names every token that ends a completion. Raises ModelError."""
    where: str | Path = agent.model
    if is_tiny(agent.model):
        family, width = parse_tiny(agent.model)
        seed = base_seed(config.seed, agent)
        where = base_model(family, width=width, seed=seed, school=agent.school, cache_dir=cache_dir(), progress=progress)
    if agent.lora is not None and (missing := adapters.missing(agent.lora, device)):
        raise ModelError(f"agents: '{agent.name}' has lora{missing}")
    options = {} if agent.attn_implementation == "auto" else {"attn_implementation": agent.attn_implementation}
    if agent.lora is not None and agent.lora.load_in_4bit:
        options |= adapters.four_bit()
    model, tokenizer = pretrained(
        where, agent.revision, getattr(torch, agent.dtype), agent.gguf_file, agent.tokenizer, options
    )  # fmt: skip
    stops.name_all(model, tokenizer, is_templated(config.for_agent(agent.name).data, tokenizer))
    return (model if "quantization_config" in options else model.to(device)), tokenizer


def trainable(
    config: RunConfig, agent: AgentConfig, device: str, progress: Progress | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """What `load` gives, with the agent's adapters if it has any. Raises ModelError."""
    model, tokenizer = load(config, agent, device, progress)
    if agent.lora is None:
        return model, tokenizer
    try:
        return adapters.add(model, agent.lora, derive("adapters", config.seed, agent.name) % 2**31), tokenizer
    except ValueError as error:  # peft names the layers that it did not find
        raise ModelError(f"agents: '{agent.name}' has lora.target_modules={agent.lora.target_modules}: {error}") from error


def pretrained(
    where: str | Path, revision: str | None, dtype: torch.dtype | Literal["auto"], gguf_file: str | None = None,
    tokenizer: str | None = None, options: dict[str, Any] | None = None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:  # fmt: skip
    """A causal LM and its tokenizer from a folder or a hub id; pads on the left, with the end token if it has no other. Weights
    come from safetensors, or unpacked from GGUF, since a .bin is a pickle, and no code of the model's own is run."""
    own: dict[str, Any] = {"revision": revision, "trust_remote_code": False}
    if gguf_file and extras.lacks("gguf"):
        raise ModelError(f"gguf_file='{gguf_file}' {extras.need('gguf')}")
    if gguf_file:
        own |= {"gguf_file": gguf_file, "quantization_config": GgufConfig(dequantize=True)}
    try:
        words = load_tokenizer(where, revision, gguf_file, tokenizer)
        model = AutoModelForCausalLM.from_pretrained(where, dtype=dtype, use_safetensors=True, **own, **(options or {}))
    except (OSError, ValueError, ImportError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"cannot load model='{where}': {reason}; give a Hugging Face id or a local folder") from error
    if words.pad_token_id is None:
        words.pad_token = words.eos_token
    rows = model.get_input_embeddings().weight.shape[0]
    if tokenizer is not None and len(words) > rows:
        raise ModelError(
            f"tokenizer='{tokenizer}' has {len(words):,} tokens and model='{where}' knows {rows:,}; take the model's own"
        )
    return model, words


def load_tokenizer(
    where: str | Path, revision: str | None, gguf_file: str | None = None, tokenizer: str | None = None, **options: Any
) -> PreTrainedTokenizerBase:  # fmt: skip
    """The model's own tokenizer, or another: 'id', 'id@revision' or a folder. It pads on the left."""
    if tokenizer is not None:
        where, revision, gguf_file = tokenizer, None, None
        if "@" in tokenizer and not Path(tokenizer).exists():
            where, _, revision = tokenizer.rpartition("@")
    packed = {"gguf_file": gguf_file} if gguf_file else {}
    return AutoTokenizer.from_pretrained(
        where, revision=revision, trust_remote_code=False, padding_side="left", **packed, **options
    )  # fmt: skip


def is_templated(data: DataConfig, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether prompts go through the chat template, which then holds every special token: tokenizing must add none."""
    return data.chat_template == "always" or (data.chat_template == "auto" and bool(tokenizer.chat_template))


def prompt(question: str, data: DataConfig, tokenizer: PreTrainedTokenizerBase) -> str:
    """The exact text the model continues. `data`: the agent's own, `config.for_agent(name).data`."""
    text = data.prompt_template.format(question=question)
    if not is_templated(data, tokenizer):
        return text
    if not tokenizer.chat_template:
        raise ModelError("chat_template='always', but this model's tokenizer has no chat template; use 'auto'")
    system = [{"role": "system", "content": data.system_prompt}] if data.system_prompt else []
    messages = [*system, {"role": "user", "content": text}]
    try:
        return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
    except TemplateError as error:
        who = "a system message (system_prompt)" if system else "a user's message"
        raise ModelError(
            f"this model's chat template refuses {who}: {error}; give the agent system_prompt='' or chat_template='never'"
        ) from error
