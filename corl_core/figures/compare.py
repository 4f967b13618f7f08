"""The figure of several runs over one pair of axes: each run alone, or grouped over seeds, or less a baseline."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd

from corl_core.figures.axes import AXES, positions
from corl_core.figures.curves import axis_title, file_stem, pinned
from corl_core.figures.gaps import stretches
from corl_core.figures.grid import aligned, together
from corl_core.figures.lines import RunLine, by_line, by_run, smooth_array, with_resume
from corl_core.figures.ranges import with_range
from corl_core.figures.seeds import summarise
from corl_core.figures.spec import Array, Figure, Series, Style
from corl_core.metrics import describe


@dataclass(frozen=True)
class Group:
    """Runs that are drawn as one line. A run alone is a group of one."""

    label: str
    run_ids: tuple[str, ...]
    style: Style


@dataclass(frozen=True)
class Facts:
    """What a comparison needs to know of a run beside its metrics."""

    seed: int = 0
    questions_per_step: int = 1
    name: str = ""  # how a member of a group is called
    resumed_at: int = 0  # the step from which it was resumed last; 0: never


@dataclass(frozen=True)
class View:
    """How lines are worked out and shown. `axis` is one of axes.AXES, `center` and `spread` are of seeds.py."""

    center: str = "mean"
    spread: str = "std"
    axis: str = "step"
    log: bool = False
    robust: bool = False  # see ranges.py
    facts: Mapping[str, Facts] = field(default_factory=dict)


@dataclass(frozen=True)
class Placed:
    """A run's line on the x axis of the view: arrays of shape [num_points], x ascending."""

    run_id: str
    x: Array
    y: Array  # smoothed
    raw: Array
    resumed: Array  # True at the first point of each attempt after a resume
    stretch: Array  # of its steps, whatever the axis (gaps.py)


def compare_curves(
    history: pd.DataFrame,
    metric: str,
    groups: Sequence[Group],
    smoothing: float = 0.0,
    members: bool = False,
    view: View | None = None,
) -> Figure:
    """One line a group: its centre over the runs, with a band.

    A group of one has no band. Seeds that ended early count while they last, and the
    legend's N then reads as a range. With `members` each run is drawn faint behind its centre.
    """
    view = view or View()
    lines, notes = placed(history, metric, [run_id for group in groups for run_id in group.run_ids], smoothing, view)
    drawn: list[Series] = []
    for group in groups:
        own = [lines[run_id] for run_id in group.run_ids if run_id in lines]
        if len(group.run_ids) == 1 and own:
            drawn.append(_alone(group, own[0], smoothing))
        elif own:
            line = grouped(group, own, view, smoothing)
            drawn += [_member(run, line, view) for run in own] if members else []
            drawn.append(line)
            notes += _ends_apart(group, own, view)
    found = describe(metric)
    title = axis_title(found)
    bare = Figure(file_stem(metric), found.label, AXES[view.axis].title, title, tuple(drawn), pinned(found), notes=tuple(notes))
    return with_range(bare, view.log, view.robust)


def placed(
    history: pd.DataFrame, metric: str, run_ids: Sequence[str], smoothing: float, view: View
) -> tuple[dict[str, Placed], list[str]]:
    """Each run's line on the axis of the view, and a note where lines could not be placed."""
    keys = AXES[view.axis].keys
    spent = by_line(history, keys[0]) if keys else {}
    lines, unplaced = {}, 0
    for run_id, line in by_run(history, metric).items():
        if run_id not in run_ids:
            continue
        facts = view.facts.get(run_id, Facts())
        x = positions(view.axis, spent.get(run_id, {}), metric, line, facts.questions_per_step)
        if keys and not np.isfinite(x).any():
            unplaced += 1
            continue
        lines[run_id] = _placed(run_id, line, x, smoothing, facts.resumed_at)
    word = AXES[view.axis].words.lower()
    return lines, [f"{unplaced} of {len(run_ids)} runs logged no {word} and are not shown."] if unplaced else []


def _placed(run_id: str, line: RunLine, x: Array, smoothing: float, resumed_at: int) -> Placed:
    smooth, resumed = smooth_array(line.steps, line.values, smoothing), with_resume(line.steps, line.resumed, resumed_at)
    return Placed(run_id, x, smooth, line.values, resumed, stretches(line.steps))


def grouped(group: Group, own: Sequence[Placed], view: View, smoothing: float = 0.0) -> Series:
    """The centre of the group's runs, with its band, and what of it could not be averaged."""
    exact = view.axis == "step"
    x, values = aligned([(line.x, line.y, line.stretch) for line in own], exact)
    found = summarise(values, view.center, view.spread)
    raw = None
    if smoothing > 0:
        raw = summarise(aligned([(line.x, line.raw, line.stretch) for line in own], exact)[1], view.center).center
    bad = [~np.isfinite(line.raw) for line in own]
    there = (found.n > 0) | exact  # a step at which every run is lost breaks the line
    stretch = None if exact else together(x, [(line.x, line.y, line.stretch) for line in own])[there]
    return Series(
        f"{group.label} ({_count(found.n[found.n > 0])})",
        x[there],
        found.center[there],
        group.style,
        low=np.where(np.isfinite(found.low), found.low, found.center)[there],
        high=np.where(np.isfinite(found.high), found.high, found.center)[there],
        raw=None if raw is None else raw[there],
        count=found.n[there],
        resumed=np.unique(np.concatenate([line.x[line.resumed] for line in own])),
        stretch=stretch,
        lost_x=np.concatenate([line.x[each] for line, each in zip(own, bad, strict=True)]),
        lost_y=np.concatenate([line.raw[each] for line, each in zip(own, bad, strict=True)]),
    )


def _alone(group: Group, line: Placed, smoothing: float) -> Series:
    raw = line.raw if smoothing > 0 and len(line.x) > 1 else None
    return Series(group.label, line.x, line.y, group.style, raw=raw, resumed=line.x[line.resumed], stretch=line.stretch)


def _member(line: Placed, center: Series, view: View) -> Series:
    name = view.facts.get(line.run_id, Facts()).name or line.run_id
    faint = Series(name, line.x, line.y, center.style, faint=True, stretch=line.stretch)
    return replace(faint, group=center.label)


def _count(n: Array) -> str:
    if len(n) == 0:
        return "N=0"
    return f"N={n.max()}" if n.min() == n.max() else f"N={n.min()}–{n.max()}"


def _ends_apart(group: Group, own: Sequence[Placed], view: View) -> list[str]:
    """What to know of seeds of unequal length, on steps, where a reader expects them equal."""
    ends = [line.x[-1] for line in own if len(line.x)]
    if view.axis != "step" or not ends or min(ends) == max(ends):
        return []
    return [f"{group.label}: runs end between step {min(ends):,} and {max(ends):,}; each point averages those that reached it."]
