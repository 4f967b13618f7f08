"""A bar chart as a neutral description, its table, and its Plotly description."""

from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd

from corl_core.figures.spec import Style


@dataclass(frozen=True)
class Bar:
    """One bar: the mean of `count` values, and their sample standard deviation where there are several."""

    label: str
    value: float
    style: Style
    group: str  # its kind, named in the legend
    spread: float | None = None
    count: int = 1
    hatched: bool = False  # so that the kind is not told by colour alone


@dataclass(frozen=True)
class Bars:
    """Bars over one axis of names, in the order to draw."""

    name: str  # the file's stem when it is exported
    title: str
    y_title: str
    bars: tuple[Bar, ...]
    bounds: tuple[float, float] | None = None

    @property
    def empty(self) -> bool:
        """True when there is no finite bar to draw."""
        return not any(np.isfinite(bar.value) for bar in self.bars)

    @property
    def groups(self) -> dict[str, Bar]:
        """Each kind with its first bar, in the order of drawing."""
        found: dict[str, Bar] = {}
        for bar in self.bars:
            found.setdefault(bar.group, bar)
        return found


def bars_table(bars: Bars) -> pd.DataFrame:
    """Every bar: bar, group, y, spread (standard deviation; absent for one value) and n."""
    rows = [(bar.label, bar.group, bar.value, bar.spread, bar.count) for bar in bars.bars]
    table = pd.DataFrame(rows, columns=["bar", "group", "y", "spread", "n"])
    return table if table["spread"].notna().any() else table.drop(columns="spread")


def bars_to_plotly(bars: Bars) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Data and layout: one trace a kind of bar."""
    data = []
    for group, first in bars.groups.items():
        own = [bar for bar in bars.bars if bar.group == group]
        trace: dict[str, Any] = {"type": "bar", "name": escape(group), "x": [escape(bar.label) for bar in own]}
        trace |= {"y": [bar.value if np.isfinite(bar.value) else None for bar in own]}
        trace["marker"] = {"color": first.style.color, "pattern": {"shape": "/" if first.hatched else ""}}
        if any(bar.spread is not None for bar in own):
            trace["error_y"] = {"type": "data", "array": [bar.spread or 0 for bar in own]}
        data.append(trace)
    order = [escape(bar.label) for bar in bars.bars]
    x_axis = {"categoryorder": "array", "categoryarray": order, "type": "category"}
    layout = {"xaxis": x_axis, "yaxis": {"title": {"text": escape(bars.y_title)}}, "barmode": "group", "showlegend": True}
    return data, layout
