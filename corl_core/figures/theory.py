"""The plane of two agents' accuracies as a Plotly description: the field, the basins, the separatrix, and paths over them.

Every function returns traces (plain dicts); `plane` puts them on the axes. Basins differ by colour and by the words in them.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from corl_core.theory import meanfield

Json = dict[str, Any]
Array = np.ndarray
RIGHT, WRONG, SPLIT, INK, GREY = "#009E73", "#D55E00", "#0072B2", "#000000", "#8A949C"
ARROWS = 12  # a side
REACH = 0.055  # length of the longest arrow, in accuracy
SEPARATRIX = {"x": [0, 1], "y": [1, 0]}
BASINS = {  # supervision → (words, colour, corners, where the words stand)
    "ring": [
        ("both end right", RIGHT, [(0, 1), (1, 1), (1, 0)], (0.8, 0.97)),
        ("both end wrong", WRONG, [(0, 0), (0, 1), (1, 0)], (0.2, 0.03)),
    ],
    "self": [
        ("both end right", RIGHT, [(0.5, 0.5), (0.5, 1), (1, 1), (1, 0.5)], (0.75, 0.97)),
        ("only B", SPLIT, [(0, 0.5), (0, 1), (0.5, 1), (0.5, 0.5)], (0.25, 0.97)),
        ("only A", SPLIT, [(0.5, 0), (0.5, 0.5), (1, 0.5), (1, 0)], (0.75, 0.03)),
        ("both end wrong", WRONG, [(0, 0), (0, 0.5), (0.5, 0.5), (0.5, 0)], (0.25, 0.03)),
    ],
}


def plane(traces: Sequence[Json], x_title: str, y_title: str) -> Json:
    """The traces on the unit square."""
    ticks = {"range": [-0.02, 1.02], "tickvals": [0, 0.25, 0.5, 0.75, 1], "fixedrange": False}
    layout = {
        "xaxis": ticks | {"title": {"text": escape(x_title)}},
        "yaxis": ticks | {"title": {"text": escape(y_title)}},
        "showlegend": any(trace.get("showlegend") is not False for trace in traces),
        "hovermode": "closest",
    }
    return {"data": list(traces), "layout": layout}


def basins(supervision: str, names: tuple[str, str] = ("A", "B")) -> list[Json]:
    """Shaded areas by where a start ends, with the lines between them; none for ground truth, where every start ends right."""
    made = []
    for words, color, corners, spot in BASINS.get(supervision, []):
        x, y = zip(*corners, strict=True)
        area = {"type": "scatter", "mode": "lines", "fill": "toself", "x": [*x, x[0]], "y": [*y, y[0]], "line": {"width": 0}}
        made.append(area | {"fillcolor": _fade(color, 0.14), **_SILENT})
        told = escape(words.replace("only A", f"only {names[0]}").replace("only B", f"only {names[1]}"))
        label = {"type": "scatter", "mode": "text", "x": [spot[0]], "y": [spot[1]], "text": [told], "cliponaxis": False}
        made.append(label | _SILENT)
    edges = {"ring": [SEPARATRIX], "self": [{"x": [0.5, 0.5], "y": [0, 1]}, {"x": [0, 1], "y": [0.5, 0.5]}]}
    for edge in edges.get(supervision, []):
        line = {"type": "scatter", "mode": "lines", "line": {"color": INK, "width": 1.5, "dash": "dash"}}
        made.append(line | edge | _SILENT)
    return made


def outcome_map(side: Array, ends: Array) -> list[Json]:
    """Where starts of a longer ring end: `ends[j, i]` for A at side[i] and B at side[j]; 1 right, 0 wrong, NaN undecided."""
    scale = [[0, _fade(WRONG, 0.2)], [0.5, _fade(GREY, 0.1)], [1, _fade(RIGHT, 0.2)]]
    words = np.where(np.isnan(ends), "undecided", np.where(ends > 0.5, "all end right", "all end wrong"))
    heat = {"type": "heatmap", "x": side.tolist(), "y": side.tolist(), "z": np.nan_to_num(ends, nan=0.5).tolist()}
    heat |= {"zmin": 0, "zmax": 1, "colorscale": scale, "showscale": False, "text": words.tolist(), "showlegend": False}
    made = [heat | {"hovertemplate": "start A %{x:.2f}, B %{y:.2f}: %{text}<extra></extra>"}]
    for value, told in ((1.0, "all end right"), (0.0, "all end wrong")):
        rows, columns = np.nonzero(ends == value)
        if len(rows):
            middle = np.hypot(side[columns] - side[columns].mean(), side[rows] - side[rows].mean()).argmin()
            spot = {"x": [float(side[columns[middle]])], "y": [float(side[rows[middle]])], "text": [told]}
            made.append({"type": "scatter", "mode": "text", **spot, **_SILENT})
    return made


def field(supervision: str, num_generations: int, others: Sequence[float] = ()) -> Json:
    """Arrows of the flow of A and B. `others` are accuracies of the agents that follow B on the ring, held still."""
    side = np.linspace(0.09, 0.91, ARROWS)  # the words stand outside
    x, y = (part.ravel() for part in np.meshgrid(side, side))
    held = np.broadcast_to(np.asarray(others, dtype=float), (x.size, len(others)))
    speed = meanfield.velocity(np.column_stack([x, y, held]), supervision, num_generations)[:, :2]
    size = np.hypot(*speed.T)
    drawn = size > 1e-6
    length = REACH * np.sqrt(size / max(size.max(), 1e-12))  # the root shows slow places too
    dx, dy = (speed / np.maximum(size, 1e-12)[:, None] * length[:, None]).T
    lines: dict[str, list[float | None]] = {"x": [], "y": []}
    for name, start, step, across in (("x", x, dx, -dy), ("y", y, dy, dx)):
        tip = start + step / 2
        barb = tip - 0.4 * step
        parts = np.stack([start - step / 2, tip, barb + 0.22 * across, tip, barb - 0.22 * across])[:, drawn]
        lines[name] = [value for arrow in parts.T.round(4).tolist() for value in (*arrow, None)]
    return {"type": "scatter", "mode": "lines", "line": {"color": GREY, "width": 1}, **lines, **_SILENT}


def path(points: Array, steps: Array, name: str, dash: str = "solid", color: str = INK, legend: bool = True) -> list[Json]:
    """One path (T, 2) with a ring at its start and a dot at its end."""
    x, y = points.T.round(5).tolist()
    hover = "A %{x:.3f}, B %{y:.3f}<br>step %{text}<extra>" + escape(name) + "</extra>"
    common = {"type": "scatter", "legendgroup": name, "hovertemplate": hover}
    common["meta"] = {"hover": "{name}: A {x}, B {y} at step {text}"}  # chart_canvas.js
    line = {"mode": "lines", "x": x, "y": y, "name": escape(name), "line": {"color": color, "width": 2.5, "dash": dash}}
    ends = {"mode": "markers", "x": [x[0], x[-1]], "y": [y[0], y[-1]], "showlegend": False, "cliponaxis": False}
    marker = {"symbol": ["circle-open", "circle"], "size": [13, 10], "color": color, "line": {"width": 2.5}}
    told = [f"{step:g}" for step in steps]
    return [
        common | line | {"text": told, "showlegend": legend},
        common | ends | {"marker": marker, "text": [told[0], told[-1]]},
    ]


def walk(points: Array, name: str) -> Json:
    """A noisy path (T, 2), thin."""
    x, y = points.T.round(4).tolist()
    line = {"color": SPLIT, "width": 1}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "name": escape(name), "line": line, "hoverinfo": "skip"}


def probabilities(steps: Array, lines: Mapping[str, tuple[Array, str, str]]) -> Json:
    """Probabilities over steps: label → (values (T,), colour, dash)."""
    data = [
        {
            "type": "scatter", "mode": "lines", "name": escape(label), "x": steps.tolist(), "y": values.round(5).tolist(),
            "line": {"color": color, "dash": dash, "width": 2.5}, "uid": label,
            "hovertemplate": "%{fullData.name}<br>step %{x:g}: %{y:.3f}<extra></extra>",
            "meta": {"hover": "{name}: {y} at step {x}"},
        }
        for label, (values, color, dash) in lines.items()
    ]  # fmt: skip
    y_axis = {"title": {"text": "Probability"}, "range": [-0.03, 1.03]}
    layout = {"xaxis": {"title": {"text": "Step"}}, "yaxis": y_axis, "showlegend": True, "hovermode": "closest"}
    return {"data": data, "layout": layout}


_SILENT = {"hoverinfo": "skip", "showlegend": False}


def _fade(color: str, alpha: float) -> str:
    red, green, blue = (int(color[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha})"
