"""New run: what one agent has of its own: its model's files and precision, adapters, training, prompt."""

import streamlit as st

from pages.components import agents, draft
from pages.components.fields import field, spec
from pages.components.text import plain

MODEL = ("revision", "gguf_file", "tokenizer", "dtype", "attn_implementation")
TRAINING = ("learning_rate", "temperature", "max_completion_length", "gradient_accumulation_steps")
PROMPT = ("prompt_template", "system_prompt", "chat_template")
ADAPTERS = ("r", "lora_alpha", "lora_dropout", "load_in_4bit")
MORE_HELP = "Another tokenizer or precision, adapters (LoRA), and a prompt, temperature or learning rate of this agent alone."


def editor(path: str) -> None:
    """A switch, and behind it the settings of the agent at `path`; on from the start where it has any. Their problems stand
    below the agent's name, with its others."""
    on = st.toggle("Settings of its own", _has_any(path), key=draft.key(f"{path}.more"), help=MORE_HELP)
    if not on:
        return
    _row(path, MODEL)
    st.toggle(
        "Train adapters (LoRA) in place of the weights", draft.get(f"{path}.lora") is not None, key=draft.key(f"{path}.lora"),
        help=plain(spec(f"{path}.lora").help), on_change=agents.take_lora, args=(path,),
    )  # fmt: skip
    if draft.get(f"{path}.lora") is not None:
        _adapters(path)
    _row(path, TRAINING)
    _row(path, PROMPT)


def _has_any(path: str) -> bool:
    own = draft.get(path)
    return own["dtype"] != "float32" or own["attn_implementation"] != "auto" or any(
        own[name] is not None for name in ("lora", *MODEL[:3], *TRAINING, *PROMPT)
    )  # fmt: skip


def _adapters(path: str) -> None:
    _row(f"{path}.lora", ADAPTERS)
    layers = draft.get(f"{path}.lora.target_modules")
    st.text_input(
        "Layers", layers if isinstance(layers, str) else ", ".join(layers), key=draft.key(f"{path}.lora.target_modules"),
        help=plain(spec(f"{path}.lora.target_modules").help), on_change=agents.take_layers, args=(path,),
    )  # fmt: skip


def _row(path: str, names: tuple[str, ...]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        for name in names:
            with st.container(width=170 if name not in ("prompt_template", "system_prompt") else 300):
                field(f"{path}.{name}", {})
