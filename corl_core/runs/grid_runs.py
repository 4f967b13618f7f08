"""The runs of an ablation grid: which run covers which cell, and the queueing of those that none covers.

A cell is covered by any run of exactly its configuration, whatever that run is called: name, notes and preset do not change what
is trained. A grid is kept in `grids/` of the runs folder, so that its coverage can be shown at any time. Each run that a grid
queues carries `grid.json`: the grid's name and the values of its cell.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Protocol

from filelock import FileLock

from corl_core.config import RunConfig
from corl_core.config_errors import ConfigError
from corl_core.data.preflight import refuse_before_launch
from corl_core.data.questions import DataError
from corl_core.runs import queue, queue_dispatch
from corl_core.runs.folder import Run, Status, all_runs, write_atomically
from corl_core.runs.grid import Cell, Grid, cells, words
from corl_core.runs.headline import last_accuracy

FOLDER, TAG = "grids", "grid.json"
MISSING, IMPOSSIBLE = "missing", "impossible"
BEST_FIRST = ("finished", "running", "stopping", "starting", "stalled", "queued", "stopped", "failed")
AGAIN = (MISSING, "stopped", "failed")  # states of cells that are queued (again)
SHOWN = 5  # reasons in one error


class Seen(Protocol):
    """A run that exists, read once."""

    @property
    def run(self) -> Run: ...

    @property
    def config(self) -> RunConfig: ...

    @property
    def status(self) -> Status: ...


@dataclass(frozen=True)
class _Read:
    run: Run
    config: RunConfig
    status: Status


@dataclass(frozen=True)
class Covered:
    """A cell with the best run of its configuration: one that finished rather than one that runs, waits or failed."""

    cell: Cell
    run: Run | None
    state: str
    accuracy: float | None = None


def trained(config: RunConfig) -> str:
    """What two runs share that train the same: everything but name, notes and preset."""
    return config.model_dump_json(exclude={"name", "notes", "preset"})


def coverage(grid: Grid, seen: Iterable[Seen]) -> list[Covered]:
    """Each cell with the best of the runs of its configuration, the newest among equals."""
    by_config: dict[str, list[Seen]] = {}
    for one in seen:
        by_config.setdefault(trained(one.config), []).append(one)
    return [_covered(cell, by_config.get(trained(cell.config), []) if cell.config else []) for cell in cells(grid)]


def _covered(cell: Cell, runs: Sequence[Seen]) -> Covered:
    if cell.config is None:
        return Covered(cell, None, IMPOSSIBLE)
    if not runs:
        return Covered(cell, None, MISSING)
    newest = sorted(runs, key=lambda one: one.run.id, reverse=True)
    best = min(newest, key=lambda one: BEST_FIRST.index(one.status.state) if one.status.state in BEST_FIRST else len(BEST_FIRST))
    return Covered(cell, best.run, best.status.state, last_accuracy(best.run))


def to_queue(covered: Iterable[Covered]) -> list[Cell]:
    """The cells that no run covers: neither finished nor under way nor waiting."""
    return [one.cell for one in covered if one.state in AGAIN]


def refusal(cell: Cell) -> str:
    """Why a cell cannot be: its configuration, or data that its run would be refused for; '' when it can."""
    if cell.config is None:
        return cell.problem
    try:
        refuse_before_launch(cell.config)
    except DataError as error:
        return f"{words(cell.values)}: {error}"
    return ""


def enqueue(grid: Grid, runs_dir: Path, priority: int = 0, skip_impossible: bool = False) -> list[Run]:
    """Queues the cells that no run covers, and keeps the grid. Nothing is queued when one is impossible, unless those are to be
    skipped. Raises ConfigError, and LaunchError."""
    with queue.lock(runs_dir):
        pass  # the folder is there, or the reason why not is told
    with FileLock(Path(runs_dir) / queue.FOLDER / "grid.lock"):  # two clicks at once: the second finds the cells queued
        covered = coverage(grid, seen_in(runs_dir))
        open_cells = [one.cell for one in covered if one.state in (*AGAIN, IMPOSSIBLE)]
        reasons = [refusal(cell) for cell in open_cells]
        if (impossible := list(filter(None, reasons))) and not skip_impossible:
            shown = [*impossible[:SHOWN], *([f"and {len(impossible) - SHOWN} more"] if len(impossible) > SHOWN else [])]
            raise ConfigError(f"{len(impossible)} of {len(covered)} cells are impossible, nothing was queued: {'; '.join(shown)}")
        chosen = [cell for cell, reason in zip(open_cells, reasons, strict=True) if not reason]
        save(grid, runs_dir)
        runs = queue.enqueue_checked([cell.config for cell in chosen], runs_dir, priority)
        for run, cell in zip(runs, chosen, strict=True):
            write_atomically(run.path / TAG, json.dumps({"grid": grid.name, "values": cell.values}))
    queue_dispatch.wake(runs_dir)
    return runs


def seen_in(runs_dir: Path) -> list[Seen]:
    """Every run whose configuration can be read."""
    return [_Read(run, run.config, run.status()) for run in all_runs(runs_dir) if not run.problem]


def save(grid: Grid, runs_dir: Path) -> None:
    """Keeps a grid; one of the same name is replaced. Raises ConfigError for a name that is too like another's."""
    path = _path(grid.name, runs_dir)
    if path.exists() and (other := _loaded(path)) is not None and other.name != grid.name:
        raise ConfigError(f"grid '{grid.name}': the name is too like '{other.name}', which is there already; give another one")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(asdict(grid), ensure_ascii=False))


def all_grids(runs_dir: Path) -> list[Grid]:
    """The grids that were kept, the one saved last first; a file that cannot be read is left out."""
    files = sorted((Path(runs_dir) / FOLDER).glob("*.json"), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return [grid for grid in map(_loaded, files) if grid is not None]


def find_grid(runs_dir: Path, name: str) -> Grid:
    """Raises ConfigError with the names that there are."""
    known = all_grids(runs_dir)
    for grid in known:
        if grid.name == name or _slug(grid.name) == name:
            return grid
    there = ", ".join(f"'{grid.name}'" for grid in known) or "none"
    raise ConfigError(f"no grid '{name}' in {runs_dir} (there are: {there}); make one with a preset and --vary key=value,value")


def _loaded(path: Path) -> Grid | None:
    try:
        grid = Grid(**json.loads(path.read_text(encoding="utf-8")))
        cells(grid)
        return grid
    except (OSError, ValueError, TypeError, AttributeError):
        return None


def _path(name: str, runs_dir: Path) -> Path:
    return Path(runs_dir) / FOLDER / f"{_slug(name)}.json"


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:60] or "grid"


def summary(covered: Sequence[Covered]) -> str:
    """How many cells are in which state: '6 cells: 3 finished, 1 queued, 2 missing'."""
    counts = Counter(one.state for one in covered)
    known = [state for state in (*BEST_FIRST, MISSING, IMPOSSIBLE) if counts[state]]
    return f"{len(covered)} cells: " + ", ".join(f"{counts[state]} {state}" for state in known)
