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
    resumed: Array | None = None  # x of the first point of each attempt after a resume
    stretch: Array | None = None  # points of different stretches are not joined; None: told by x, which are steps (gaps.py)
    lost_x: Array | None = None  # x of the values behind y that are NaN or infinite, where y averages the others
    lost_y: Array | None = None  # and those values

    def lost(self) -> tuple[Array, Array]:
        """x and value of every point that is NaN or infinite."""
        if self.lost_x is not None and self.lost_y is not None:
            return self.lost_x, self.lost_y
        own = ~np.isfinite(self.y)
        return self.x[own], self.y[own]


@dataclass(frozen=True)
class Mark:
    """Where a line leaves the y range: a triangle on the edge, filled when the line never comes back."""

    x: float
    up: bool  # at the upper edge
    style: Style
    for_good: bool


@dataclass(frozen=True)
class Band:
    """A stretch of the x axis that something is said about, shaded over the whole height."""

    start: float
    end: float
    label: str
    color: str = "#D55E00"  # "#rrggbb", drawn so pale that it reads on white and on black


@dataclass(frozen=True)
class Figure:
    """A set of lines over one pair of axes."""

    name: str  # the file's stem when it is exported
    title: str
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    bounds: tuple[float, float] | None = None  # where the y axis is pinned
    marks: tuple[Mark, ...] = ()  # where lines leave the bounds
    bands: tuple[Band, ...] = ()
    higher_is_better: bool = False  # a table under the figure sets the highest end in bold
    zero: bool = False  # a line at zero: what is drawn are differences
    log: bool = False  # the y axis is logarithmic
    y_range: tuple[float, float] | None = None  # what the y axis shows, in place of `bounds`; the rest is said in the notes
    notes: tuple[str, ...] = ()  # what a reader must know to read the lines rightly, a sentence each

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
        """Values that are NaN or infinite and can't be drawn; they are marked at the edge."""
        return sum(len(line.lost()[0]) for line in self.series if not line.faint)
