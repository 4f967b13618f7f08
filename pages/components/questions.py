"""New run: where the questions come from, which column holds what, and who reads paraphrases."""

from pathlib import Path

import streamlit as st

from corl_core.data import uploads
from corl_core.data.hub import is_dataset_id
from corl_core.data.preflight import Report
from corl_core.data.sources import ARITHMETIC
from corl_core.runs.folder import default_runs_dir
from pages.components import draft, preview
from pages.components.access import acts
from pages.components.boundary import told
from pages.components.fields import field, grid, problem, spec

ROLES = ("question", "answer", "paraphrase", "choices", "image")
UPLOAD_HELP = "JSON Lines, JSON, CSV, TSV or Parquet, at most 10 MB. The content decides, not the name."
READERS_HELP = "These agents train on each question's paraphrase where there is one. Evaluation asks the originals."


def editor(problems: dict[str, str]) -> str:
    """The section of the form: source, columns, prompt, and what was found in the data.

    Returns why a run with this data would be refused, or "".
    """
    source, upload = st.columns([1, 1])
    with source:
        field("data.train", problems)
    upload.file_uploader(
        "Or upload a file of questions",
        key=draft.key("upload"),
        help=UPLOAD_HELP,
        max_upload_size=uploads.MAX_BYTES >> 20,
        on_change=_take_upload,
    )
    if draft.get("data.train") == ARITHMETIC:
        report, refusal = preview.report()
    else:
        if is_dataset(draft.get("data.train")):
            grid(["data.config", "data.train_split", "data.revision"], problems)
        grid(["data.eval", "data.num_questions"], problems, 2)
        if is_dataset(draft.get("data.eval")):
            grid(["data.eval_config", "data.eval_split", "data.eval_revision"], problems)
        report, refusal = preview.report()
        _columns(report, problems)
    with st.expander("Prompt", icon=":material/chat:"):
        field("data.prompt_template", problems)
        grid(["data.chat_template", "data.system_prompt"], problems, 2)
    if report:
        _readers(report)
        preview.show(report)
    return refusal


def is_dataset(source: str | None) -> bool:
    """Whether a source is a Hugging Face dataset, or a folder in its layout, and so has splits."""
    return bool(source) and source != ARITHMETIC and not Path(source).is_file() and is_dataset_id(source)


@acts
def _take_upload() -> None:
    """The uploader's callback: the file is checked and kept, and becomes the training questions."""
    upload = st.session_state[draft.key("upload")]
    if upload is not None:
        name = uploads.called(upload.name)
        path = str(uploads.keep(upload.getvalue(), default_runs_dir(), name))
        preview.remember(path, name)
        draft.put("data.train", path)
        for role in ROLES:
            draft.put(f"data.{role}_column", None)
        draft.renew()


def _columns(report: Report | None, problems: dict[str, str]) -> None:
    """One box a role, with the guess as its first choice; text fields while the columns aren't known."""
    paths = [f"data.{role}_column" for role in ROLES]
    if report is None or report.train.columns is None:
        grid(paths, problems)
        return
    guessed = {role: getattr(report.train.columns, role) for role in ROLES}
    for role, path, place in zip(ROLES, paths, [*st.columns(3), *st.columns(3)[:2]], strict=True):
        guess = " + ".join(guessed[role]) if role == "choices" else guessed[role]
        chosen = draft.get(path) or ""
        options = list(dict.fromkeys(["", *report.train.names, chosen]))
        with place:
            st.selectbox(
                f"{role.capitalize()} column",
                options,
                options.index(chosen),
                format_func=lambda name, guess=guess, chosen=chosen: name or _guess(guess, chosen),
                key=draft.key(path),
                help=spec(path).help,
                on_change=draft.take,
                args=(path,),
            )
            problem(path, problems)


def _guess(guess: str | None, chosen: str) -> str:
    if chosen:
        return "guess it"
    return f"{guess} (guessed)" if guess else "none found"


def _readers(report: Report) -> None:
    """Which agents read paraphrases, where there are some."""
    agents = draft.get("agents")
    readers = [agent["name"] for agent in agents if agent.get("paraphrase")]
    if report.pairs or readers:
        st.pills(
            "Agents that read the paraphrase",
            [agent["name"] for agent in agents],
            selection_mode="multi",
            default=readers,
            key=draft.key("readers"),
            help=READERS_HELP,
            on_change=_take_readers,
        )


@told
def _take_readers() -> None:
    """The pills' callback."""
    readers = st.session_state[draft.key("readers")]
    for agent in draft.get("agents"):
        agent["paraphrase"] = agent["name"] in readers
