"""Edits of the draft's agents, as widget callbacks: add, remove, move, change the model, train adapters."""

import copy

import streamlit as st

from corl_core.config_models import LoraSettings
from corl_core.tiny_names import FAMILIES, is_tiny, parse_tiny
from pages.components import draft
from pages.components.boundary import told
from pages.components.text import short_model

MODELS = [f"tiny:{family}" for family in FAMILIES]
OF_ITS_MODEL = ("revision", "gguf_file", "tokenizer")  # mean nothing for another model


@told
def take_model(path: str) -> None:
    """The model box's callback: only tiny models keep their school, and what named another model's files goes."""
    model = st.session_state[draft.key(f"{path}.model")] or MODELS[0]
    draft.put(f"{path}.model", model)
    if not is_tiny(model):
        draft.put(f"{path}.school", None)
    if any(draft.get(f"{path}.{field}") for field in OF_ITS_MODEL):
        for field in OF_ITS_MODEL:
            draft.put(f"{path}.{field}", None)
        draft.renew()


@told
def take_lora(path: str) -> None:
    """The adapters' switch: with their defaults, or none."""
    draft.put(f"{path}.lora", LoraSettings().model_dump() if st.session_state[draft.key(f"{path}.lora")] else None)


@told
def take_layers(path: str) -> None:
    """The box of layers: 'all-linear', or names with commas between them."""
    names = [name.strip() for name in st.session_state[draft.key(f"{path}.lora.target_modules")].split(",") if name.strip()]
    draft.put(f"{path}.lora.target_modules", "all-linear" if names in ([], ["all-linear"]) else names)


@told
def add() -> None:
    """One more agent: a family that the cohort lacks, else another seed of the last."""
    agents = draft.get("agents")
    used = [agent["model"] for agent in agents]
    model = next((model for model in MODELS if model not in used), used[-1])
    names = {agent["name"] for agent in agents}
    stem = parse_tiny(model)[0] if is_tiny(model) else short_model(model).lower().replace(".", "-")
    name = next(n for i in range(1, 99) if (n := stem if i == 1 else f"{stem}-{i}") not in names)
    nothing = dict.fromkeys(("school", *OF_ITS_MODEL))
    agents.append({**copy.deepcopy(agents[-1]), "name": name, "model": model, **nothing})
    agents[-1]["seed"] = min(9, used.count(model))
    _changed()


@told
def remove(place: int) -> None:
    """The agent at a place leaves the cohort."""
    draft.get("agents").pop(place)
    _changed()


@told
def swap(place: int) -> None:
    """The agent at a place moves one place earlier."""
    agents = draft.get("agents")
    agents[place - 1], agents[place] = agents[place], agents[place - 1]
    _changed()


def _changed() -> None:
    """The agents are others now: the ring is their order again."""
    draft.put("ring", None)
    draft.renew()
