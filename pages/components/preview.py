"""New run: what is in the data before a run starts: findings, the first rows, the prompt, paraphrases side by side."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd
import streamlit as st

from corl_core import answers
from corl_core.config import AgentConfig, DataConfig, RunConfig
from corl_core.data import uploads
from corl_core.data.checks import Finding
from corl_core.data.hub import is_dataset_id
from corl_core.data.preflight import Report, preflight
from corl_core.data.questions import DataError
from corl_core.data.sources import ARITHMETIC
from corl_core.runs.folder import default_runs_dir
from corl_core.tiny_names import is_tiny
from pages.components import draft
from pages.components.actions import why_not_launch
from pages.components.boundary import in_words
from pages.components.text import plain

ROWS, PAIRS = 20, 50
WIDTHS = {"Where": 70, "True answer": 90, "Counted as": 90, "Numbers changed": 130}
MARKS = {"ok": ":green[:material/check:]", "note": ":gray[:material/info:]"}
MARKS |= {"warning": ":orange[:material/warning:]", "refusal": ":red[:material/block:]"}
READ = ("seed", "method", "agents", "data", "device", "launcher", "ray")  # what preflight reads of a configuration, and these:
READ_GRPO = ("max_steps", "questions_per_step", "num_generations", "max_completion_length", "gradient_accumulation_steps")
_ASKED, _NAMES = "preview.asked", "preview.names"


def remember(path: str, name: str) -> None:
    """From now on an upload is called by the name that the person gave it."""
    st.session_state.setdefault(_NAMES, {})[path] = name


def report() -> tuple[Report | None, str]:
    """What preflight finds in the draft's data, and why a run would be refused, or "".

    None, with the reason on the page, when it cannot tell.
    """
    config = draft.checked().config
    if config is None:
        st.caption("The data is checked once every field has a value that can be used.")
        return None, ""
    sources = [source for source in (config.data.train, config.data.eval) if source]
    if why := _not_shown(sources):
        st.caption(plain(why))
        return None, ""
    if any(_is_remote(source) for source in sources) and not _asked(config):
        return None, ""
    try:
        found = _report(_relevant(config), tuple(_stamp(source) for source in sources))
    except DataError as error:
        said = _named(in_words(error))
        st.error(plain(said), icon=":material/error:")
        return None, said
    return found, _named("; ".join(found.refusals))


def show(found: Report) -> None:
    """What needs a look, then everything that was found and the data itself behind expanders."""
    own = found.train.source != ARITHMETIC
    pressing = [finding for finding in found.findings if finding.level in ("warning", "refusal")]
    _list([*found.findings[:1], *pressing] if own else pressing)
    with st.expander(f"All {len(found.findings)} checks of the data", icon=":material/checklist:"):
        _list(found.findings)
    with st.expander("First questions and the prompt", icon=":material/table_rows:", expanded=own):
        _rows(found)
        _prompt(found)
    if found.pairs:
        with st.expander("Paraphrases beside their questions", icon=":material/compare:"):
            _pairs(found)


def _list(findings: Sequence[Finding]) -> None:
    with st.container(gap="xsmall"):
        for finding in findings:
            st.markdown(f":small[{MARKS[finding.level]} {plain(_named(finding.text))}]")


def _named(text: str) -> str:
    """The text with the person's names of uploads in place of where they are kept."""
    for path, name in st.session_state.get(_NAMES, {}).items():
        text = text.replace(path, name)
    return text


def _not_shown(sources: list[str]) -> str:
    """Why files of this machine are not read for this page, or ""."""
    kept = uploads.folder(default_runs_dir()).resolve()
    if all(source == ARITHMETIC or kept in Path(source).resolve().parents for source in sources) or not why_not_launch():
        return ""
    return f"Files and datasets are not shown. {why_not_launch()}"


def _is_remote(source: str) -> bool:
    return source != ARITHMETIC and not Path(source).expanduser().exists() and is_dataset_id(source)


def _asked(config: RunConfig) -> bool:
    """Whether a person asked for this dataset, which may have to be downloaded."""
    wanted = (config.data.train, config.data.eval, config.data.config, config.data.train_split, config.data.revision)
    if st.session_state.get(_ASKED) != wanted and st.button("Load the dataset and check it", icon=":material/download:"):
        st.session_state[_ASKED] = wanted
    return st.session_state.get(_ASKED) == wanted


def _stamp(source: str) -> tuple[int, int]:
    """Tells versions of a file apart."""
    path = Path(source).expanduser()
    return (path.stat().st_mtime_ns, path.stat().st_size) if source != ARITHMETIC and path.is_file() else (0, 0)


def _relevant(config: RunConfig) -> str:
    values = config.model_dump(include={*READ, "grpo", "eval", "signal"})
    values["grpo"] = {key: values["grpo"][key] for key in READ_GRPO}
    values["eval"] = {"num_questions": values["eval"]["num_questions"]}
    return RunConfig.model_validate({"name": "preview"} | values).to_yaml()


@st.cache_resource(max_entries=8, show_spinner="Reading the questions")
def _report(config: str, stamps: tuple[tuple[int, int], ...]) -> Report:
    return preflight(RunConfig.from_yaml(config))


def _rows(found: Report) -> None:
    train = found.train
    rows = [
        {
            "Where": train.places[row] if train.places else f"question {row + 1}",
            "True answer": question.answer,
            "Counted as": parsed.key if question.answer and (parsed := answers.answer(question.answer)) else None,
            "Question": question.question,
            "Paraphrase": question.paraphrase,
        }
        for row, question in enumerate(train.questions[:ROWS])
    ]
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    _table(frame, "The first questions with their parsed true answers")
    st.caption(f"The first {len(rows)} of {len(train.questions):,} questions. An empty answer is unlabelled, never wrong.")


def _table(frame: pd.DataFrame, alt: str) -> None:
    """Short columns at their width, long texts broken over several lines."""
    columns = {name: st.column_config.TextColumn(name, width=WIDTHS.get(name, 210)) for name in frame.columns}
    st.dataframe(frame, column_config=columns, hide_index=True, row_height=72, height=300, alt=alt)


def _prompt(found: Report) -> None:
    config = draft.checked().config
    st.markdown("**What the models read**")
    readers: dict[str, tuple[DataConfig, list[AgentConfig]]] = {}
    for agent in config.agents:
        data = config.for_agent(agent.name).data
        readers.setdefault(data.model_dump_json(), (data, []))[1].append(agent)
    for data, agents in readers.values():
        if len(readers) > 1:
            st.caption(f"Read by {', '.join(agent.name for agent in agents)}:")
        _prompt_of(data, agents, found.train.questions[0].question)


def _prompt_of(data: DataConfig, agents: Sequence[AgentConfig], question: str) -> None:
    if data.system_prompt and data.chat_template != "never":
        st.caption("As the system message, where there is a chat template:")
        _verbatim(data.system_prompt)
    _verbatim(data.prompt_template.format(question=question))
    if data.chat_template == "always":
        st.caption("As the user's message, in each model's own chat template.")
    elif data.chat_template == "never" or all(is_tiny(agent.model) for agent in agents):
        st.caption("Exactly this text, which the models continue.")
    else:
        st.caption("As the user's message where a model has a chat template; a base model without one continues this text.")


def _verbatim(text: str) -> None:
    st.container(border=True).text(text)
    if text != text.strip():
        st.caption("With the spaces or line breaks around it, which are not visible here.")


def _pairs(found: Report) -> None:
    rows = [
        {"Where": pair.place, "Numbers changed": pair.change(), "Question": pair.question, "Paraphrase": pair.paraphrase}
        for pair in found.pairs[:PAIRS]
    ]
    _table(pd.DataFrame(rows), "Questions beside their paraphrases")
    flagged = sum(pair.flagged for pair in found.pairs)
    st.caption(f"{flagged:,} of {len(found.pairs):,} paraphrases have other numbers than their question; they come first.")
