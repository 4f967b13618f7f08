"""Figure to PNG, SVG, PDF and CSV, without a browser.

Always on white, with legend and axis titles, whatever the page's theme. Fonts are embedded
as TrueType and SVG text stays text. matplotlib is used through its Figure class: pyplot
keeps figures for ever, and its rc settings are global, hence the lock.
"""

import io
import threading
from typing import Any

import numpy as np
import pandas as pd

from corl_core.figures.gaps import apart, lone, stretches
from corl_core.figures.spec import Figure, Series

FORMATS = ("png", "svg", "pdf", "csv")
MIME = {
    "png": "image/png",
    "svg": "image/svg+xml",
    "pdf": "application/pdf",
    "csv": "text/csv",
}
SIZE_INCHES = (5.0, 3.4)
DPI = 300
RC: dict[str, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9,
    "legend.fontsize": 7,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
}
_DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}
_MARKERS = {
    "circle": "o",
    "square": "s",
    "diamond": "D",
    "triangle-up": "^",
    "triangle-down": "v",
    "cross": "P",
    "pentagon": "p",
}
_rc_lock = threading.Lock()


def export(figure: Figure, kind: str) -> bytes:
    """The file's content; `kind` is one of FORMATS."""
    if kind not in FORMATS:
        raise ValueError(f"format {kind!r} is not known; choose one of {', '.join(FORMATS)}")
    if kind == "csv":
        return to_table(figure).to_csv(index=False).encode()
    return _draw(figure, kind)


def to_table(figure: Figure) -> pd.DataFrame:
    """Every point that is drawn: series, x, y, and low, high, raw and n where they exist."""
    columns = ["series", "x", "y", "low", "high", "raw", "n"]
    if not figure.series:
        return pd.DataFrame(columns=columns[:3])
    table = pd.concat([_rows(line) for line in figure.series], ignore_index=True)
    optional = [name for name in columns[3:] if table[name].notna().any()]
    return table[columns[:3] + optional]


def _rows(line: Series) -> pd.DataFrame:
    missing = np.full(len(line.x), np.nan)
    optional = {"low": line.low, "high": line.high, "raw": line.raw, "n": line.count}
    extra = {name: missing if array is None else array for name, array in optional.items()}
    return pd.DataFrame({"series": line.label, "x": line.x, "y": line.y} | extra)


def _draw(figure: Figure, kind: str) -> bytes:
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    buffer = io.BytesIO()
    with _rc_lock, matplotlib.rc_context(RC):
        canvas = Canvas(figsize=SIZE_INCHES, layout="constrained", facecolor="white")
        axes = canvas.subplots()
        for line in figure.series:
            _draw_line(axes, line)
        axes.set_title(_plain(figure.title))
        axes.set_xlabel(_plain(figure.x_title))
        axes.set_ylabel(_plain(figure.y_title))
        if figure.bounds is not None:
            low, high = figure.bounds
            margin = 0.03 * (high - low)
            axes.set_ylim(low - margin, high + margin)
        if axes.get_legend_handles_labels()[0]:
            columns = 1 if sum(not line.faint for line in figure.series) <= 3 else 2
            canvas.legend(loc="outside lower center", ncols=columns, frameon=False)
        canvas.savefig(buffer, format=kind, dpi=DPI)
    return buffer.getvalue()


def _draw_line(axes: Any, line: Series) -> None:
    color, stretch = line.style.color, stretches(line.x, line.y)
    x = apart(line.x, stretch)
    if line.low is not None and line.high is not None:
        low, high = apart(line.low, stretch), apart(line.high, stretch)
        axes.fill_between(x, low, high, color=color, alpha=0.16, linewidth=0)
    if line.raw is not None:
        axes.plot(x, apart(line.raw, stretch), color=color, alpha=0.22, linewidth=0.6)
    if len(alone := lone(stretch)):
        marker = _MARKERS[line.style.marker]
        axes.plot(line.x[alone], line.y[alone], color=color, linestyle="", marker=marker, markersize=3.5)
    axes.plot(
        x,
        apart(line.y, stretch),
        color=color,
        linestyle=_DASHES[line.style.dash],
        linewidth=0.6 if line.faint else 1.2,
        alpha=0.35 if line.faint else 1.0,
        marker="" if line.faint else _MARKERS[line.style.marker],
        markersize=3.5,
        markevery=max(1, len(x) // 10),
        label=None if line.faint else _plain(line.label),
    )


def _plain(text: str) -> str:
    """Text as it is: no mathtext, and no hidden legend entry for a leading underscore."""
    escaped = text.replace("$", r"\$")
    return " " + escaped if escaped.startswith("_") else escaped
