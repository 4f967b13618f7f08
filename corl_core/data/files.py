"""Question files: JSON, JSON Lines, CSV, TSV and Parquet, told apart by their content. Nothing is unpickled or executed."""

import codecs
from io import BytesIO
from pathlib import Path
from typing import Literal

from corl_core.config_errors import did_you_mean
from corl_core.data.csv_text import read_csv
from corl_core.data.json_text import looks_like_json, read_json
from corl_core.data.questions import DataError
from corl_core.data.tables import Row, Table

JSON_SUFFIXES = (".jsonl", ".json", ".ndjson")
SUFFIXES = (*JSON_SUFFIXES, ".csv", ".tsv", ".parquet")
KINDS = "JSON Lines, JSON, CSV, TSV or Parquet"
_BOMS = ((codecs.BOM_UTF8, "utf-8-sig"), (codecs.BOM_UTF16_LE, "utf-16"), (codecs.BOM_UTF16_BE, "utf-16"))
_FOREIGN = {
    b"PK\x03\x04": "a zip archive or an Excel workbook; save the sheet as CSV",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save the sheet as CSV",
    b"\x1f\x8b": "compressed (gzip); unpack it first",
    b"\x28\xb5\x2f\xfd": "compressed (zstd); unpack it first",
    b"\x80\x04": "a Python pickle, which is never opened here; export the data as JSON Lines",
    b"\x80\x05": "a Python pickle, which is never opened here; export the data as JSON Lines",
    b"version https://git-lfs": "a Git LFS pointer, not the data; run: git lfs pull",
}


def read_file(path: Path) -> Table:
    """The rows of a file. Raises DataError, with the line where there is one."""
    try:
        content = path.read_bytes()
    except FileNotFoundError as error:
        near = did_you_mean(path.name, [other.name for other in path.parent.glob("*") if other.suffix in SUFFIXES])
        raise DataError(f"data '{path}': there is no such file in {path.absolute().parent}{near}") from error
    except OSError as error:
        raise DataError(f"data '{path}' cannot be read: {error.strerror}; check the path and its permissions") from error
    return read_content(content, str(path), "\t" if path.suffix == ".tsv" else None, path.suffix in JSON_SUFFIXES)


def read_content(content: bytes, name: str, delimiter: str | None = None, is_json: bool = False) -> Table:
    """The rows of a file's content; `name` is only what errors call it. `is_json`: it is JSON, even if it looks like CSV."""
    if content.startswith(b"PAR1"):
        return _read_parquet(content, name)
    text, notes = decoded(content, name)
    if not text.strip():
        raise DataError(f"data '{name}' is empty; it needs one row for each question")
    table = read_json(text, name) if is_json or looks_like_json(text) else read_csv(text, name, delimiter)
    return Table(table.rows, table.dropped, (*table.notes, *notes))


def kind_of(content: bytes, name: str) -> Literal["parquet", "jsonl", "csv"]:
    """What a file's content is, whatever it is called. Raises DataError for what is none of them."""
    if content.startswith(b"PAR1"):
        return "parquet"
    return "jsonl" if looks_like_json(decoded(content, name)[0]) else "csv"


def decoded(content: bytes, name: str) -> tuple[str, tuple[str, ...]]:
    """The text of a file: UTF-8, UTF-16 with its mark, or what Excel writes in the West (Windows-1252), which is noted."""
    if kind := next((kind for magic, kind in _FOREIGN.items() if content.startswith(magic)), None):
        raise DataError(f"data '{name}' is {kind}")
    encoding = next((encoding for mark, encoding in _BOMS if content.startswith(mark)), "utf-8")
    try:
        text = content.decode(encoding)
    except UnicodeDecodeError as error:
        return _western(content, name, error)
    if "\x00" in text:
        line = text[: text.index("\x00")].count("\n") + 1
        raise DataError(f"data '{name}', line {line}: binary content; questions come as {KINDS}")
    return text, ()


def _western(content: bytes, name: str, error: UnicodeDecodeError) -> tuple[str, tuple[str, ...]]:
    line = content.count(b"\n", 0, error.start) + 1
    refusal = DataError(f"data '{name}', line {line}: not UTF-8 text; save the file as UTF-8 (in Excel: CSV UTF-8)")
    if b"\x00" in content or content.lstrip()[:1] in (b"{", b"["):
        raise refusal from error
    try:
        text = content.decode("cp1252")
    except UnicodeDecodeError:
        raise refusal from error
    return text, (f"line {line} is not UTF-8: the file was read as Windows-1252; check its accents, or save it as UTF-8",)


def _read_parquet(content: bytes, name: str) -> Table:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        rows = parquet.read_table(BytesIO(content)).to_pylist()
    except (pa.ArrowException, OSError, ValueError, OverflowError) as error:  # text or dates that Python refuses, too
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"data '{name}' is a damaged Parquet file ({reason}); copy or export it again") from error
    return Table(tuple(Row(f"row {number}", row) for number, row in enumerate(rows, start=1)))
