"""The ring of a cohort as a Plotly description: who receives whose vote.

An arrow from a to b says that a's vote rewards b. Agents stand on a circle, the first on
top, clockwise in ring order. A ring of one is an agent whose own vote rewards it.
"""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from corl_core.figures.palette import agent_styles

Json = dict[str, Any]
NODE_PX = 26
GAP_PX = 20  # between an arrow's end and the middle of the agent it points to


def ring_plot(agents: Sequence[str], peers: Mapping[str, str]) -> Json:
    """{"data", "layout"}; `peers` maps an agent to the one whose vote it receives."""
    spots = _spots(agents)
    styles = agent_styles(agents)
    labels = {"textposition": [_side(spots[agent]) for agent in agents]}
    nodes = {
        "type": "scatter",
        "mode": "markers+text",
        "x": [spots[agent][0] for agent in agents],
        "y": [spots[agent][1] for agent in agents],
        "text": [escape(agent) for agent in agents],
        "marker": {"size": NODE_PX, "color": [styles[agent].color for agent in agents]},
        "hovertext": [escape(_sentence(agent, peers)) for agent in agents],
        "hoverinfo": "text",
        "cliponaxis": False,
        "showlegend": False,
    } | labels
    arrows = [_arrow(spots[giver], spots[taker]) for taker, giver in _edges(peers)]
    loops = [_loop(spots[agent]) for agent, giver in peers.items() if agent == giver]
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


def ring_sentence(agents: Sequence[str], peers: Mapping[str, str]) -> str:
    """The ring in words, also the figure's text for readers who can't see it."""
    if not peers:
        return "No votes are exchanged: each agent is rewarded by the ground truth."
    return " ".join(_sentence(agent, peers) for agent in agents)


def _sentence(agent: str, peers: Mapping[str, str]) -> str:
    giver = peers.get(agent)
    if giver is None:
        return f"{agent} is rewarded by the ground truth."
    if giver == agent:
        return f"{agent} is rewarded by its own vote."
    return f"{agent} is rewarded by {giver}'s vote."


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


def _arrow(start: tuple[float, float], end: tuple[float, float]) -> Json:
    """An arrow moved a little to its right, so that a pair's two arrows do not hide each other."""
    dx, dy = end[0] - start[0], end[1] - start[1]
    length = math.hypot(dx, dy)
    side_x, side_y = 0.09 * dy / length, -0.09 * dx / length
    refs = {"xref": "x", "yref": "y", "axref": "x", "ayref": "y", "text": "", "showarrow": True}
    return refs | {
        "x": end[0] + side_x,
        "y": end[1] + side_y,
        "ax": start[0] + side_x,
        "ay": start[1] + side_y,
        "arrowhead": 2,
        "arrowwidth": 1.6,
        "standoff": GAP_PX,
        "startstandoff": GAP_PX,
    }


def _loop(spot: tuple[float, float]) -> Json:
    """A small circle above an agent whose own vote rewards it."""
    x, y = spot
    corners = {"x0": x - 0.22, "x1": x + 0.22, "y0": y, "y1": y + 0.44}
    return {"type": "circle", "layer": "below", "line": {"width": 1.6}} | corners
