"""How large a figure's file is, and its type: the common venues' columns, or one's own size.

Widths are those of the venues' LaTeX styles, in inches (1 in = 72.27 pt = 2.54 cm):

  NeurIPS  neurips_2025.sty: textwidth 5.5 in, one column, captions at 10 pt
  ICLR     iclr2026_conference.sty: textwidth 5.5 in, one column, captions at 10 pt
  ICML     icml2025.sty: textwidth 6.75 in, columnsep 0.25 in, so columns of 3.25 in; captions at 9 pt
  ACL      acl.sty (ACL Rolling Review): A4, margins 2.5 cm, columnsep 0.6 cm, so 16 cm and columns of 7.7 cm; captions at 10 pt
  CVPR     cvpr.sty: textwidth 6.875 in, columnsep 0.3125 in, so columns of 3.28125 in; captions at 9 pt (\\small)
  IEEE     IEEEtran.cls, conference: textwidth 43 pc = 516 pt, columns of 21 pc = 252 pt; captions at 8 pt (\\footnotesize)

Axis titles are one point smaller than the venue's captions, ticks and legend two, as tueplots does it
for axis titles (github.com/pnkraemer/tueplots), and never under 6 pt. A third of the text width has 7 and 6 pt.
"""

from dataclasses import dataclass, replace

from corl_core.figures.errors import FigureError

PT = 1 / 72.27  # inches
CM = 1 / 2.54
SMALLEST_PT = 6.0
SMALL_PT = (7.0, 6.0)  # axis titles, and ticks and legend, in a figure of a third of the text width
ASPECT = 0.5  # height of the axes over the figure's width
AXES_HEIGHTS = (1.0, 2.0)  # inches; a wide figure does not grow as high as it is wide
WIDTHS = (1.0, 20.0)
DPIS = (50, 1200)
LINE = 1.45  # height of a line of type over its size
MOST_PIXELS = 12_000  # along one side


@dataclass(frozen=True)
class Venue:
    """A LaTeX style's measures: widths in inches, type in points."""

    label: str
    text_width: float
    column_width: float
    caption_pt: float


VENUES = {
    "neurips": Venue("NeurIPS", 5.5, 5.5, 10),
    "iclr": Venue("ICLR", 5.5, 5.5, 10),
    "icml": Venue("ICML", 6.75, 3.25, 9),
    "acl": Venue("ACL", 16 * CM, 7.7 * CM, 10),
    "cvpr": Venue("CVPR", 6.875, 3.28125, 9),
    "ieee": Venue("IEEE", 516 * PT, 252 * PT, 8),
}
SPANS = {"column": "One column", "text": "Whole text width", "half": "Half the text width", "third": "A third of the text width"}
FRACTIONS = {"half": 0.49, "third": 0.32}  # of the text width; the rest is the space between
FONTS = ("sans", "serif")


@dataclass(frozen=True)
class Look:
    """A file's size in inches, its type in points, and its resolution. `height` None: by the width and the legend."""

    width: float = 5.0
    height: float | None = None
    dpi: int = 300
    text_pt: float = 8
    small_pt: float = 7
    font: str = "sans"
    title: bool = True


CARD = Look()  # what a chart's own export button gives


def look(
    venue: str = "neurips",
    span: str = "column",
    width: float | None = None,
    height: float | None = None,
    dpi: int = 300,
    font: str = "sans",
    title: bool = False,
) -> Look:
    """The look for a venue. `width` and `height` (inches) replace the venue's. Raises FigureError."""
    for field, value, known in (("venue", venue, VENUES), ("span", span, SPANS), ("font", font, FONTS)):
        if value not in known:
            raise FigureError(f"{field}={value!r} is not known; choose one of {', '.join(known)}")
    for field, value in (("width", width), ("height", height)):
        if value is not None and not WIDTHS[0] <= value <= WIDTHS[1]:
            raise FigureError(f"{field}={value:g} is outside {WIDTHS[0]:g} to {WIDTHS[1]:g} inches; give another {field}")
    if not DPIS[0] <= dpi <= DPIS[1]:
        raise FigureError(f"dpi={dpi} is outside {DPIS[0]} to {DPIS[1]}; give another dpi")
    found = VENUES[venue]
    spans = {"column": found.column_width, "text": found.text_width}
    inches = width or spans.get(span) or FRACTIONS[span] * found.text_width
    if (pixels := max(inches, height or 0) * dpi) > MOST_PIXELS:
        raise FigureError(f"width × dpi = {pixels:,.0f} pixels is over {MOST_PIXELS:,}; give a smaller width or dpi")
    text, small = SMALL_PT if span == "third" else (max(SMALLEST_PT, found.caption_pt - less) for less in (1, 2))
    return Look(inches, height, dpi, text, small, font, title)


def with_height(given: Look, lines: int) -> Look:
    """The look with a height: axes of ASPECT times the width within AXES_HEIGHTS, and room for so many lines below them."""
    if given.height is not None:
        return given
    low, high = AXES_HEIGHTS
    return replace(given, height=min(high, max(low, ASPECT * given.width)) + lines * LINE * given.small_pt / 72)
