"""Cohort picker: a file of answers, by path or upload; and what was read from it, in short."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import streamlit as st

from corl_core.data import uploads
from corl_core.data.questions import DataError
from corl_core.diversity.answers import Answers, Basis
from corl_core.diversity.jobs import Job
from corl_core.diversity.reading import read_answers
from corl_core.diversity.report import Predictions, Report, predictions, report
from corl_core.runs.folder import default_runs_dir
from pages.components.access import acts
from pages.components.actions import why_not_launch
from pages.components.boundary import in_words
from pages.components.text import plain

SOURCES = {"file": "Answers that exist", "sample": "Sample candidates"}
BASIS_WORDS = {"first": "First sample", "vote": "Majority vote"}
FILE_HELP = (
    "JSON Lines, JSON, CSV, TSV or Parquet. Long: one row an answer, with question_id, model, answer or completion, and truth if "
    "it is known; several rows of one question and model are its samples. Wide: one row a question, one column a model."
)
EXAMPLE = """{"question_id": "q1", "model": "llama", "completion": "… \\\\boxed{12}", "truth": "12"}
{"question_id": "q1", "model": "qwen2", "completion": "… \\\\boxed{13}", "truth": "12"}"""


@dataclass(frozen=True)
class Found:
    """Answers to analyse, from a file in one version; `job` when they were sampled here."""

    answers: Answers
    path: str
    stamp: tuple[int, int]
    job: Job | None = None


def chosen() -> Found | None:
    """The fields for a file; None, with what is missing or wrong on the page, until one can be read."""
    left, right = st.columns([1, 1])
    path = left.text_input("File of answers", key="answers", bind="query-params", help=FILE_HELP, placeholder="answers.jsonl")
    right.file_uploader(
        "Or upload one",
        key="picker.upload",
        help=FILE_HELP,
        max_upload_size=uploads.MAX_BYTES >> 20,
        on_change=_take_upload,
    )
    if not path.strip():
        st.markdown("One row an answer is enough, with or without the truth:")
        st.code(EXAMPLE, language="json")
        return None
    if why := _not_read(path):
        st.warning(plain(why), icon=":material/lock:")
        return None
    return opened(path.strip())


def opened(path: str, job: Job | None = None) -> Found | None:
    """The answers in a file; None, with the reason on the page, when it cannot be read."""
    try:
        stamp = _stamp(path)
        return Found(_answers(path, stamp), path, stamp, job)
    except DataError as error:
        st.error(plain(in_words(error)), icon=":material/error:")
        return None


def analysed(found: Found, basis: Basis) -> Report:
    return _report(found.path, found.stamp, basis)


def predicted(found: Found, group_size: int, rings: bool) -> Predictions:
    return _predictions(found.path, found.stamp, group_size, rings)


def summary(made: Report) -> None:
    """How much there is, and each model's accuracy."""
    answers = made.answers
    words = f"{len(answers.models)} models, {len(answers.questions):,} questions, {answers.num_labelled:,} with known truth"
    st.markdown(f"{words}; {answers.num_samples} sample{'s' * (answers.num_samples > 1)} of each.")
    rows = [
        {"Model": model.model, "Accuracy": model.sample, "Accuracy of the vote": model.vote, "Answers read": model.read}
        for model in made.models
    ]
    share = {name: st.column_config.NumberColumn(name, format="%.3f") for name in list(rows[0])[1:]}
    frame = pd.DataFrame(rows).dropna(axis="columns", how="all")
    if answers.num_samples == 1 and "Accuracy of the vote" in frame:
        frame = frame.drop(columns="Accuracy of the vote")
    st.dataframe(frame, column_config=share, hide_index=True, width="content", alt="Accuracy of each model")


def _not_read(path: str) -> str:
    """Why files of this machine are not read for this page, or ""."""
    kept = uploads.folder(default_runs_dir()).resolve()
    if not why_not_launch() or kept in Path(path).resolve().parents:
        return ""
    return f"Files are not read by path. {why_not_launch()}"


@acts
def _take_upload() -> None:
    """The uploader's callback: the file is checked and kept, and its path fills the field."""
    upload = st.session_state["picker.upload"]
    if upload is not None:
        path = uploads.keep(upload.getvalue(), default_runs_dir(), uploads.called(upload.name))
        st.session_state["answers"] = str(path)


def _stamp(path: str) -> tuple[int, int]:
    """Tells versions of a file apart."""
    file = Path(path).expanduser()
    return (file.stat().st_mtime_ns, file.stat().st_size) if file.is_file() else (0, 0)


@st.cache_resource(max_entries=8, show_spinner="Reading the answers")
def _answers(path: str, stamp: tuple[int, int]) -> Answers:
    return read_answers(Path(path).expanduser())


@st.cache_resource(max_entries=16, show_spinner=False)
def _report(path: str, stamp: tuple[int, int], basis: Basis) -> Report:
    return report(_answers(path, stamp), basis)


@st.cache_resource(max_entries=16, show_spinner="Following each question to the end of training")
def _predictions(path: str, stamp: tuple[int, int], group_size: int, rings: bool) -> Predictions:
    return predictions(_answers(path, stamp), group_size, with_rings=rings)
