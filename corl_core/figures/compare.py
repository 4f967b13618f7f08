"""The figure of several runs over one pair of axes: each run alone, or grouped over seeds."""

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from corl_core.figures.curves import STEP_TITLE, axis_title, file_stem, pinned
from corl_core.figures.lines import group_lines, run_lines, smooth_lines
from corl_core.figures.spec import Figure, Series, Style
from corl_core.metrics import describe


@dataclass(frozen=True)
class Group:
    """Runs that are drawn as one line. A run alone is a group of one."""

    label: str
    run_ids: tuple[str, ...]
    style: Style


def compare_curves(
    history: pd.DataFrame,
    metric: str,
    groups: Sequence[Group],
    smoothing: float = 0.0,
    members: bool = False,
) -> Figure:
    """One line a group: its mean, with a band of one standard deviation either side.

    A group of one has no band. Seeds that ended early are averaged while they last, and the
    legend's N then reads as a range. With `members` each run is drawn faint behind its mean.
    """
    lines = smooth_lines(run_lines(history, metric), smoothing)
    table = group_lines(lines, {str(i): group.run_ids for i, group in enumerate(groups)})
    drawn: list[Series] = []
    for place, group in enumerate(groups):
        own = table[table["group"] == str(place)]
        if own.empty:
            continue
        if len(group.run_ids) == 1:
            drawn.append(_alone(group, lines, smoothing))
            continue
        mean = _mean(group, own)
        if members:
            drawn += [_member(run_id, lines, mean) for run_id in group.run_ids]
        drawn.append(mean)
    found = describe(metric)
    title = axis_title(found)
    return Figure(file_stem(metric), found.label, STEP_TITLE, title, tuple(drawn), pinned(found))


def _alone(group: Group, lines: pd.DataFrame, smoothing: float) -> Series:
    line = lines[lines["run_id"] == group.run_ids[0]]
    raw = line["raw"].to_numpy(dtype=float) if smoothing > 0 and len(line) > 1 else None
    y = line["value"].to_numpy(dtype=float)
    return Series(group.label, line["step"].to_numpy(), y, group.style, raw=raw)


def _member(run_id: str, lines: pd.DataFrame, mean: Series) -> Series:
    line = lines[lines["run_id"] == run_id]
    y = line["value"].to_numpy(dtype=float)
    x = line["step"].to_numpy()
    return Series(run_id, x, y, mean.style, faint=True, group=mean.label)


def _mean(group: Group, own: pd.DataFrame) -> Series:
    mean, std = own["mean"].to_numpy(float), own["std"].fillna(0.0).to_numpy(float)
    fewest, most = own["n"].min(), own["n"].max()
    count = f"N={most}" if fewest == most else f"N={fewest}–{most}"
    return Series(
        f"{group.label} ({count})",
        own["step"].to_numpy(),
        mean,
        group.style,
        low=mean - std,
        high=mean + std,
        count=own["n"].to_numpy(),
    )
