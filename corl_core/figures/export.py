"""Figure to a file's content, without a browser: PNG, SVG, PDF, HTML, CSV and a LaTeX table."""

import csv

import numpy as np
import pandas as pd

from corl_core.figures.bars import Bars, bars_table
from corl_core.figures.errors import FigureError
from corl_core.figures.html import to_html
from corl_core.figures.latex import to_tex
from corl_core.figures.paint import paint
from corl_core.figures.spec import Figure, Series
from corl_core.figures.stamp import Stamp
from corl_core.figures.text import for_cell, one_line
from corl_core.figures.venues import CARD, Look

FORMATS = ("png", "svg", "pdf", "csv")  # of a chart card's export button
ALL_FORMATS = (*FORMATS, "html", "tex")
MIME = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "html": "text/html",
    "tex": "application/x-tex",
}


def export(figure: Figure | Bars, kind: str, look: Look = CARD, stamp: Stamp | None = None) -> bytes:
    """The file's content; `kind` is one of ALL_FORMATS. Raises FigureError for another.

    With a stamp the file says which command makes it and which runs it shows (stamp.py).
    """
    if kind not in ALL_FORMATS:
        raise FigureError(f"format {kind!r} is not known; choose one of {', '.join(ALL_FORMATS)}")
    if kind == "csv":
        return to_csv(to_table(figure), stamp)
    if kind == "html":
        return to_html(figure, stamp)
    if kind == "tex":
        return to_tex(figure, stamp)
    return paint(figure, kind, look, stamp)


def to_table(figure: Figure | Bars) -> pd.DataFrame:
    """Every point that is drawn, smoothing included: series, x, y, and what exists of low, high, raw, n, lost and outside.

    `lost` counts the values at x that are NaN or infinite, which are marked at the edge of the chart; `outside` is 1 where
    a point lies beyond the y range, which marks then tell of.
    """
    if isinstance(figure, Bars):
        return bars_table(figure)
    columns = ["series", "x", "y", "low", "high", "raw", "n", "lost", "outside"]
    if not figure.series:
        return pd.DataFrame(columns=columns[:3])
    table = pd.concat([_rows(line) for line in figure.series], ignore_index=True)
    table["outside"] = np.nan
    if figure.marks and figure.bounds:
        low, high = figure.bounds
        table["outside"] = (~table["y"].between(low, high)).astype(int)
    optional = [name for name in columns[3:] if table[name].notna().any()]
    return table[columns[:3] + optional]


def to_csv(table: pd.DataFrame, stamp: Stamp | None = None) -> bytes:
    """A table as CSV: comment lines first, text cells in quotes, so that "#" in a name is no comment, and no formulas."""
    text = [name for name in table.columns if not pd.api.types.is_numeric_dtype(table[name])]
    safe = table.assign(**{name: table[name].map(for_cell, na_action="ignore") for name in text})
    rows = safe.to_csv(header=False, index=False, quoting=csv.QUOTE_NONNUMERIC)
    return ((stamp.lines("#") if stamp else "") + ",".join(table.columns) + "\n" + rows).encode()


def _rows(line: Series) -> pd.DataFrame:
    missing = np.full(len(line.x), np.nan)
    optional = {"low": line.low, "high": line.high, "raw": line.raw, "n": line.count}
    extra = {name: missing if array is None else array for name, array in optional.items()}
    lost_x, _ = line.lost()
    lost = np.array([(lost_x == x).sum() for x in line.x]) if len(lost_x) else missing
    return pd.DataFrame({"series": one_line(line.label), "x": line.x, "y": line.y} | extra | {"lost": lost})
