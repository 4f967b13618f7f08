"""The difference of each group from a baseline, seed by seed.

Two runs of one seed saw the same questions in the same order, so their difference is free of what the seed brings to both.
At each position d_s = y_s - baseline_s for every seed s that both groups have there; the line is the centre of the d_s and
the band their spread (seeds.py). Several runs of a group with one seed are averaged first. A seed that only one of the two
has is left out and named.

At the end of training: the mean of d_s with its 95% confidence interval, mean ± t(0.975, n-1) · std / sqrt(n) (Student),
which has no bounds for one pair.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from corl_core.figures.axes import AXES
from corl_core.figures.compare import Facts, Group, Placed, View, grouped, placed
from corl_core.figures.curves import axis_title, file_stem
from corl_core.figures.gaps import stretches
from corl_core.figures.grid import aligned
from corl_core.figures.ranges import with_range
from corl_core.figures.spec import Figure, Series
from corl_core.metrics import describe


@dataclass(frozen=True)
class Difference:
    """A mean difference over `n` seeds; `half` is half the width of its 95% interval, None for one pair."""

    mean: float
    half: float | None
    n: int


def difference_curves(
    history: pd.DataFrame, metric: str, groups: Sequence[Group], baseline: Group, smoothing: float, view: View
) -> Figure:
    """One line a group: how far it is above the baseline."""
    run_ids = [run_id for group in [*groups, baseline] for run_id in group.run_ids]
    lines, notes = placed(history, metric, list(dict.fromkeys(run_ids)), smoothing, view)
    drawn: list[Series] = []
    for group in groups:
        if group == baseline:
            continue
        pairs, alone = pairs_of(group, baseline, view.facts)
        notes += [f"{group.label}: without a partner in {baseline.label}: seed {', '.join(map(str, alone))}."] if alone else []
        found = [_less(seed, mine, theirs, lines, view) for seed, (mine, theirs) in pairs.items()]
        own = [line for line in found if line is not None]
        if own:
            drawn.append(grouped(replace(group, label=f"{group.label} − {baseline.label}"), own, view))
    about = describe(metric)
    name, title = f"{file_stem(metric)}-difference", f"{about.label}, less {baseline.label}"
    y_title = f"Difference in {axis_title(about)[:1].lower()}{axis_title(about)[1:]}"
    bare = Figure(name, title, AXES[view.axis].title, y_title, tuple(drawn), zero=True, notes=tuple(notes))
    return with_range(bare, False, view.robust)


def at_the_end(mine: Mapping[int, float], theirs: Mapping[int, float]) -> Difference | None:
    """Of values by seed; None where no seed is in both."""
    gaps = np.array([mine[seed] - theirs[seed] for seed in sorted(mine.keys() & theirs.keys())])
    gaps = gaps[np.isfinite(gaps)]
    if gaps.size == 0:
        return None
    if gaps.size == 1:
        return Difference(float(gaps[0]), None, 1)
    from scipy.special import stdtrit

    half = stdtrit(gaps.size - 1, 0.975) * gaps.std(ddof=1) / np.sqrt(gaps.size)
    return Difference(float(gaps.mean()), float(half), int(gaps.size))


def pairs_of(
    group: Group, baseline: Group, facts: Mapping[str, Facts]
) -> tuple[dict[int, tuple[list[str], list[str]]], list[int]]:
    """Seed → the runs of it in either group; and the seeds that only one of them has."""
    sides = []
    for side in (group, baseline):
        by_seed: dict[int, list[str]] = {}
        for run_id in side.run_ids:
            by_seed.setdefault(facts.get(run_id, Facts()).seed, []).append(run_id)
        sides.append(by_seed)
    mine, theirs = sides
    both = sorted(mine.keys() & theirs.keys())
    return {seed: (mine[seed], theirs[seed]) for seed in both}, sorted(mine.keys() ^ theirs.keys())


def _less(seed: int, mine: list[str], theirs: list[str], lines: Mapping[str, Placed], view: View) -> Placed | None:
    """The difference of one seed, where both sides have a value."""
    sides = [[lines[run_id] for run_id in side if run_id in lines] for side in (mine, theirs)]
    if not all(sides):
        return None
    every = [line for side in sides for line in side]
    x, values = aligned([(line.x, line.y, line.stretch) for line in every], view.axis == "step")
    split = len(sides[0])
    with np.errstate(invalid="ignore"):
        gap = _mean(values[:, :split]) - _mean(values[:, split:])
    there = np.isfinite(gap)
    stretch = stretches(x[there]) if view.axis == "step" else np.cumsum(~there)[there]
    return Placed(f"seed {seed}", x[there], gap[there], gap[there], np.zeros(int(there.sum()), dtype=bool), stretch)


def _mean(values: np.ndarray) -> np.ndarray:
    """Of each row over the runs that have a value; NaN where none has."""
    there = np.isfinite(values)
    return np.where(there, values, 0.0).sum(axis=1) / np.where(there.any(axis=1), there.sum(axis=1), np.nan)
