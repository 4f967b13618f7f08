"""Files that come through the browser: checked by content, kept under a name made from the content alone."""

import hashlib
from io import BytesIO
from pathlib import Path

from corl_core.data.files import kind_of, read_content
from corl_core.data.questions import DataError

MAX_BYTES = 10 * 2**20
MAX_UNPACKED_BYTES = 200 * 2**20
MAX_NAME = 80
MAX_KEPT = 500  # files


def folder(runs_dir: Path) -> Path:
    """Where uploads of a runs folder are kept."""
    return runs_dir / "uploads"


def called(name: str) -> str:
    """The name that the browser gave, as one short line; never a path on this machine."""
    printable = "".join(letter if letter.isprintable() else " " for letter in name.replace("\\", "/").rpartition("/")[2])
    return " ".join(printable.split())[:MAX_NAME] or "upload"


def keep(content: bytes, runs_dir: Path, name: str = "upload") -> Path:
    """Stores an upload and returns its path; the same content is kept once. Raises DataError for what cannot be read.

    `name` is only what errors call it.
    """
    if len(content) > MAX_BYTES:
        raise DataError(
            f"'{name}' has {len(content) / 2**20:.1f} MB and {MAX_BYTES >> 20} MB are allowed; "
            "copy the file to this machine and give its path instead"
        )
    kind = kind_of(content, name)
    if kind == "parquet":
        _check_unpacked_size(content, name)
    if not read_content(content, name).rows:
        raise DataError(f"'{name}' has no rows; it needs one for each question, under a line with the names of the columns")
    path = folder(runs_dir) / f"{hashlib.sha256(content).hexdigest()[:16]}.{kind}"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists():
        if len(list(path.parent.iterdir())) >= MAX_KEPT:
            raise DataError(f"{MAX_KEPT} uploads are kept already; remove some from {path.parent}, or give a file's path instead")
        unfinished = path.with_suffix(".part")
        unfinished.write_bytes(content)
        unfinished.replace(path)
    return path


def _check_unpacked_size(content: bytes, name: str) -> None:
    """Raises DataError for a small Parquet file that would fill the memory, as its own description says."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        about = parquet.ParquetFile(BytesIO(content)).metadata
        size = sum(about.row_group(group).total_byte_size for group in range(about.num_row_groups)) + about.num_rows
    except (pa.ArrowException, OSError, ValueError):
        return  # damaged: reading says so
    if size > MAX_UNPACKED_BYTES:
        allowed = MAX_UNPACKED_BYTES >> 20
        raise DataError(f"'{name}' unpacks to {size >> 20} MB and {allowed} MB are allowed; give its path instead")
