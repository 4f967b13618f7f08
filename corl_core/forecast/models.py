"""The shape of an agent's model, from what is on this machine: nothing is downloaded and no training library is loaded.

A tiny model's follows from its name; a folder and a hub id that was downloaded have a config.json; for others there is a table of
known shapes (`bench/shapes.py`), whose names a hub id begins with.
"""

import json
import os
import re
import shlex
from pathlib import Path
from typing import Any

from corl_core.bench.shapes import SHAPES
from corl_core.config import AgentConfig, ConfigError
from corl_core.forecast.shape import Shape, from_config
from corl_core.tiny_names import is_tiny, parse_tiny

TINY = {"layers": 2, "heads": 4, "vocab": 55}  # as in training/families.py
MAX_CONFIG_BYTES = 2**20


def shape_of(agent: AgentConfig) -> Shape:
    """Raises ConfigError where the model's config is not on this machine, or says too little."""
    if is_tiny(agent.model):
        return _tiny(agent.model)
    if (values := _config(agent)) is not None:
        return from_config(values, agent.model)
    if (name := known(agent.model) or known(agent.gguf_file or "")) is not None:
        return from_config(SHAPES[name], name)
    there = Path(agent.model).expanduser().is_dir()
    remedy = "put it there" if there else f"hf download {shlex.quote(agent.model)} config.json, or give a folder that has it"
    raise ConfigError(
        f"agent '{agent.name}': the config of model='{agent.model}' is not on this machine, and its shape is none of "
        f"{', '.join(SHAPES)}; {remedy}"
    )


def known(model: str) -> str | None:
    """The entry of SHAPES that a hub id's name is, or begins with: 'Qwen/Qwen2.5-3B-Instruct' is qwen2.5-3b."""
    name = re.sub(r"^meta-|-(math|coder)(?=-)", "", model.rstrip("/").rsplit("/", 1)[-1].lower())
    return next((shape for shape in SHAPES if shape != "tiny" and (name == shape or name.startswith(f"{shape}-"))), None)


def _tiny(model: str) -> Shape:
    family, width = parse_tiny(model)
    plain = family == "gpt_neox"
    return Shape(
        layers=TINY["layers"], hidden=width, heads=TINY["heads"], kv_heads=TINY["heads"], head_dim=width // TINY["heads"],
        mlp=(4 if plain else 3) * width, vocab=TINY["vocab"], tied=True, gated=not plain,
        qkv_bias=family != "llama", biases=plain,
    )  # fmt: skip


def _config(agent: AgentConfig) -> dict[str, Any] | None:
    """A folder's or a downloaded repository's config.json; None without one. Raises ConfigError where it cannot be read."""
    folder = Path(agent.model).expanduser()
    path = folder / "config.json" if folder.is_dir() else _downloaded(agent)
    if path is None or not path.is_file():
        return None
    try:
        if path.stat().st_size > MAX_CONFIG_BYTES:
            raise ValueError("it is larger than a config can be")
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values, dict):
            raise ValueError("it holds no settings")
    except (OSError, ValueError) as error:
        raise ConfigError(f"agent '{agent.name}': cannot read {path}: {error}") from error
    return values


def _downloaded(agent: AgentConfig) -> Path | None:
    """Where Hugging Face's cache keeps a repository's config.json: the revision that a name points to, or a commit."""
    home = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    repository = cache / f"models--{agent.model.replace('/', '--')}"
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)?", agent.model) or not repository.is_dir():
        return None
    revision = agent.revision or "main"
    if not re.fullmatch(r"[\w.-]+", revision):
        return None
    name = repository / "refs" / revision
    commit = name.read_text(encoding="utf-8").strip() if name.is_file() else revision
    return repository / "snapshots" / commit / "config.json"
