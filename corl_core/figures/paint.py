"""Figures drawn by matplotlib: vector and bitmap files, always on white, whatever the page's theme.

Fonts are embedded as TrueType in a PDF and as a subset in an SVG, where text stays text. matplotlib
is used through its Figure class: pyplot keeps figures for ever, and its rc settings are global,
hence the lock; they start from matplotlib's own defaults, so no style file of the machine shows.
"""

import io
import math
import textwrap
import threading
from typing import Any

import numpy as np

from corl_core.figures.bars import Bar, Bars
from corl_core.figures.gaps import apart, lone, of_line
from corl_core.figures.spec import Figure, Mark, Series
from corl_core.figures.stamp import Stamp
from corl_core.figures.svg_fonts import with_fonts
from corl_core.figures.text import for_matplotlib
from corl_core.figures.venues import LINE, Look, with_height

FAMILIES = {"sans": ["DejaVu Sans"], "serif": ["STIXGeneral", "DejaVu Sans"]}  # both come with matplotlib
RC: dict[str, Any] = {
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "corl",
}
LETTER = 0.56  # mean width of a letter over its size
NUMBER = 5  # letters of a bar's value; where fewer fit, it stands upright
TURN = 35  # degrees, of names that don't fit under their bars
MOST_MARKS = 200  # at the edge of the axes, of one line and kind
MARGIN = 0.03  # of the y range, on either side
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


def paint(figure: Figure | Bars, kind: str, look: Look, stamp: Stamp | None = None) -> bytes:
    """The file's content; `kind` is png, svg or pdf. The page is exactly as large as the look says."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    labels = _legend_labels(figure)
    columns, width = _legend_columns(labels, look)
    labels = [textwrap.fill(label, width) for label in labels]
    rows = -(-len(labels) // columns) * max((label.count("\n") + 1 for label in labels), default=0)
    below = rows + _tick_lines(figure, look) + 2  # an axis title, and the space between them
    look = with_height(look, below)
    buffer = io.BytesIO()
    with _rc_lock, matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(RC | _type(look))
        canvas = Canvas(figsize=(look.width, look.height), layout="constrained", facecolor="white")
        axes = canvas.subplots()
        handles = _draw_bars(axes, figure, look) if isinstance(figure, Bars) else _draw_lines(axes, figure)
        high = look.height - below * LINE * look.small_pt / 72
        axes.set_ylabel(_wrapped(figure.y_title, _letters(0.92 * high, look.text_pt)))
        if look.title:
            axes.set_title(for_matplotlib(figure.title))
        if labels:
            shown = [_as_is(label) for label in labels]
            canvas.legend(handles, shown, loc="outside lower center", ncols=columns, frameon=False, handlelength=2.4)
        metadata = (stamp or Stamp(figure.title, "", ())).of(kind)
        canvas.savefig(buffer, format=kind, dpi=look.dpi, metadata=metadata, facecolor="white", edgecolor="none")
    return with_fonts(buffer.getvalue(), FAMILIES[look.font]) if kind == "svg" else buffer.getvalue()


def draw_line(axes: Any, line: Series) -> Any:
    """Band, raw line, points between two breaks, the line, and its marks; returns the line for the legend."""
    color, stretch = line.style.color, of_line(line, line.y)
    x = apart(line.x, stretch)
    if line.low is not None and line.high is not None:
        low, high = apart(line.low, stretch), apart(line.high, stretch)
        axes.fill_between(x, low, high, color=color, alpha=0.16, linewidth=0)
    if line.raw is not None:
        own = of_line(line, line.raw)
        axes.plot(apart(line.x, own), apart(line.raw, own), color=color, alpha=0.22, linewidth=0.6)
    if len(alone := lone(stretch)):
        marker = _MARKERS[line.style.marker]
        axes.plot(line.x[alone], line.y[alone], color=color, linestyle="", marker=marker, markersize=3.5)
    (drawn,) = axes.plot(
        x,
        apart(line.y, stretch),
        color=color,
        linestyle=_DASHES[line.style.dash],
        linewidth=0.6 if line.faint else 1.2,
        alpha=0.35 if line.faint else 1.0,
        marker="" if line.faint else _MARKERS[line.style.marker],
        markersize=3.5,
        markevery=max(1, len(x) // 10),
    )
    if not line.faint:
        _draw_marks(axes, line)
    return drawn


def _draw_marks(axes: Any, line: Series) -> None:
    """A hollow diamond where a run went on after a resume; NaN (x) and infinities (triangles) at the edge of the axes."""
    look = {"color": line.style.color, "linestyle": ""}
    if line.resumed is not None and len(line.resumed):
        at = np.isin(line.x, line.resumed)
        axes.plot(line.x[at], line.y[at], marker="d", markersize=6, markerfacecolor="white", **look)
    x, values = line.lost()
    up, down = values == np.inf, values == -np.inf
    for marker, height, chosen in (("^", 1, up), ("v", 0, down), ("x", 0, ~(up | down))):
        if chosen.any():
            place = {"transform": axes.get_xaxis_transform(), "clip_on": False, "zorder": 5}
            axes.plot(x[chosen][:MOST_MARKS], [height] * min(MOST_MARKS, int(chosen.sum())), marker=marker, markersize=4,
                      **place, **look)  # fmt: skip


def _as_is(label: str) -> str:
    """A label that may be wrapped, each of its lines as it is."""
    return "\n".join(for_matplotlib(line) for line in label.split("\n"))


def _wrapped(text: str, letters: int) -> str:
    return _as_is(textwrap.fill(text, max(8, letters), break_long_words=False))


def _letters(inches: float, size_pt: float) -> int:
    """How many letters fit."""
    return int(inches * 72 / (LETTER * size_pt))


def _type(look: Look) -> dict[str, Any]:
    small = dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), look.small_pt)
    large = {"font.size": look.text_pt, "axes.labelsize": look.text_pt, "axes.titlesize": look.text_pt + 1}
    return {"font.family": FAMILIES[look.font]} | small | large


def _draw_lines(axes: Any, figure: Figure) -> list[Any]:
    for band in figure.bands:
        axes.axvspan(band.start, band.end, color=band.color, alpha=0.12, linewidth=0)
        spot = {"xytext": (2, -2), "textcoords": "offset points", "xycoords": axes.get_xaxis_transform(), "va": "top"}
        axes.annotate(for_matplotlib(band.label), (band.start, 1), fontsize="small", color=band.color, **spot)
    handles = [(line, draw_line(axes, line)) for line in figure.series]
    axes.set_xlabel(for_matplotlib(figure.x_title))
    if all((line.x == np.floor(line.x)).all() for line in figure.series):
        axes.xaxis.get_major_locator().set_params(integer=True)  # no step 2.5
    if figure.zero:
        axes.axhline(0, color="#333333", linewidth=0.6)
    if figure.log:
        axes.set_yscale("log", nonpositive="mask")
    if figure.y_range is not None:
        axes.set_ylim(*figure.y_range)
    elif figure.bounds is not None:
        low, high = figure.bounds
        margin = MARGIN * (high - low)
        axes.set_ylim(low - margin, high + margin)
        for mark in figure.marks:
            _draw_mark(axes, mark, high if mark.up else low)
    return [handle for line, handle in handles if not line.faint]


def _draw_mark(axes: Any, mark: Mark, y: float) -> None:
    """A triangle that points out of the axes."""
    look = {"color": mark.style.color, "markerfacecolor": mark.style.color if mark.for_good else "white"}
    shape = "^" if mark.up else "v"
    axes.plot([mark.x], [y], linestyle="", marker=shape, markersize=6, markeredgewidth=1, clip_on=False, zorder=5, **look)


def _draw_bars(axes: Any, bars: Bars, look: Look) -> list[Any]:
    from matplotlib.patches import Patch

    places, (room, crowded) = np.arange(len(bars.bars)), _bar_room(bars, look)
    for place, bar in zip(places, bars.bars, strict=True):
        hatch = "////" if bar.hatched else None
        axes.bar(place, bar.value, 0.7, color=bar.style.color, hatch=hatch, edgecolor="white", linewidth=0)
        if bar.spread is not None:
            axes.errorbar(place, bar.value, bar.spread, color="#333333", elinewidth=0.8, capsize=2, capthick=0.8)
        _number(axes, place, bar, look, upright=room < NUMBER)
    names = [_as_is(bar.label) if crowded else _wrapped(bar.label, room) for bar in bars.bars]
    axes.set_xticks(places, names, rotation=TURN if crowded else 0, ha="right" if crowded else "center", rotation_mode="anchor")
    axes.grid(axis="x", visible=False)
    axes.axhline(0, color="#333333", linewidth=0.6)
    axes.margins(y=0.45 if room < NUMBER else 0.22)
    kinds = bars.groups.values()
    return [Patch(facecolor=bar.style.color, hatch="////" if bar.hatched else None, edgecolor="white") for bar in kinds]


def _number(axes: Any, place: int, bar: Bar, look: Look, upright: bool) -> None:
    """The bar's value beyond its error bar, on a ground of its own, so that neither that nor the grid runs through it."""
    side = 1 if bar.value >= 0 else -1
    end = bar.value + (bar.spread or 0) * side
    if np.isfinite(end):
        where = {"xytext": (0, 3.5 * side), "textcoords": "offset points", "ha": "center", "zorder": 4}
        where |= {"va": "bottom" if side > 0 else "top", "rotation": 90 if upright else 0, "fontsize": look.small_pt}
        ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.4}
        axes.annotate(f"{bar.value:.2f}".replace("-", "−"), (place, end), bbox=ground, **where)


def _bar_room(bars: Bars, look: Look) -> tuple[int, bool]:
    """Letters that fit under a bar, and whether some word is too long for that, so that the names are turned."""
    room = _letters(0.72 * look.width / max(1, len(bars.bars)), look.small_pt)
    return room, max((len(word) for bar in bars.bars for word in bar.label.split()), default=0) > room


def _tick_lines(figure: Figure | Bars, look: Look) -> int:
    """How many lines of type the names under the axes are high."""
    if not isinstance(figure, Bars) or not figure.bars:
        return 1
    room, crowded = _bar_room(figure, look)
    if crowded:
        longest = max(len(bar.label) for bar in figure.bars)
        return 1 + round(longest * LETTER * math.sin(math.radians(TURN)) / LINE)
    return max(_wrapped(bar.label, room).count("\n") + 1 for bar in figure.bars)


def _legend_labels(figure: Figure | Bars) -> list[str]:
    if isinstance(figure, Bars):
        return list(figure.groups)
    return [line.label for line in figure.series if not line.faint]


def _legend_columns(labels: list[str], look: Look) -> tuple[int, int]:
    """Columns, and letters in a line of a label. A handle and the space beside it are as wide as eight letters."""
    if not labels:
        return 1, 1
    letters = _letters(look.width, look.small_pt)
    columns = max(1, min(len(labels), 4, letters // (max(map(len, labels)) + 8)))
    return columns, max(8, letters // columns - 8)
