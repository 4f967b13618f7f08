"""What the y axis shows when it does not show everything, and the sentence that says so."""

from dataclasses import replace

import numpy as np

from corl_core.figures.spec import Array, Figure

TRIM = 1.0  # percent of the points that may lie outside at either end
ROOM = 0.08  # of the range, kept free above and below


def with_range(figure: Figure, log: bool, robust: bool) -> Figure:
    """The figure on a log axis, or over a robust range, or both; it says what is left out.

    Robust: the 1st to the 99th percentile of all drawn points, with some room. A log axis has no place for values of
    zero and below.
    """
    values = _finite(figure)
    notes = list(figure.notes)
    if log:
        below = int((values <= 0).sum())
        notes += [f"{below:,} of {values.size:,} points are zero or negative and have no place on a log axis."] if below else []
        values = values[values > 0]
    shown = None
    if robust and values.size:
        shown = _robust(values, log)
        outside = values[(values < shown[0]) | (values > shown[1])]
        if outside.size:
            ends = f"{outside.min():.3g} to {outside.max():.3g}"
            notes.append(f"{outside.size:,} of {values.size:,} points lie outside the range shown, from {ends}.")
    bounds = None if log or robust else figure.bounds
    return replace(figure, log=log, y_range=shown, bounds=bounds, notes=tuple(notes))


def _finite(figure: Figure) -> Array:
    parts = [line.y for line in figure.series] or [np.array([])]
    values = np.concatenate(parts).astype(float)
    return values[np.isfinite(values)]


def _robust(values: Array, log: bool) -> tuple[float, float]:
    scale = np.log10(values) if log else values
    low, high = np.percentile(scale, (TRIM, 100 - TRIM))
    room = ROOM * (high - low) or 0.05 * abs(high) or 0.5
    low, high = low - room, high + room
    return (float(10**low), float(10**high)) if log else (float(low), float(high))
