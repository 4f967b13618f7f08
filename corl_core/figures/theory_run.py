"""A run's questions in the plane of two agents' accuracies, and how its predictions were kept, as Plotly descriptions."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np

from corl_core.figures.theory import INK, RIGHT, SPLIT, WRONG

Json = dict[str, Any]
Array = np.ndarray
OUTCOMES = {"both right": (RIGHT, "circle"), "one right": (SPLIT, "diamond"), "both wrong": (WRONG, "x")}
JITTER = 0.018  # accuracies are counts of K, so paths lie on each other without it
CROWD = 100  # paths beyond which they are drawn fainter
MAX_VISITS = 10  # drawn of one question, its first and last among them


def outcome(ends: Array) -> Array:
    """How a question ended, from accuracies (Q, 2): a place in OUTCOMES. Right is above one half."""
    return 2 - (ends > 0.5).sum(axis=1)


def question_paths(first: Array, last: Array, points: Array, steps: Array, texts: Sequence[str]) -> list[Json]:
    """One trace an outcome for the lines, one for the ends. Question i's visits are points[first[i] : last[i] + 1] (V, 2)."""
    shift = np.random.default_rng(0).uniform(-JITTER, JITTER, (len(first), 2))
    kind = outcome(points[last])
    made: list[Json] = []
    for place, (words, (color, symbol)) in enumerate(OUTCOMES.items()):
        own = np.flatnonzero(kind == place)
        if not len(own):
            continue
        visits = [np.unique(np.linspace(first[i], last[i], MAX_VISITS).round().astype(int)) for i in own]
        where = [points[at] + shift[i] for i, at in zip(own, visits, strict=True)]
        x = [value for part in where for value in (*part[:, 0].round(3).tolist(), None)]
        y = [value for part in where for value in (*part[:, 1].round(3).tolist(), None)]
        line = {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": {"color": color, "width": 1}}
        line["opacity"] = 0.35 if len(first) <= CROWD else 0.12
        made.append(line | {"hoverinfo": "skip", "showlegend": False, "legendgroup": words})
        told = [
            f"{escape(texts[i][:80])}<br>{_pair(points[first[i]])} at step {steps[first[i]]} → {_pair(points[last[i]])} "
            f"at step {steps[last[i]]}"
            for i in own
        ]
        for ends, mark, size, opacity in ((first, "circle-open", 5, 0.5), (last, symbol, 8, 0.85)):
            spots = points[ends[own]] + shift[own]
            dots = {"type": "scatter", "mode": "markers", "x": spots[:, 0].round(3).tolist(), "y": spots[:, 1].round(3).tolist()}
            dots |= {"text": told, "hovertemplate": "%{text}<extra></extra>", "legendgroup": words, "cliponaxis": False}
            dots |= {"name": f"{words} at the end ({len(own):,})", "showlegend": ends is last, "opacity": opacity}
            made.append(dots | {"marker": {"color": color, "symbol": mark, "size": size}})
    return made


def calibration(rows: Sequence[Mapping[str, float]]) -> Json:
    """Measured against predicted, with twice the standard error; a dot's size tells how many questions it stands for."""
    size = [7 + 15 * (row["num"] / max(other["num"] for other in rows)) ** 0.5 for row in rows]
    ideal = {"type": "scatter", "mode": "lines", "x": [0, 1], "y": [0, 1], "name": "as predicted", "hoverinfo": "skip"}
    ideal |= {"line": {"color": INK, "width": 1.5, "dash": "dash"}}
    errors = [2 * row["error"] if np.isfinite(row["error"]) else 0 for row in rows]
    dots = {
        "type": "scatter", "mode": "markers", "name": "measured, ± 2 standard errors",
        "x": [round(row["chance"], 4) for row in rows], "y": [round(row["right"], 4) for row in rows],
        "error_y": {"type": "data", "array": errors, "color": SPLIT, "thickness": 1.5, "width": 4},
        "marker": {"color": SPLIT, "size": size}, "text": [f"{row['num']:,.0f} predictions" for row in rows],
        "hovertemplate": "predicted %{x:.2f}, measured %{y:.2f}<br>%{text}<extra></extra>",
    }  # fmt: skip
    ticks = {"range": [-0.04, 1.04], "tickvals": [0, 0.25, 0.5, 0.75, 1]}
    layout = {
        "xaxis": ticks | {"title": {"text": "Predicted chance to end right"}},
        "yaxis": ticks | {"title": {"text": "Accuracy at the last visit"}},
        "showlegend": True,
        "hovermode": "closest",
    }
    return {"data": [ideal, dots], "layout": layout}


def _pair(point: Array) -> str:
    return f"({point[0]:.2f}, {point[1]:.2f})"
