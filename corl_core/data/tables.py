"""A table as it lies in a source: rows of named cells, each with the place that a person finds it at."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

MISSING = {"", "nan", "NaN", "-nan", "NULL", "null", "None", "N/A", "n/a", "NA", "<NA>", "#N/A"}
"""How files spell a cell that holds nothing."""


@dataclass(frozen=True)
class Row:
    """One row; `where` is its place in words: 'line 7', 'row 7', 'item 7 (line 31)'."""

    where: str
    cells: Mapping[str, Any]


@dataclass(frozen=True)
class Trouble:
    """Something wrong at one place, in words."""

    where: str
    what: str


@dataclass(frozen=True)
class Table:
    """Rows of one source. `dropped`: rows that could not be read; `notes`: what a reader should know, in sentences."""

    rows: tuple[Row, ...]
    dropped: tuple[Trouble, ...] = ()
    notes: tuple[str, ...] = ()

    def columns(self) -> list[str]:
        """Every column in order of first appearance; a nested one as 'outer.inner'."""
        seen: dict[str, None] = {}
        for row in self.rows:
            for name, value in row.cells.items():
                seen |= dict.fromkeys(_names(name, value))
        return list(seen)


def cell(row: Row, column: str) -> Any:
    """The value at a column, nested ones by their dotted name; None where there is none."""
    if column in row.cells:
        return row.cells[column]
    outer, dot, inner = column.partition(".")
    value = row.cells.get(outer) if dot else None
    return cell(Row(row.where, value), inner) if isinstance(value, Mapping) else None


def is_missing(value: Any) -> bool:
    """Whether a cell holds nothing: None, NaN, or a spelling of nothing."""
    return value is None or value != value or (isinstance(value, str) and value.strip() in MISSING)


def as_text(value: Any) -> str | None:
    """A cell as text, None when it holds nothing: whole numbers without '.0', a list of one as its item."""
    if isinstance(value, (list, tuple)) and len(value) == 1:
        value = value[0]
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, (str, int, float)) for item in value):
        return ", ".join(filter(None, map(as_text, value)))
    if is_missing(value) or value in ([], {}):
        return None
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str):
        return value.replace("\r\n", "\n").encode("utf-8", "replace").decode()  # half an emoji cannot be written down
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (bool, dict, list)) else str(value)


def listed(troubles: Sequence[Trouble], most: int = 3) -> str:
    """The first few places with what is wrong there, and how many more there are."""
    shown = "; ".join(f"{trouble.where}: {trouble.what}" for trouble in troubles[:most])
    return shown + (f"; and {len(troubles) - most} more" if len(troubles) > most else "")


def _names(name: str, value: Any) -> list[str]:
    if isinstance(value, Mapping) and value and "bytes" not in value:
        return [f"{name}.{leaf}" for inner, nested in value.items() for leaf in _names(str(inner), nested)]
    return [name]
