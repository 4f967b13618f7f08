"""One form field out of one config field: its words, unit and bounds come from the model."""

import math
from dataclasses import dataclass
from functools import partial
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import streamlit as st
from pydantic.fields import FieldInfo

from corl_core.config import RunConfig
from corl_core.methods import METHOD_LABELS
from pages.components import draft
from pages.components.text import plain

LABELS = {
    "max_steps": "Steps",
    "questions_per_step": "Questions a step",
    "num_generations": "Completions a question (K)",
    "max_completion_length": "Longest completion (tokens)",
    "learning_rate": "Learning rate",
    "every_steps": "Evaluate every (steps)",
    "eval.num_questions": "Held-out questions",
    "data.num_questions": "Training questions at most",
    "num_samples": "Samples a held-out question",
    "min_share": "Smallest vote share that counts",
    "tie": "A tied vote",
    "num_votes": "Completions that vote",
    "no_answer_reward": "Reward without an answer",
    "random_frac": "Share of completions rewarded",
    "alpha_start": "Teacher's share, first step",
    "alpha_end": "Teacher's share, last step",
    "eval.checkpoint": "Weights that are kept",
    "checkpoints.every_steps": "Checkpoint every (steps)",
    "alarms.action": "When an alarm goes off",
    "timeout_s": "Longest wait for a peer (s)",
    "data.train": "Training questions",
    "data.eval": "Held-out questions from",
    "lr_scheduler_type": "Learning rate schedule",
    "min_lr_rate": "Last share of the learning rate",
    "gguf_file": "GGUF file",
    "dtype": "Precision of the weights",
    "attn_implementation": "Attention",
    "r": "Rank",
    "lora_alpha": "Scale (alpha)",
    "lora_dropout": "Dropout",
    "load_in_4bit": "Frozen weights in 4 bits (QLoRA)",
    "beta": "KL weight (beta)",
    "epsilon": "Clip range (epsilon)",
    "adam_beta2": "AdamW beta 2",
    "bf16": "bfloat16",
    "threads_per_agent": "CPU threads an agent",
    "config": "Dataset configuration",
    "train_split": "Training split",
    "eval_config": "Held-out configuration",
    "eval_split": "Held-out split",
    "eval_revision": "Held-out revision",
}
WORDS = {  # choices that have a name for people
    "method": METHOD_LABELS,
    "grpo.torch_compile": {None: "Where it pays", True: "Yes", False: "No"},
}
LONG_TEXT = {"notes", "prompt_template", "system_prompt"}


@dataclass(frozen=True)
class Spec:
    """What a form needs to know of a config field."""

    path: str
    label: str
    help: str
    kind: type
    options: tuple[Any, ...]
    low: float | None
    high: float | None


def spec(path: str) -> Spec:
    """The field at a dotted path of RunConfig."""
    info = _info(path)
    name = path.rsplit(".", 1)[-1]
    low, high = _bound(info, "ge"), _bound(info, "le")
    label = LABELS.get(path) or LABELS.get(name) or name.replace("_", " ").capitalize()
    kind, options = _kind(info)
    return Spec(path, label, (info.description or "") + _range(info), kind, options, low, high)


def field(path: str, problems: dict[str, str]) -> None:
    """The widget of a field, writing into the draft, with its problem below it."""
    known = spec(path)
    wiring = {
        "key": draft.key(path),
        "help": plain(known.help),
        "on_change": draft.take,
        "args": (path,),
    }
    _widget(known, draft.get(path), wiring)
    problem(path, problems)


def grid(paths: list[str], problems: dict[str, str], width: int = 3) -> None:
    """Fields side by side, row by row."""
    for start in range(0, len(paths), width):
        for column, path in zip(st.columns(width), paths[start : start + width], strict=False):
            with column:
                field(path, problems)


def problem(path: str, problems: dict[str, str]) -> None:
    """What is wrong with a field, in red, if anything."""
    if text := problems.get(path):
        said = text.replace("input should be", "must be")
        st.markdown(f":small[:red[:material/error: {plain(said[:1].upper() + said[1:])}]]")


def _widget(known: Spec, value: Any, wiring: dict[str, Any]) -> None:
    if known.options:
        index = known.options.index(value) if value in known.options else 0
        say = partial(_word, WORDS.get(known.path, {}))
        st.selectbox(known.label, known.options, index, format_func=say, **wiring)
    elif known.kind is bool:
        st.toggle(known.label, value, **wiring)
    elif known.kind is int:
        low, high = _whole(known.low), _whole(known.high)
        st.number_input(known.label, low, high, value, step=1, **wiring)
    elif known.kind is float:
        value = None if value is None else float(value)
        low, high = _real(known.low), _real(known.high)
        size = _step(value)
        st.number_input(known.label, low, high, value, step=size, format="%g", **wiring)
    elif known.path.rsplit(".", 1)[-1] in LONG_TEXT:
        st.text_area(known.label, value or "", **wiring)
    else:
        st.text_input(known.label, value or "", **wiring)


def _word(words: dict[Any, str], option: Any) -> str:
    return words.get(option, "As the whole run" if option is None else str(option))


def _info(path: str) -> FieldInfo:
    model: Any = RunConfig
    *parents, last = path.split(".")
    for name in parents:
        model = model if name.isdigit() else _section(model.model_fields[name].annotation)
    return model.model_fields[last]


def _section(annotation: Any) -> Any:
    """The model inside `list[Model]` or `Model | None`."""
    inner = [kind for kind in get_args(annotation) if kind is not type(None)]
    return inner[0] if inner else annotation


def _kind(info: FieldInfo) -> tuple[type, tuple[Any, ...]]:
    """The plain type of the field, and the choices of a Literal, or of a switch that may be left open."""
    kinds = [info.annotation]
    if get_origin(info.annotation) in (Union, UnionType):
        kinds = [kind for kind in get_args(info.annotation) if kind is not type(None)]
    if get_origin(kinds[0]) is Literal:
        return str, ((None,) if kinds != [info.annotation] else ()) + get_args(kinds[0])
    return kinds[0], (None, True, False) if kinds == [bool] != [info.annotation] else ()


def _bound(info: FieldInfo, name: str) -> float | None:
    return next((getattr(rule, name) for rule in info.metadata if hasattr(rule, name)), None)


def _range(info: FieldInfo) -> str:
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    limits = [(text, _bound(info, name)) for name, text in words.items()]
    said = ", ".join(f"{text} {limit:g}" for text, limit in limits if limit is not None)
    return f" ({said})" if said else ""


def _step(value: float | None) -> float:
    """A tenth of the value's order of magnitude, at least 1e-9."""
    return 0.01 if not value else max(1e-9, 10.0 ** (math.floor(math.log10(abs(value))) - 1))


def _whole(limit: float | None) -> int | None:
    return None if limit is None else int(limit)


def _real(limit: float | None) -> float | None:
    return None if limit is None else float(limit)
