r"""LaTeX tables: booktabs, mean ± standard deviation, the best of a column in bold.

A cell is a `Value`; how it is written is decided here alone. The document needs \usepackage{booktabs}.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from corl_core.figures.bars import Bars
from corl_core.figures.spec import Figure, Series
from corl_core.figures.stamp import Stamp
from corl_core.figures.text import for_tex

STD = "the sample standard deviation over the N runs"
BAND = "half the width of the figure's band at that step"
_WITH_COUNT = re.compile(r" \(N=[\d–]+\)")  # the legend's; the table has a column for it
Best = Literal["highest", "lowest"] | None


@dataclass(frozen=True)
class Value:
    """A mean, and its sample standard deviation where it is one of several."""

    mean: float
    std: float | None = None

    def text(self, digits: int = 3) -> str:
        """As in 0.970 ± 0.008; an empty text for no number."""
        if not np.isfinite(self.mean):
            return ""
        return f"{self.mean:.{digits}f}" + ("" if self.std is None else f" ± {self.std:.{digits}f}")


@dataclass(frozen=True)
class Column:
    """A heading, one value a row, and which end of the column is best (None: neither is)."""

    heading: str
    values: tuple[Value | None, ...]
    best: Best = None
    digits: int = 3


def table_tex(
    rows: Sequence[str], counts: Sequence[str], columns: Sequence[Column], stamp: Stamp | None = None, spread: str = STD
) -> bytes:
    """The table: names, N, and the columns. Rows whose printed mean equals the best one's are all bold.

    With a stamp, a comment says what ± is: `spread`.
    """
    lines = [r"\begin{tabular}{l" + "r" * (len(columns) + 1) + "}", r"\toprule"]
    lines.append(" & ".join(["", "$N$", *(for_tex(column.heading) for column in columns)]) + r" \\")
    lines.append(r"\midrule")
    for place, (name, count) in enumerate(zip(rows, counts, strict=True)):
        cells = [_cell(column, place) for column in columns]
        lines.append(" & ".join([for_tex(name), for_tex(count), *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}", ""]
    told = stamp.lines("%") + f"% ± is {spread}\n" if stamp else ""
    return (told + "\n".join(lines)).encode()


def to_tex(figure: Figure | Bars, stamp: Stamp | None = None) -> bytes:
    """The table under a figure: where each line ends, or how high each bar is. The best end is bold where one is."""
    if isinstance(figure, Bars):
        names, counts = [bar.label for bar in figure.bars], [str(bar.count) for bar in figure.bars]
        values = tuple(Value(bar.value, bar.spread) for bar in figure.bars)
        return table_tex(names, counts, [Column(figure.y_title, values)], stamp)
    lines = [line for line in figure.series if not line.faint and np.isfinite(line.y).any()]
    ends = [_end(line) for line in lines]
    steps = tuple(Value(float(line.x[place])) for line, place in zip(lines, ends, strict=True))
    values = tuple(_value(line, place) for line, place in zip(lines, ends, strict=True))
    counts = ["1" if line.count is None else f"{line.count[place]:g}" for line, place in zip(lines, ends, strict=True)]
    best: Best = "highest" if figure.higher_is_better else None
    digits = 3 if all(abs(value.mean) < 10 for value in values) else 1
    columns = [Column(figure.x_title, steps, digits=0), Column(figure.y_title, values, best, digits)]
    return table_tex([_WITH_COUNT.sub("", line.label) for line in lines], counts, columns, stamp, BAND)


def _end(line: Series) -> int:
    return int(np.flatnonzero(np.isfinite(line.y))[-1])


def _value(line: Series, place: int) -> Value:
    if line.low is None or line.high is None or (line.count is not None and line.count[place] < 2):
        return Value(float(line.y[place]))
    return Value(float(line.y[place]), float(line.high[place] - line.low[place]) / 2)


def _cell(column: Column, place: int) -> str:
    value = column.values[place]
    text = "" if value is None else value.text(column.digits).replace("±", r"$\pm$")
    if value is None or not text or column.best is None:
        return text
    means = [round(other.mean, column.digits) for other in column.values if other is not None and np.isfinite(other.mean)]
    best = max(means) if column.best == "highest" else min(means)
    return rf"\textbf{{{text}}}" if round(value.mean, column.digits) == best and len(means) > 1 else text
