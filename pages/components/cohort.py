"""The agents of the form: add, remove, reorder; and their ring as a drawing."""

import streamlit as st

from corl_core import ring
from corl_core.config import RunConfig
from corl_core.figures.ring import own_vote, ring_plot, ring_sentence
from corl_core.methods import SIGNALS
from corl_core.tiny_names import FAMILIES, SCHOOLS, find_school, is_tiny
from pages.components import agent_settings, agents, draft, signals
from pages.components.chart import chart
from pages.components.fields import problem
from pages.components.text import plain

MAX_AGENTS = 16
MODEL_HELP = (
    "A tiny model that is made here in a minute, or type a Hugging Face id such as Qwen/Qwen3-1.7B-Base, or a local folder."
)
NAME_HELP = "A short name of its own for each agent: a-z, 0-9, '-' and '_'."
WIDTHS, TINY_WIDTHS = (2.1, 7.1, 1.3), (2.0, 2.2, 4.0, 1.2, 1.3)  # name, model, of tiny models school and seed, buttons
SCHOOL_HELP = "The textbook a tiny model is taught from. Each has its own systematic slip."
SEED_HELP = "Tells apart two tiny models of one family and school (0 to 9)."


def agents_editor(problems: dict[str, str]) -> None:
    """The cohort's agents, one card each, in ring order."""
    count = len(draft.get("agents"))
    for place in range(count):
        with st.container(border=True):
            _agent(place, count, problems)
    problem("agents", problems)
    st.button(
        "Add agent",
        icon=":material/add:",
        key="add_agent",
        on_click=agents.add,
        disabled=count >= MAX_AGENTS,
    )


def ring_drawing(config: RunConfig | None) -> None:
    """Who is rewarded by whose vote. An invalid draft is drawn as far as it can be."""
    names = [agent["name"] for agent in draft.get("agents")]
    if len(set(names)) != len(names) or not all(names):
        st.caption("The ring is drawn once every agent has a name of its own.")
        return
    given = draft.get("ring") or names
    order = names if isinstance(given, dict) else given
    peers = config.peers() if config else _likely_peers(given)
    own = own_vote(SIGNALS[name].labels_from for name in signals.chosen())
    unvoted = f"No votes are exchanged: each agent is rewarded by {signals.words()}."
    sentence = ring_sentence(names, peers, own=own) if peers else unvoted
    chart(ring_plot(order, peers, own=own), "ring", sentence, height=230, bar=False)
    st.caption(plain(sentence))


def _likely_peers(order: ring.Ring) -> dict[str, str]:
    """RunConfig.peers of a draft that isn't valid yet."""
    names = signals.chosen()
    if "corl" in names:
        return ring.peers(order)
    return {name: name for name in order} if any(SIGNALS[name].votes for name in names) else {}


def _agent(place: int, count: int, problems: dict[str, str]) -> None:
    path = f"agents.{place}"
    tiny = is_tiny(draft.get(f"{path}.model"))
    name, model, *own, buttons = st.columns(TINY_WIDTHS if tiny else WIDTHS, vertical_alignment="bottom")
    with name:
        st.text_input("Name", draft.get(f"{path}.name"), help=NAME_HELP, **_wiring(f"{path}.name"))
    with model:
        _model(path)
    if tiny:
        with own[0]:
            _school(path)
        with own[1]:
            value = draft.get(f"{path}.seed")
            st.number_input("Seed", 0, 9, value, help=SEED_HELP, **_wiring(f"{path}.seed"))
    _problems(path, problems)
    with buttons.container(horizontal=True, horizontal_alignment="right", gap=None):
        look = {"type": "tertiary", "args": (place,)}
        earlier, remove = draft.key(f"{path}.earlier"), draft.key(f"{path}.remove")
        first, alone = place == 0, count == 1
        st.button(":material/arrow_upward:", earlier, "Earlier on the ring", agents.swap, disabled=first, **look)
        st.button(":material/close:", remove, "Remove this agent", agents.remove, disabled=alone, **look)
    agent_settings.editor(path)


def _problems(path: str, problems: dict[str, str]) -> None:
    """What is wrong with an agent, below its fields so that they stay in line."""
    wrong = {field: text for field, text in problems.items() if field == path or field.startswith(path + ".")}
    for field, text in wrong.items():
        rule = NAME_HELP if field == f"{path}.name" and "pattern" in text else text
        problem(field, {field: rule})


def _model(path: str) -> None:
    value = draft.get(f"{path}.model")
    options = agents.MODELS if value in agents.MODELS else [*agents.MODELS, value]
    wiring = _wiring(f"{path}.model") | {"on_change": agents.take_model, "args": (path,)}
    index = options.index(value)
    st.selectbox("Model", options, index, help=MODEL_HELP, accept_new_options=True, **wiring)


def _school(path: str) -> None:
    options = ["", *SCHOOLS]
    value = draft.get(f"{path}.school") or ""
    index = options.index(value) if value in options else 0
    own = _own_school(draft.get(f"{path}.model"))
    st.selectbox(
        "School",
        options,
        index,
        format_func=lambda school: school or f"{own} (its own)",
        help=SCHOOL_HELP,
        **_wiring(f"{path}.school"),
    )


def _own_school(model: str) -> str:
    family = model.removeprefix("tiny:").partition(":")[0]
    return find_school(family, None).name if family in FAMILIES else "unknown"


def _wiring(path: str) -> dict:
    return {"key": draft.key(path), "on_change": draft.take, "args": (path,)}
