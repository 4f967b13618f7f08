"""The ring of a cohort as a Plotly description: who receives whose vote, and how well that goes.

An arrow from a to b says that a's vote rewards b. Agents stand on a circle, the first on
top, clockwise in ring order. A ring of one is an agent whose own vote rewards it.
With readings (ring_values.py) an arrow is as wide as the two agents agree, its colour says how
often the votes it carries are right, and both numbers stand beside it.
"""

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from corl_core.figures.palette import agent_styles
from corl_core.figures.ring_values import Reading

Json = dict[str, Any]
WRONG, MIXED, RIGHT = (0xD5, 0x5E, 0x00), (0x99, 0x99, 0x99), (0x2A, 0x8F, 0xD0)  # read on white and on black
WIDTHS_PX = (1.2, 8.0)  # of an arrow, at agreement 0 and 1
LABELLED_UP_TO = 6  # agents; with more, the numbers are in the hover text alone
NODE_PX = 26
OWN, TEACHER = "its own", "its teacher's (its moving average's)"  # whose vote an agent gets that gets no other's
NAME_WIDTH = 14  # letters in a line beside an agent
GAP_PX = 20  # between an arrow's end and the middle of the agent it points to


def ring_plot(
    agents: Sequence[str], peers: Mapping[str, str], readings: Mapping[str, Reading] | None = None, own: str = OWN
) -> Json:
    """{"data", "layout"}; `peers` maps an agent to the one whose vote it receives, `readings` to what its arrow shows.

    `own` says whose vote it is that an agent gets from itself.
    """
    known = readings or {}
    spots = _spots(agents)
    styles = agent_styles(agents)
    below = [len(agents) == 2 or peers.get(agent) == agent for agent in agents]
    labels = {"textposition": ["bottom center" if low else _side(spots[agent]) for agent, low in zip(agents, below, strict=True)]}
    nodes = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [spots[agent][0] for agent in agents],
        "y": [spots[agent][1] for agent in agents],
        "text": [_in_lines(agent) for agent in agents],
        "marker": {"size": NODE_PX, "color": [styles[agent].color for agent in agents]},
        "hovertext": [escape(_sentence(agent, peers, known.get(agent), own)) for agent in agents],
        "hoverinfo": "text",
        "cliponaxis": False,
        "showlegend": False,
    } | labels
    arrows = [_arrow(spots[giver], spots[taker], known.get(taker)) for taker, giver in _edges(peers)]
    if len(agents) <= LABELLED_UP_TO:
        arrows += [_label(spots[giver], spots[taker], known[taker]) for taker, giver in peers.items() if taker in known]
    loops = [_loop(spots[agent], known.get(agent)) for agent, giver in peers.items() if agent == giver]
    axis = {"visible": False, "fixedrange": True}
    heights = [y for _, y in spots.values()]
    layout = {
        "xaxis": axis | {"range": [-2.1, 2.1]},
        "yaxis": axis | {"range": [min(heights) - 0.5, max(heights) + 0.6], "scaleanchor": "x"},
        "annotations": arrows,
        "shapes": loops,
        "showlegend": False,
        "hovermode": "closest",
    }
    return {"data": [nodes], "layout": layout}


def ring_sentence(
    agents: Sequence[str], peers: Mapping[str, str], readings: Mapping[str, Reading] | None = None, own: str = OWN
) -> str:
    """The ring in words, also the figure's text for readers who can't see it."""
    if not peers:
        return "No votes are exchanged."
    return " ".join(_sentence(agent, peers, (readings or {}).get(agent), own) for agent in agents)


def _in_lines(name: str) -> str:
    """A name over several lines, so that a long one stays within a narrow chart."""
    return "<br>".join(escape(line) for line in textwrap.wrap(name, NAME_WIDTH)) or escape(name)


def own_vote(labels_from: Iterable[str | None]) -> str:
    """Whose vote it is that an agent gets from itself, by where its signals' labels come from (methods.py)."""
    return TEACHER if "teacher" in labels_from else OWN


def _sentence(agent: str, peers: Mapping[str, str], reading: Reading | None = None, own: str = OWN) -> str:
    giver = peers.get(agent)
    if giver is None:
        return f"{agent} receives no vote."
    whose = own if giver == agent else f"{giver}'s"
    said = f"; {', '.join(numbers)}" if reading and (numbers := reading.numbers) else ""
    return f"{agent} is rewarded by {whose} vote{said}."


def _edges(peers: Mapping[str, str]) -> list[tuple[str, str]]:
    return [(taker, giver) for taker, giver in peers.items() if taker != giver]


def _spots(agents: Sequence[str]) -> dict[str, tuple[float, float]]:
    if len(agents) == 2:  # side by side, so that the two arrows lie flat
        return {agents[0]: (-1.0, 0.0), agents[1]: (1.0, 0.0)}
    angles = [math.pi / 2 - 2 * math.pi * i / len(agents) for i in range(len(agents))]
    return {a: (math.cos(t), math.sin(t)) for a, t in zip(agents, angles, strict=True)}


def _side(spot: tuple[float, float]) -> str:
    x, y = spot
    if abs(x) > 0.3:
        return "middle right" if x > 0 else "middle left"
    return "top center" if y >= 0 else "bottom center"


def _aside(start: tuple[float, float], end: tuple[float, float], by: float) -> tuple[float, float]:
    """How far to move to the right of the way from start to end."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    return by * dy / length, -by * dx / length


def _arrow(start: tuple[float, float], end: tuple[float, float], reading: Reading | None) -> Json:
    """An arrow moved a little to its right, so that a pair's two arrows do not hide each other."""
    side_x, side_y = _aside(start, end, 0.09)
    refs = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y", "text": "", "showarrow": True}
    width = _width(reading)
    return refs | {
        "x": end[0] + side_x,
        "y": end[1] + side_y,
        "ax": start[0] + side_x,
        "ay": start[1] + side_y,
        "arrowhead": 2,
        "arrowwidth": width,
        "arrowsize": max(0.4, min(1.0, 2.4 / width)),  # a head grows with its arrow, and would hide a wide one
        "standoff": GAP_PX,
        "startstandoff": GAP_PX,
    } | _colored("arrowcolor", reading)


def _label(start: tuple[float, float], end: tuple[float, float], reading: Reading) -> Json:
    """The numbers of an arrow, outside of it in the middle; of a loop, above it."""
    if start == end:
        x, y, spot = start[0], start[1] + 0.44, {"xanchor": "center", "yanchor": "bottom"}
    else:
        side_x, side_y = _aside(start, end, -0.2 if len(reading.numbers) else 0.0)
        x, y = (start[0] + end[0]) / 2 + side_x, (start[1] + end[1]) / 2 + side_y
        across = "left" if side_x > 0.05 else "right" if side_x < -0.05 else "center"
        spot = {"xanchor": across, "yanchor": "middle" if across != "center" else "bottom" if side_y > 0 else "top"}
    where = {"xref": "x", "yref": "y", "x": x, "y": y, "showarrow": False, "font": {"size": 11}, "align": "left"}
    return where | spot | {"text": "<br>".join(reading.numbers)}


def _loop(spot: tuple[float, float], reading: Reading | None) -> Json:
    """A small circle above an agent whose own vote rewards it."""
    x, y = spot
    corners = {"x0": x - 0.22, "x1": x + 0.22, "y0": y, "y1": y + 0.44}
    line = {"width": 1.6 if reading is None else 4.0} | _colored("color", reading)
    return {"type": "circle", "layer": "below", "line": line} | corners


def _width(reading: Reading | None) -> float:
    if reading is None or reading.agreement is None:
        return 1.6
    low, high = WIDTHS_PX
    return round(low + (high - low) * reading.agreement, 2)


def _colored(name: str, reading: Reading | None) -> Json:
    """The colour of a share that is right, from WRONG over MIXED to RIGHT; none, and so the page's ink, where it is not known."""
    if reading is None or reading.accuracy is None:
        return {}
    near, far = (WRONG, MIXED) if reading.accuracy < 0.5 else (MIXED, RIGHT)
    part = 2 * reading.accuracy - (reading.accuracy >= 0.5)
    return {name: "#" + "".join(f"{round(a + part * (b - a)):02x}" for a, b in zip(near, far, strict=True))}
