"""Edits of the draft's agents, as widget callbacks: add, remove, move, change the model."""

import streamlit as st

from corl_core.tiny_names import FAMILIES, is_tiny, parse_tiny
from pages.components import draft
from pages.components.boundary import told
from pages.components.text import short_model

MODELS = [f"tiny:{family}" for family in FAMILIES]


@told
def take_model(path: str) -> None:
    """The model box's callback: only tiny models keep their school."""
    model = st.session_state[draft.key(f"{path}.model")] or MODELS[0]
    draft.put(f"{path}.model", model)
    if not is_tiny(model):
        draft.put(f"{path}.school", None)


@told
def add() -> None:
    """One more agent: a family that the cohort lacks, else another seed of the last."""
    agents = draft.get("agents")
    used = [agent["model"] for agent in agents]
    model = next((model for model in MODELS if model not in used), used[-1])
    names = {agent["name"] for agent in agents}
    stem = parse_tiny(model)[0] if is_tiny(model) else short_model(model).lower().replace(".", "-")
    name = next(n for i in range(1, 99) if (n := stem if i == 1 else f"{stem}-{i}") not in names)
    agents.append({**agents[-1], "name": name, "model": model, "school": None, "revision": None})
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
