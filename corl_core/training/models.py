"""Base models: a tiny schooled one, a folder, or a Hugging Face id; and prompts in the form a model expects."""

import os
from pathlib import Path
from typing import Literal

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from corl_core.config import AgentConfig, ConfigError, DataConfig, RunConfig
from corl_core.tiny_names import is_tiny, parse_tiny
from corl_core.training.schools import base_model
from corl_core.training.warm_up import Progress

PROJECT = Path(__file__).resolve().parents[2]
disable_progress_bar()  # bars of milliseconds only fill the logs


class ModelError(ConfigError):
    """A model that cannot be loaded; the text names it and why."""


def cache_dir() -> Path:
    """Where tiny base models are kept: `CORL_CACHE`, or runs/base_models in the project."""
    return Path(os.environ.get("CORL_CACHE") or PROJECT / "runs" / "base_models")


def base_seed(run_seed: int, agent: AgentConfig) -> int:
    """Seed of a tiny base model: another run seed or another agent seed gives another model of the family."""
    return 10 * run_seed + agent.seed


def load(
    config: RunConfig, agent: AgentConfig, device: str, progress: Progress | None = None
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """The agent's own copy of its base model, in float32 (bfloat16 is autocast), and its tokenizer. Raises ModelError."""
    where: str | Path = agent.model
    if is_tiny(agent.model):
        family, width = parse_tiny(agent.model)
        seed = base_seed(config.seed, agent)
        where = base_model(family, width=width, seed=seed, school=agent.school, cache_dir=cache_dir(), progress=progress)
    model, tokenizer = pretrained(where, agent.revision, torch.float32)
    return model.to(device), tokenizer


def pretrained(
    where: str | Path, revision: str | None, dtype: torch.dtype | Literal["auto"]
) -> tuple[PreTrainedModel, PreTrainedTokenizerBase]:
    """A causal LM and its tokenizer from a folder or a hub id; pads on the left, with the end token if it has no other. Weights
    come from safetensors alone, since a .bin is a pickle, and no code of the model's own is run."""
    own = {"revision": revision, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(where, padding_side="left", **own)
        model = AutoModelForCausalLM.from_pretrained(where, dtype=dtype, use_safetensors=True, **own)
    except (OSError, ValueError) as error:
        reason = " ".join(str(error).split())[:300]
        raise ModelError(f"cannot load model='{where}': {reason}; give a Hugging Face id or a local folder") from error
    if tokenizer.pad_token_id is None:
        tokenizer.pad_token = tokenizer.eos_token
    return model, tokenizer


def is_templated(data: DataConfig, tokenizer: PreTrainedTokenizerBase) -> bool:
    """Whether prompts go through the chat template, which then holds every special token: tokenizing must add none."""
    return data.chat_template == "always" or (data.chat_template == "auto" and bool(tokenizer.chat_template))


def prompt(question: str, data: DataConfig, tokenizer: PreTrainedTokenizerBase) -> str:
    """The exact text the model continues."""
    text = data.prompt_template.format(question=question)
    if not is_templated(data, tokenizer):
        return text
    if not tokenizer.chat_template:
        raise ModelError("data.chat_template='always', but this model's tokenizer has no chat template; use 'auto'")
    system = [{"role": "system", "content": data.system_prompt}] if data.system_prompt else []
    messages = [*system, {"role": "user", "content": text}]
    return tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True)
