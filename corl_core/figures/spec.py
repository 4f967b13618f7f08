"""What a figure is, whoever draws it.

A `Figure` holds all the points; thinning for the screen happens in `plotly.py`, so a file
that is exported always has the full data. Labels are plain text as people wrote them:
each drawer escapes for its own language.
"""

from dataclasses import dataclass, replace

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Style:
    """How a line is drawn: never by colour alone."""

    color: str  # "#rrggbb"
    dash: str  # "solid", "dash", "dot" or "dashdot"
    marker: str  # "circle", "square", "diamond", ...

    def with_dash(self, dash: str) -> "Style":
        """The same colour and marker with another dash."""
        return replace(self, dash=dash)


@dataclass(frozen=True)
class Series:
    """One line. Every array has shape [num_points]."""

    label: str
    x: Array
    y: Array
    style: Style
    low: Array | None = None  # the band's lower edge
    high: Array | None = None  # the band's upper edge
    raw: Array | None = None  # the values before smoothing, drawn faint behind the line
    count: Array | None = None  # how many runs each point averages
    faint: bool = False  # a member of a group: thin, and left out of the legend
    group: str = ""  # lines of one group are hidden together; its own label when empty


@dataclass(frozen=True)
class Figure:
    """A set of lines over one pair of axes."""

    name: str  # the file's stem when it is exported
    title: str
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    bounds: tuple[float, float] | None = None  # where the y axis is pinned

    @property
    def empty(self) -> bool:
        """True when there is no finite point to draw."""
        return not any(np.isfinite(line.y).any() for line in self.series)

    @property
    def num_points(self) -> int:
        """Finite points over all lines."""
        return sum(int(np.isfinite(line.y).sum()) for line in self.series)

    @property
    def num_lost(self) -> int:
        """Points that are NaN or infinite and can't be drawn."""
        return sum(int((~np.isfinite(line.y)).sum()) for line in self.series)
