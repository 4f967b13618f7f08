"""Datasets of the Hugging Face Hub, or a local folder in its layout (README.md with `configs`, data files by split)."""

import logging
import re
from pathlib import Path

from corl_core.data.questions import DataError
from corl_core.data.tables import Row, Table

OWNER_NAME = "to load a dataset from the Hub, write it as owner/name"
_ID = re.compile(r"[\w.-]+/[\w.-]+")
_WORD = re.compile(r"[\w.-]+")
_FILE_ENDINGS = {".jsonl", ".json", ".ndjson", ".csv", ".tsv", ".parquet", ".txt", ".xlsx", ".xls", ".pkl", ".gz", ".zip", ".zst"}
_REMEDIES = {  # what the loader says → what to do
    "Config name is missing": "set data.config to one of those",
    "BuilderConfig": "set data.config to one of those",
    "Unknown split": "set the split (data.train_split, data.eval_split) to one of those",
    "Dataset scripts are no longer supported": "load its Parquet branch: set data.revision to refs/convert/parquet",
    "gated": "ask for access on its page, then run: hf auth login",
    "doesn't exist on the Hub": "check its name; for a file, give its path with its ending",
    "offline": "download it once while online, or give a local folder or file",
    "Couldn't reach": "check the network, or give a local folder or file",
    "ConnectionError": "check the network, or give a local folder or file",
    "doesn't contain any data files": "put train.jsonl, test.jsonl or the like into it",
    "different columns": "give every file of one split the same columns, or load one file by its path",
}


def is_dataset_id(source: str) -> bool:
    """Whether a source can only be a dataset: 'owner/name', or a folder that exists; never what ends like a file."""
    path = Path(source).expanduser()
    return path.is_dir() or (_ID.fullmatch(source) is not None and not _ends_like_a_file(path))


def is_bare_word(source: str) -> bool:
    """Whether a source could be the name of a dataset without its owner, which is never looked for on the Hub."""
    return _WORD.fullmatch(source) is not None and not _ends_like_a_file(Path(source))


def _ends_like_a_file(path: Path) -> bool:
    return path.suffix.lower() in _FILE_ENDINGS


def read_dataset(source: str, config: str | None, split: str, revision: str | None) -> Table:
    """The rows of one split. Raises DataError."""
    from datasets import disable_progress_bars, load_dataset  # a slow import; files and the built-in questions do without

    disable_progress_bars()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)  # a line for each retry; what came of them is said below
    folder = Path(source).expanduser()
    try:
        dataset = load_dataset(str(folder) if folder.is_dir() else source, config, split=split, revision=revision)
        rows = dataset.with_format("arrow")[:].to_pylist()  # as stored: images are not decoded
    except Exception as error:  # the loader raises its own many kinds; all of them are about this source
        raise DataError(_said(source, config, split, error)) from error
    return Table(tuple(Row(f"row {number}", row) for number, row in enumerate(rows, start=1)))


def _said(source: str, config: str | None, split: str, error: Exception) -> str:
    causes = [str(cause) for cause in (error, error.__cause__) if cause is not None]
    reason = " ".join(" ".join(causes).split())
    searched = f"{error.__class__.__name__} {reason}".lower()
    remedy = next((remedy for sign, remedy in _REMEDIES.items() if sign.lower() in searched), "")
    what = f"data '{source}' (config {config or 'default'}, split {split}) cannot be loaded: {reason[:400]}"
    return f"{what}; {remedy}" if remedy else what
