"""Queue: a grid's coverage, which cells no run covers, and the button that queues those."""

import shlex

import pandas as pd
import streamlit as st

from corl_core.methods import METHOD_LABELS
from corl_core.runs import grid as grids
from corl_core.runs import grid_runs
from corl_core.runs.folder import FINAL, default_runs_dir
from corl_core.runs.grid import Grid
from corl_core.runs.grid_runs import IMPOSSIBLE, MISSING, Covered
from corl_core.runs.queue import MAX_PRIORITY
from pages.components import data, link, live
from pages.components.access import acts, why_not
from pages.components.text import STATE_COLORS, STATE_ICONS, plain

NEW = "New grid"
REASONS = 5


def choose() -> Grid | None:
    """The kept grid that is picked; None for a new one."""
    known = {grid.name: grid for grid in grid_runs.all_grids(default_runs_dir())}
    link.check("grid", [NEW, *known], "Grid")
    picked = st.selectbox("Grid", [NEW, *known], key="grid", bind="query-params", format_func=str, width=420)
    return known.get(picked)


def show(grid: Grid, new: bool) -> None:
    """Coverage, drawn anew while something of it runs or waits, and what can be queued."""
    covered = grid_runs.coverage(grid, data.runs()[0])
    _to_queue(grid, covered, new)
    moving = any(one.run is not None and one.state not in FINAL for one in covered)
    before = grid_runs.summary(covered)

    def matrix() -> None:
        now = grid_runs.coverage(grid, data.runs()[0])
        if moving and grid_runs.summary(now) != before:
            st.rerun()
        st.table(table(grid, now), border="horizontal")

    live.refreshing(matrix, active=moving)
    st.caption("Each cell: the state of its run and the mean held-out accuracy over agents in its last evaluation.")


def table(grid: Grid, covered: list[Covered]) -> pd.DataFrame:
    """The matrix as Markdown; a cell leads to its run."""
    along = grids.across(grid)
    names = [f"{plain(along)} {_word(along, value)}" for value in grid.axes[along]]
    rows = grids.matrix(grid, covered)
    index = [", ".join(f"{plain(key)} {_word(key, value)}" for key, value in values.items()) or "All" for values, _ in rows]
    return pd.DataFrame([[_cell(one) for one in beside] for _, beside in rows], index, names)


def _word(key: str, value: object) -> str:
    return plain(METHOD_LABELS.get(str(value), str(value)) if key == "method" else grids.label(value))


def _cell(one: Covered) -> str:
    if one.run is None:
        return f":gray[{one.state}]" if one.state == MISSING else f":red[{one.state}]"
    badge = f":{STATE_COLORS.get(one.state, 'gray')}-badge[{STATE_ICONS.get(one.state, '')} {one.state.capitalize()}]"
    shown = "open" if one.accuracy is None else f"**{one.accuracy:.3f}**"
    return f"{badge} [{shown}](run?run={one.run.id})"


def _to_queue(grid: Grid, covered: list[Covered], new: bool) -> None:
    open_cells = grid_runs.to_queue(covered)
    impossible = list(dict.fromkeys(one.cell.problem for one in covered if one.state == IMPOSSIBLE))
    st.markdown(f"{plain(grid_runs.summary(covered))}. {_cost(open_cells)}")
    skip = False
    if impossible:
        shown = [*impossible[:REASONS], *([f"and {len(impossible) - REASONS} more"] if len(impossible) > REASONS else [])]
        st.warning("  \n".join(plain(reason) for reason in shown), icon=":material/block:")
        skip = st.checkbox("Queue the other cells", key="grid_skip")
    if open_cells:
        _queue_row(grid, len(open_cells), bool(impossible) and not skip, skip)
    if not new:
        st.code(f"python -m corl_core grid {shlex.quote(grid.name)}", language="bash", wrap_lines=True)


def _queue_row(grid: Grid, num: int, off: bool, skip: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        about = "Higher goes first."
        priority = st.number_input("Priority", -MAX_PRIORITY, MAX_PRIORITY, 0, key="grid_priority", help=about, width=120)
        refusal = why_not()
        st.button(
            f"Queue {num} runs" if num != 1 else "Queue 1 run", type="primary", key="grid_queue", icon=":material/playlist_add:",
            disabled=off or bool(refusal), help=plain(refusal) or None, on_click=_enqueue, args=(grid, int(priority or 0), skip),
        )  # fmt: skip


def _cost(open_cells: list[grids.Cell]) -> str:
    """What queueing them means, in words."""
    configs = [cell.config for cell in open_cells if cell.config is not None]
    if not configs:
        return "Nothing is left to queue."
    sampled = sum(map(grids.completions, configs))
    tokens = sum(grids.completions(config) * config.longest_completion for config in configs)
    return f"To queue: {len(configs)}, which sample {sampled:,} completions, at most {tokens:,} tokens."


@acts
def _enqueue(grid: Grid, priority: int, skip: bool) -> None:
    grid_runs.enqueue(grid, default_runs_dir(), priority, skip)
    st.session_state["grid"] = grid.name
