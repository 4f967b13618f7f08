"""Figures of saved rollouts: agreement held against the truth, one question through training, what-if replay.

The area and the path of a question are Plotly descriptions (a plain dict) of their own; a replay's lines are a Figure.
Right and wrong differ by marker, and the wrong areas are hatched, so neither is told by colour alone.
"""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import pandas as pd

from corl_core.figures.curves import STEP_TITLE
from corl_core.figures.palette import INK_SLOT, agent_styles, style
from corl_core.figures.spec import Figure, Series, Style
from corl_core.rollouts.agreement import CASES

Json = dict[str, Any]
RIGHT, WRONG, UNKNOWN = "circle", "x", "circle-open"
_WORDS = {RIGHT: "right", WRONG: "wrong", UNKNOWN: "truth unknown"}
_AREAS = dict(zip(CASES, [("#009E73", ""), ("#D55E00", "x"), ("#56B4E9", ""), ("#0072B2", ""), ("#999999", "/")], strict=True))


def case_words(a: str, b: str) -> dict[str, str]:
    """What each case of `agreement.CASES` is called for a pair."""
    words = ("agree and right", "agree and wrong", f"only {a} right", f"only {b} right", "both wrong, differently")
    return dict(zip(CASES, words, strict=True))


def agreement_area(shares: pd.DataFrame, a: str, b: str) -> Json:
    """`agreement.decomposed` as areas stacked to one."""
    names = case_words(a, b)
    spans = [f"step {first}" if first == last else f"steps {first} to {last}"
             for first, last in zip(shares["first"], shares["last"], strict=True)]  # fmt: skip
    asked = [f"{span}, {num:,} questions" for span, num in zip(spans, shares["num_draws"], strict=True)]
    data = []
    for case in CASES:
        color, hatch = _AREAS[case]
        pattern = {"shape": hatch, "fgcolor": "#ffffff", "bgcolor": color, "size": 6, "solidity": 0.25}
        data.append(
            {
                "type": "scatter", "mode": "lines", "stackgroup": "cases", "name": escape(names[case]),
                "x": shares["last"].tolist(), "y": shares[case].round(6).tolist(), "text": asked, "uid": case,
                "line": {"color": color, "width": 0.8}, "fillcolor": color, "fillpattern": pattern if hatch else None,
                "hovertemplate": "%{fullData.name}: %{y:.1%}<br>%{text}<extra></extra>",
            }
        )  # fmt: skip
    return {"data": data, "layout": _axes("Share of questions", [0, 1])}


def question_path(rows: pd.DataFrame, agents: Sequence[str]) -> Json:
    """`agreement.through` as one line an agent: its vote share each time the question was asked, marked right or wrong."""
    styles, data = agent_styles(agents), []
    for agent in agents:
        own = rows[rows["agent"] == agent]
        right = own["right"].astype(object)
        marks = [UNKNOWN if pd.isna(value) else RIGHT if value else WRONG for value in right]
        votes = [escape(_said(vote, mark)) for vote, mark in zip(own["vote"], marks, strict=True)]
        look = styles[agent]
        data.append(
            {
                "type": "scatter", "mode": "lines+markers", "name": escape(agent), "uid": agent,
                "x": own["step"].tolist(), "y": own["share"].round(6).tolist(), "text": votes,
                "line": {"color": look.color, "dash": look.dash, "width": 1.5},
                "marker": {"color": look.color, "symbol": marks, "size": 10},
                "hovertemplate": "%{fullData.name}, step %{x}<br>vote %{text}, share %{y:.2f}<extra></extra>",
            }
        )  # fmt: skip
    return {"data": data, "layout": _axes("Vote share", [-0.05, 1.08])}


def replay_curves(points: pd.DataFrame, measure: str, agents: Sequence[str], shown: Mapping[tuple[str, str], str]) -> Figure:
    """`whatif.rates` in blocks: one line a rule of `shown`, (rule, agent) → its label; `measure` accuracy or coverage."""
    styles, lines = agent_styles(agents), []
    for (rule, agent), label in shown.items():
        own = points[(points["rule"] == rule) & (points["agent"] == agent)]
        look = _look(rule, agent, styles)
        lines.append(Series(label, own["step"].to_numpy(), own[measure].to_numpy(dtype=float), look))
    titles = {"accuracy": "Pseudo-label accuracy", "coverage": "Labelled questions"}
    return Figure(f"what-if-{measure}", titles[measure], STEP_TITLE, titles[measure], tuple(lines), (0.0, 1.0))


def _look(rule: str, agent: str, styles: Mapping[str, Style]) -> Style:
    if rule in ("pooled", "weighted"):
        return style(INK_SLOT).with_dash("dash" if rule == "pooled" else "dot")
    return styles[agent].with_dash("dashdot" if rule == "received" else styles[agent].dash)


def _said(vote: str | float, mark: str) -> str:
    if pd.isna(vote):
        return "none"
    return f"{str(vote)[:60]} ({_WORDS[mark]})"


def _axes(y_title: str, y_range: list[float]) -> Json:
    return {
        "xaxis": {"title": {"text": STEP_TITLE}},
        "yaxis": {"title": {"text": y_title}, "range": y_range},
        "showlegend": True,
        "hovermode": "closest",
    }
