"""The configuration that the New run form is filling.

The draft is a nested dict in the session; widgets write into it through callbacks, so it is
up to date before the page is drawn and errors can stand beside their fields. `revision`
goes into every widget's key: a new one makes the widgets take the draft's values afresh.
"""

import shlex
from dataclasses import dataclass
from typing import Any

import streamlit as st

from corl_core.config import RunConfig, load_config
from corl_core.config_errors import config_problems
from corl_core.methods import SIGNALS, WEIGHTED
from pages.components.boundary import told

FIRST_WEIGHTS = {"corl": 1.0, "format": 0.1}  # of a weighted sum, until the person has chosen
_DRAFT, _REVISION = "draft.values", "draft.revision"


@dataclass(frozen=True)
class Checked:
    """The draft as a valid config, or what is wrong with each field ("" is the whole)."""

    config: RunConfig | None
    problems: dict[str, str]


def load(config: RunConfig) -> None:
    """Starts the draft over from a config."""
    st.session_state[_DRAFT] = config.model_dump()
    renew()


def loaded() -> bool:
    """Whether there is a draft in this session."""
    return _DRAFT in st.session_state


def values() -> dict[str, Any]:
    """The draft itself, for reading and writing."""
    return st.session_state[_DRAFT]


def renew() -> None:
    """Makes every widget of the form take its value from the draft again."""
    st.session_state[_REVISION] = st.session_state.get(_REVISION, 0) + 1


def key(path: str) -> str:
    """The key of the widget of a field."""
    return f"draft{st.session_state.get(_REVISION, 0)}.{path}"


def get(path: str) -> Any:
    """The draft's value at "grpo.learning_rate" or "agents.0.model"."""
    here: Any = values()
    for part in path.split("."):
        here = here[int(part)] if isinstance(here, list) else here[part]
    return here


def put(path: str, value: Any) -> None:
    """Sets the draft's value at a path."""
    parent, _, last = path.rpartition(".")
    here = get(parent) if parent else values()
    here[int(last) if isinstance(here, list) else last] = value


@told
def take(path: str) -> None:
    """A widget's callback: its value goes into the draft; an empty text is no value."""
    value = st.session_state[key(path)]
    put(path, value.strip() or None if isinstance(value, str) and optional_text(path) else value)
    if path == "method" or path.endswith(".name"):
        put("ring", None)  # the agents' order again: a ring names the agents of a Co-RL cohort
    if path == "method":
        _forget_old_method()


def _forget_old_method() -> None:
    """What only another method has would be refused: weights, votes, the choice by peers' agreement."""
    method = get("method")
    put("signal.weights", dict(FIRST_WEIGHTS) if method == WEIGHTED else None)
    signals = get("signal.weights") or [method]
    if not any(SIGNALS[name].votes for name in signals):
        put("vote.num_votes", None)
    if "corl" not in signals and get("eval.checkpoint") == "peer_agreement":
        put("eval.checkpoint", "last")


def optional_text(path: str) -> bool:
    """Whether None stands for an empty text in this field."""
    return path in _OPTIONAL or (path.startswith("agents.") and path.rpartition(".")[2] in _OPTIONAL_OF_AGENT)


_OPTIONAL_OF_AGENT = {"school", "revision", "gguf_file", "tokenizer", "prompt_template", "system_prompt"}
_OPTIONAL = {
    "data.eval",
    "data.config",
    "data.revision",
    "data.eval_config",
    "data.eval_revision",
    "data.question_column",
    "data.answer_column",
    "data.paraphrase_column",
    "data.choices_column",
    "data.image_column",
    "data.system_prompt",
}


def checked() -> Checked:
    """The draft, validated."""
    try:
        return Checked(RunConfig.model_validate(values()), {})
    except ValueError as error:
        problems, twice = config_problems(error), _used_twice(values()["agents"])
        if twice and "is used twice" in problems.get("", ""):
            del problems[""]  # it is said beside the field
        return Checked(None, twice | problems)


def _used_twice(agents: list[dict[str, Any]]) -> dict[str, str]:
    """The fields of names that an agent before has: the configuration compares names only once each field is right by itself."""
    names = [agent["name"] for agent in agents]
    return {
        f"agents.{place}.name": f"the name '{name}' is used twice; every agent needs its own"
        for place, name in enumerate(names)
        if name and name in names[:place]
    }


def command(config: RunConfig) -> str:
    """The shell command that launches this config: the preset with --set, or a YAML file."""
    start = "python -m corl_core launch"
    if config.preset is None:
        return f"{start} run.yaml"
    base, own = load_config(config.preset).flat(), config.flat()
    changed = {path for path in own if own[path] != base.get(path)}
    if own.keys() != base.keys() or any(own[path] is None for path in changed):
        return f"{start} run.yaml"
    sets = [f" --set {shlex.quote(f'{path}={own[path]}')}" for path in own if path in changed]
    return f"{start} {config.preset}{''.join(sets)}"


@told
def fill() -> None:
    """The preset box's callback: the draft starts over from the preset chosen."""
    if preset := st.session_state["preset"]:
        load(load_config(preset))


def cost(config: RunConfig) -> str:
    """How much each agent will sample, in words."""
    grpo = config.grpo
    completions = grpo.max_steps * grpo.questions_per_step * grpo.num_generations
    tokens = completions * config.longest_completion
    return (
        f"Each agent samples {completions:,} completions "
        f"({grpo.max_steps:,} steps × {grpo.questions_per_step:,} questions × "
        f"{grpo.num_generations:,}), at most {tokens:,} tokens."
    )
