"""New run: what the draft will need, in one line with its table behind it, and what would fit where it cannot run.

A forecast takes a millisecond or two; what does not change with every field (GPUs, this processor, the longest prompt) is kept.
"""

from pathlib import Path

import pandas as pd
import streamlit as st

from corl_core.config import ConfigError, RunConfig
from corl_core.data.questions import DataError
from corl_core.data.sources import ARITHMETIC
from corl_core.forecast import prompts, report
from corl_core.forecast.cards import CARDS
from corl_core.forecast.device import device_for
from corl_core.forecast.models import known
from corl_core.forecast.plan import Device, Forecast, forecast
from corl_core.forecast.remedies import Remedy, remedies
from corl_core.tiny_names import is_tiny
from pages.components.actions import why_not_launch
from pages.components.boundary import in_words
from pages.components.text import plain

MAY_ERR = "A forecast may be wrong, by some percent where it was measured."
HERE, KEY, ANYWAY = "This machine", "forecast_for", "anyway"
DEVICE_FIELDS = {"device", "threads_per_agent", "agents", "launcher"}  # what a device depends on
DATA_FIELDS = {"seed", "agents", "data"}
FRESH_S = 60


def show(config: RunConfig) -> str:
    """The forecast of a draft that is valid. Where this machine cannot hold it: a red note, what would fit, and, returned, why it
    is not to be started ("" where it is)."""
    if why_not_launch() and not all(is_tiny(agent.model) or known(agent.model) for agent in config.agents):
        return ""  # a folder's config is not read for somebody who may not act
    card = _card()
    try:
        here = made, found = _forecast(config, _device(_part(config, DEVICE_FIELDS), None, config))
        if card != HERE:
            made, found = _forecast(config, _device(_part(config, DEVICE_FIELDS), card, config))
    except (ConfigError, DataError) as error:
        st.caption(f":material/memory: No forecast: {plain(in_words(error))}")
        return ""
    for said in report.problems(here[0], [])[: len(here[0].full)]:
        st.error(plain(said), icon=":material/memory_alt:")
    with st.expander(plain(report.headline(made)), icon=":material/memory:"):
        st.selectbox("Forecast for", [HERE, *CARDS], key=KEY, bind="query-params", width=300)
        if not made.fits:
            _remedies(made, found, elsewhere=card != HERE)
        _table(made)
        st.markdown("\n".join(f"* :small[{plain(note)}]" for note in report.notes(made)))
    if here[0].fits or config.launcher != "local" or st.checkbox("Start it all the same", key=ANYWAY, help=MAY_ERR):
        return ""
    return "it cannot fit this machine; the forecast says what would, or tick 'Start it all the same'"


def _card() -> str:
    """The card chosen in the box below, whose first value comes from the address."""
    asked = st.session_state.get(KEY) or st.query_params.get(KEY)
    return asked if asked in CARDS else HERE


def _remedies(made: Forecast, found: list[Remedy], elsewhere: bool) -> None:
    for said in report.problems(made, [])[: len(made.full)] if elsewhere else ():
        st.markdown(f":material/block: {plain(said)}")
    st.markdown("**What would fit**" if found else "**Nothing that is known here would fit**")
    for one in found:
        st.markdown(f":small[{plain(one.words[0].upper() + one.words[1:])}: {plain(report.gib(one.needed))} on the fullest]")
        st.code(one.settings, language=None, wrap_lines=True)
    if not found:
        st.caption("Use smaller models.")


def _table(made: Forecast) -> None:
    columns = [agent.name for agent in made.agents]
    rows = [{"": words.replace("**", ""), **dict(zip(columns, values, strict=True))} for words, values in report.rows(made)]
    frame = pd.DataFrame(rows).replace(r"\*\*", "", regex=True)
    st.dataframe(frame, hide_index=True, width="stretch", height="content", alt="Memory and time of each agent, term by term")


def _forecast(config: RunConfig, device: Device) -> tuple[Forecast, list[Remedy]]:
    characters = _characters(config)
    made = forecast(config, device, characters=characters)
    return made, [] if made.fits else _found(config.to_yaml(), _frozen(device), characters, device)


def _frozen(device: Device) -> str:
    return f"{[(gpu.name, gpu.memory) for gpu in device.gpus]} {device.host_memory}"


@st.cache_resource(max_entries=64, show_spinner=False)
def _found(config: str, key: str, characters: int | None, _device: Device) -> list[Remedy]:
    return remedies(RunConfig.from_yaml(config), _device, characters=characters)


def _part(config: RunConfig, fields: set[str]) -> str:
    """Those fields of the draft, as the key of what depends on them alone."""
    return config.model_dump_json(include=fields)


@st.cache_resource(max_entries=32, ttl=FRESH_S, show_spinner=False)
def _device(part: str, card: str | None, _config: RunConfig) -> Device:
    return device_for(_config, card=card)


def _characters(config: RunConfig) -> int | None:
    """Of the longest prompt; None for questions that are not read for this page."""
    sources = [source for source in (config.data.train, config.data.eval) if source]
    if why_not_launch() and any(source != ARITHMETIC for source in sources):
        return None
    paths = [Path(source).expanduser() for source in sources if source != ARITHMETIC]
    stamps = tuple((path.stat().st_mtime_ns, path.stat().st_size) if path.is_file() else (0, 0) for path in paths)
    num_questions = config.grpo.max_steps * config.grpo.questions_per_step
    return _longest(_part(config, DATA_FIELDS), num_questions, stamps, config)


@st.cache_resource(max_entries=16, show_spinner=False)
def _longest(part: str, num_questions: int, stamps: tuple[tuple[int, int], ...], _config: RunConfig) -> int | None:
    return prompts.longest(_config)
