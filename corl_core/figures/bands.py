"""Alarms as bands on the curves: from the step that raised one to the step where it ended, or to the last one there is."""

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

from corl_core.alarms.record import Alarm
from corl_core.figures.spec import Band

Json = dict[str, Any]
PALE = 0.12  # opacity of a band
ROW = 0.09  # of the axes' height, between the labels of two bands
ROWS = 4  # labels one above the other, then from the top again


def alarm_bands(alarms: Iterable[Alarm], last_step: int) -> tuple[Band, ...]:
    """One band a kind, over all agents that raised it: agents of a cohort go wrong together, and bands on bands say nothing."""
    kinds: dict[str, list[Alarm]] = {}
    for alarm in alarms:
        kinds.setdefault(alarm.title, []).append(alarm)
    bands = []
    for title, own in kinds.items():
        start = min(alarm.step for alarm in own)
        end = max(max(last_step, alarm.step) if alarm.ended is None else alarm.ended for alarm in own)
        names = ", ".join(alarm.agent for alarm in own if alarm.agent)
        bands.append(Band(start, end, f"{title}: {names}" if names else title))
    return tuple(sorted(bands, key=lambda band: band.start))


def drawn_bands(bands: Sequence[Band]) -> Json:
    """The bands as Plotly's shapes, below the lines, each with an edge where it begins and its label at the top."""
    upright = {"xref": "x", "yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    shapes: list[Json] = []
    labels: list[Json] = []
    last = max((band.end for band in bands), default=0.0)
    for place, band in enumerate(bands):
        ground = {"type": "rect", "x0": band.start, "x1": band.end, "fillcolor": band.color, "opacity": PALE}
        ground["line"] = {"width": 0}
        edge = {"type": "line", "x0": band.start, "x1": band.start, "line": {"width": 1.5, "dash": "dash", "color": band.color}}
        shapes += [upright | ground, upright | edge]
        side = "left" if band.start <= last / 2 else "right"  # of the edge, where there is room
        spot = {"xref": "x", "x": band.start, "yref": "paper", "y": 1 - ROW * (place % ROWS), "xanchor": side, "yanchor": "top"}
        labels.append(spot | {"text": escape(band.label), "showarrow": False, "font": {"size": 11}})
    return {"shapes": shapes, "annotations": labels}
