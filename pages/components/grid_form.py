"""Queue: the form of a new grid: what it starts from, which settings vary, and over which values."""

import json

import streamlit as st

from corl_core.config import RunConfig, load_config, preset_names
from corl_core.methods import METHOD_LABELS, WEIGHTED
from corl_core.runs import grid as grids
from corl_core.runs.grid import COHORT, Grid
from pages.components import draft
from pages.components.text import plain

FIRST_KEYS = ("method", "seed")
FIRST_VALUES = {"method": ["corl", "ttrl"], COHORT: ["demo", "demo-pair"], "seed": "0, 1, 2"}
FORM = "The New run form"
NOT_VARIED = ("name", "preset", "notes", "data.prompt_template", "data.system_prompt", "ring")
KEYS_HELP = "Any setting, by the name that --set takes; cohort stands for the agents and the ring of a preset."
VALUES_HELP = "Values with commas between them, as after --set: 4, 8 or 1.0e-4, 2.0e-4. One value alone holds for all cells."


def show() -> Grid | None:
    """The grid that the form describes; None, with the reason shown, while it describes none."""
    start, keys, name = st.columns([1, 2, 1])
    now = draft.checked() if draft.loaded() else None
    bases = [*([FORM] if now and now.config else []), *preset_names()]
    index = bases.index("demo") if "demo" in bases else 0
    picked = start.selectbox("Start from", bases, index, key="grid_base", help="The settings that all cells share.")
    base = now.config if picked == FORM and now and now.config else load_config(picked)
    varied = keys.multiselect(
        "What varies", _keys(base), FIRST_KEYS, key="grid_keys", help=KEYS_HELP, placeholder="Choose settings"
    )
    called = name.text_input("Name", key="grid_name", max_chars=80, placeholder="From the settings chosen")
    axes, problems = _axes(base, varied)
    try:
        if not problems and axes:
            return grids.make(base, axes, called or "")
        problems = problems or ["Choose at least one setting that varies."]
    except grids.ConfigError as error:
        problems = [str(error)]
    for problem in problems:
        st.caption(f":material/block: {plain(problem[:1].upper() + problem[1:])}")
    return None


def _axes(base: RunConfig, varied: list[str]) -> tuple[dict[str, list], list[str]]:
    """The values of each key, and what is wrong with those that cannot be read."""
    axes, problems = {}, []
    for place, key in enumerate(varied):
        if place % 3 == 0:
            columns = st.columns(3)
        with columns[place % 3]:
            try:
                axes[key] = _values(base, key)
            except grids.ConfigError as error:
                problems.append(str(error))
    return axes, problems


def _values(base: RunConfig, key: str) -> list:
    """The widget of one key. Raises ConfigError for values that are none."""
    if key in ("method", COHORT):
        known = [name for name in METHOD_LABELS if name != WEIGHTED] if key == "method" else preset_names()
        say = METHOD_LABELS.get if key == "method" else str
        chosen = st.multiselect(key.capitalize(), known, FIRST_VALUES[key], key=f"grid_values.{key}", format_func=say)
        if not chosen:
            raise grids.ConfigError(f"{key}: no values; choose some")
        return chosen
    first = FIRST_VALUES.get(key) or json.dumps(base.flat().get(key))
    label = "Seed" if key == "seed" else key
    text = st.text_input(label, first, key=f"grid_values.{key}", help=VALUES_HELP, max_chars=grids.MAX_TEXT)
    return grids.parse_values(key, text or "")


def _keys(base: RunConfig) -> list[str]:
    """What can vary: single settings, those that people vary most first."""
    flat = [key for key in base.flat() if key not in NOT_VARIED and not key.startswith("ring.")]
    return list(dict.fromkeys(["method", COHORT, "seed", *flat]))
