"""One function a figure of one run: each takes the run's history and returns a Figure."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from corl_core.figures.lines import agent_line, smooth_line, with_resume
from corl_core.figures.palette import INK_SLOT, agent_styles, style
from corl_core.figures.spec import Figure, Series, Style
from corl_core.metrics import Metric, describe

STEP_TITLE = "Step (updates)"
PAIR_SLOTS = (3, 4, 6, 0, 1, 2)  # the first are colours that the first three agents don't have
MEAN_LABEL = "mean over pairs"


def agent_curves(history: pd.DataFrame, metric: str, agents: Sequence[str], smoothing: float = 0.0) -> Figure:
    """One line an agent."""
    styles = agent_styles(agents)
    lines = [_series(agent, agent_line(history, metric, agent), styles[agent], smoothing) for agent in agents]
    return _figure(metric, lines)


def pair_curves(history: pd.DataFrame, metric: str, smoothing: float = 0.0) -> Figure:
    """A metric of pairs of agents: one line a pair, or one in all for a cohort of two.

    With several pairs their mean is drawn first, in the ink of the page.
    """
    names = history.loc[history["agent"] == "", "metric"].unique()
    pairs = sorted(name for name in names if name.startswith(metric + "/"))
    ink = style(INK_SLOT)
    if len(pairs) <= 1:
        label = _pair_label(pairs[0]) if pairs else "cohort"
        mean = _series(label, agent_line(history, metric, ""), style(0), smoothing)
        return _figure(metric, [mean])
    lines = [_series(MEAN_LABEL, agent_line(history, metric, ""), ink, smoothing)]
    for place, name in enumerate(pairs):
        look = style(PAIR_SLOTS[place % len(PAIR_SLOTS)]).with_dash("dash")
        lines.append(_series(_pair_label(name), agent_line(history, name, ""), look, smoothing))
    return _figure(metric, lines)


def accuracy_curves(history: pd.DataFrame, agents: Sequence[str]) -> Figure:
    """Held-out accuracy of a single rollout (solid) and of the majority (dotted), by agent."""
    styles = agent_styles(agents)
    lines = []
    for agent in agents:
        single = agent_line(history, "eval/accuracy", agent)
        majority = agent_line(history, "eval/majority_accuracy", agent)
        lines.append(_series(agent, single, styles[agent]))
        lines.append(_series(f"{agent}, majority", majority, styles[agent].with_dash("dot")))
    return _figure("eval/accuracy", lines)


def axis_title(metric: Metric) -> str:
    """Label and unit; the label alone for a fraction, which the axis shows."""
    return metric.label if metric.unit in ("", "fraction") else f"{metric.label} ({metric.unit})"


def pinned(metric: Metric) -> tuple[float, float] | None:
    """The y range to pin: shares of one keep 0 to 1, so that two charts compare at sight."""
    return metric.bounds if metric.bounds == (0, 1) else None


def marked(figure: Figure, resumed_at: int) -> Figure:
    """A figure over steps, with the mark of a resume on every line where the run went on (lines.with_resume)."""
    lines = []
    for line in figure.series:
        known = np.isin(line.x, [] if line.resumed is None else line.resumed)
        lines.append(replace(line, resumed=line.x[with_resume(line.x, known, resumed_at)]))
    return replace(figure, series=tuple(lines))


def file_stem(metric: str) -> str:
    """A metric's name as a file's stem."""
    return metric.replace("/", "-").replace("_", "-")


def _pair_label(name: str) -> str:
    """The pair behind a metric's name: agreement/a.b is a and b, for agent names hold no dot."""
    return " and ".join(name.rsplit("/", 1)[-1].split("."))


def _series(label: str, line: pd.DataFrame, look: Style, smoothing: float = 0.0) -> Series:
    raw = line["value"].to_numpy(dtype=float) if smoothing > 0 and len(line) > 1 else None
    y = smooth_line(line, smoothing).to_numpy(dtype=float)
    steps = line["step"].to_numpy()
    return Series(label, steps, y, look, raw=raw, resumed=steps[line["resumed"].to_numpy(dtype=bool)])


def _figure(name: str, lines: list[Series]) -> Figure:
    metric = describe(name)
    drawn = tuple(line for line in lines if len(np.atleast_1d(line.x)))
    return Figure(file_stem(name), metric.label, STEP_TITLE, axis_title(metric), drawn, pinned(metric))
