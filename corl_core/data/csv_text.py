"""Rows out of delimited text (CSV, TSV, what spreadsheets export), each with its line; every cell stays text."""

import csv
import io
from collections.abc import Iterator
from itertools import islice

from corl_core.data.questions import DataError
from corl_core.data.tables import Row, Table, Trouble

DELIMITERS = ",;\t|"
SNIFFED_ROWS = 50
csv.field_size_limit(2**31 - 1)  # a worked solution may be longer than the library's 128 KiB


def read_csv(text: str, name: str, delimiter: str | None = None) -> Table:
    """The rows under the header line; `delimiter` None: the one that splits the first rows most evenly.

    A row with more cells than the header is dropped, for nobody can tell which comma was meant as text; one with fewer
    lacks its last cells. Raises DataError with the line.
    """
    if text[:4].lower() == "sep=":  # Excel's own way to say it
        first, _, _ = text.partition("\n")
        delimiter = first.rstrip("\r")[4:5] or delimiter
        text = "\n" + text[len(first) + 1 :]  # the line stays, empty, so that lines keep their numbers
    records = _records(text, delimiter or _sniff(text), name)
    _, header = next(records, (1, []))
    columns = _unique([cell.strip() for cell in header])
    rows, dropped = [], []
    for line, cells in records:
        while len(cells) > len(columns) and not cells[-1].strip():
            cells.pop()
        if len(cells) > len(columns):
            what = f"{len(cells)} cells where the header has {len(columns)}; put text that holds the delimiter in quotes"
            dropped.append(Trouble(f"line {line}", what))
        elif any(cell.strip() for cell in cells):
            padded = [*cells, *[None] * (len(columns) - len(cells))]
            rows.append(Row(f"line {line}", dict(zip(columns, padded, strict=True))))
    return Table(tuple(rows), tuple(dropped))


def _records(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """(line it starts on, cells) of each record that is not an empty line."""
    reader, start = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True), 1
    try:
        for cells in reader:
            if cells:
                yield start, cells
            start = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"data '{name}', line {start}: the quotes do not fit ({error}); a cell that holds quotes, delimiters or line breaks "
            'needs quotes around it, and a quote inside is written ""'
        ) from error


def _sniff(text: str) -> str:
    """The delimiter under which most of the first records are as wide as the header, then the one that makes it widest."""

    def fit(delimiter: str) -> tuple[bool, float, int]:
        try:
            records = [cells for _, cells in islice(_records(text, delimiter, ""), SNIFFED_ROWS)]
        except DataError:
            return False, 0.0, 0
        width = len(records[0]) if records else 0
        return width > 1, sum(len(cells) == width for cells in records) / max(1, len(records)), width

    return max(DELIMITERS, key=fit)


def _unique(names: list[str]) -> list[str]:
    """Names for every column: an empty one by its place, a repeated one with a number."""
    made: list[str] = []
    for place, name in enumerate(names, start=1):
        name = name or f"column {place}"
        made.append(name if name not in made else next(n for i in range(2, 9999) if (n := f"{name}_{i}") not in made))
    return made
