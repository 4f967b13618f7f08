"""`queue`: runs that wait for free slots. `grid`: an ablation grid, its coverage, and queueing what is missing."""

import argparse
import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from corl_core.cli.runs import add_anyway, add_overrides
from corl_core.config import load_config
from corl_core.forecast.room import require_room
from corl_core.runs import grid as grids
from corl_core.runs import grid_runs, queue, queue_dispatch
from corl_core.runs.folder import find_run
from corl_core.runs.launch import LaunchError
from corl_core.runs.queue_slots import visible_gpus

Arguments = argparse.Namespace
CHOSEN = "a preset's name or a .yaml file"


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("queue", parents=[common], help="runs that wait for free slots")
    verb.set_defaults(run=_list)
    # A second parser would reset what stood before its verb, so here the options have no default.
    again = argparse.ArgumentParser(add_help=False, argument_default=argparse.SUPPRESS)
    again.add_argument("--runs", type=Path, metavar="DIR", help="runs folder (default: CORL_RUNS or runs/)")
    again.add_argument("--json", action="store_true", help="print JSON")
    actions = verb.add_subparsers(dest="action", metavar="ACTION")

    def action(name: str, run: Callable[[Arguments], int], about: str, of_run: bool = True) -> argparse.ArgumentParser:
        made = actions.add_parser(name, parents=[again], help=about)
        made.set_defaults(run=run)
        if of_run:
            made.add_argument("ref", metavar="RUN", help="a run's id, the start of one, or a run's name")
        return made

    action("list", _list, "the queue in order, and the slots in use (the default)", of_run=False)
    add = action("add", _add, "queue a run", of_run=False)
    add.add_argument("config", help=CHOSEN)
    add.add_argument("--priority", type=int, default=0, metavar="N", help="higher goes first (default: 0)")
    add.add_argument("--hold", action="store_true", help="let it wait until it is released")
    add_overrides(add)
    add_anyway(add)
    action("hold", _hold, "pass a run over until it is released")
    action("release", _release, "let a held run go on waiting")
    action("cancel", _cancel, "take a run out of the queue")
    move = action("move", _move, "move a run in the queue")
    move.add_argument("where", nargs="?", choices=queue.MOVES, help="one place up or down, or to an end")
    move.add_argument("--priority", type=int, metavar="N", help="give it another priority")
    slots = action("slots", _slots, "how much may run at a time", of_run=False)
    slots.add_argument("cpu", nargs="?", type=int, metavar="N", help="CPU slots: cores; an agent takes one a thread")
    slots.add_argument("--gpu", type=int, metavar="N", help="agents on each GPU")
    _add_grid(verbs, common)


def _add_grid(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("grid", parents=[common], help="an ablation grid: coverage, and queueing what is missing")
    verb.set_defaults(run=_grid)
    verb.add_argument("base", nargs="?", help=f"{CHOSEN}; without --vary, the name of a grid; nothing: list the grids")
    about = "a key and its values, e.g. --vary seed=0,1,2 --vary method=corl,ttrl --vary cohort=demo,demo-pair"
    verb.add_argument("--vary", action="append", default=[], metavar="KEY=VALUE,VALUE", help=about)
    add_overrides(verb)
    verb.add_argument("--name", default="", help="what the grid is called (default: from the preset and the keys)")
    verb.add_argument("--queue", action="store_true", help="queue every cell that no run covers")
    verb.add_argument("--priority", type=int, default=0, metavar="N", help="of the runs that are queued (default: 0)")
    verb.add_argument("--skip-impossible", action="store_true", help="queue the others where some cells cannot be")


def _list(arguments: Arguments) -> int:
    queue_dispatch.wake(arguments.runs)
    report = overview(arguments.runs)
    if arguments.json:
        print(json.dumps(report))
        return 0
    cpu, gpus = report["slots"]["cpu"], report["slots"]["gpus"]
    shown = "".join(f", GPU {name} {used}/{report['slots']['gpu']}" for name, used in gpus.items())
    print(f"slots in use: CPU {report['slots']['cpu_used']}/{cpu}{shown}")
    if not report["waiting"]:
        print("nothing waits; queue a run with: python -m corl_core queue add demo")
    for number, row in enumerate(report["waiting"], 1):
        print(f"{number:>3} {row['id']:<52} priority {row['priority']:>3} {'held' if row['held'] else ''}".rstrip())
    return 0


def overview(runs_dir: Path) -> dict[str, Any]:
    """What `queue list` tells."""
    free = queue_dispatch.free(runs_dir)
    slots = asdict(free.slots) | {"cpu_used": free.cores_used, "gpus": free.agents_on}
    rows = [
        {"id": waits.run.id, "priority": waits.entry.priority, "held": waits.entry.held, "path": str(waits.run.path)}
        for waits in queue.waiting(runs_dir)
    ]
    return {"slots": slots, "waiting": rows, "dispatcher": queue_dispatch.working(runs_dir)}


def _add(arguments: Arguments) -> int:
    config = load_config(arguments.config, arguments.overrides)
    require_room(config, arguments.anyway)
    run = queue_dispatch.add(config, arguments.runs, arguments.priority, arguments.hold)
    return _said(arguments, {"id": run.id, "path": str(run.path), "state": run.status().state})


def _hold(arguments: Arguments) -> int:
    queue.hold(run := find_run(arguments.runs, arguments.ref))
    return _said(arguments, {"id": run.id, "held": True})


def _release(arguments: Arguments) -> int:
    queue_dispatch.release(run := find_run(arguments.runs, arguments.ref))
    return _said(arguments, {"id": run.id, "held": False})


def _cancel(arguments: Arguments) -> int:
    run = find_run(arguments.runs, arguments.ref)
    if not queue.cancel(run):
        remedy = f"; use: python -m corl_core stop {run.id}" if not run.status().final else ""
        raise LaunchError(f"{run.id} is {run.status().state} and not in the queue{remedy}")
    return _said(arguments, {"id": run.id, "state": run.status().state})


def _move(arguments: Arguments) -> int:
    run = find_run(arguments.runs, arguments.ref)
    if arguments.where is None and arguments.priority is None:
        raise LaunchError(f"where to? Give one of {', '.join(queue.MOVES)}, or --priority N")
    if arguments.priority is not None:
        queue.prioritise(run, arguments.priority)
    if arguments.where is not None:
        queue.move(run, arguments.where)
    order = [waits.run.id for waits in queue.waiting(arguments.runs)]
    return _said(arguments, {"id": run.id, "place": order.index(run.id) + 1 if run.id in order else None})


def _slots(arguments: Arguments) -> int:
    now = queue_dispatch.slots(arguments.runs)
    chosen = replace(now, **{key: value for key in ("cpu", "gpu") if (value := getattr(arguments, key)) is not None})
    if chosen != now:
        queue_dispatch.set_slots(arguments.runs, chosen)
    return _said(arguments, asdict(chosen) | {"gpus": len(visible_gpus())})


def _grid(arguments: Arguments) -> int:
    if arguments.base is None:
        known = grid_runs.all_grids(arguments.runs)
        if arguments.json:
            print(json.dumps([asdict(grid) for grid in known]))
        for grid in known if not arguments.json else []:
            print(f"{grid.name}: {len(grids.combinations(grid))} cells, " + ", ".join(grid.axes))
        return 0
    if arguments.vary or arguments.overrides:
        grid = grids.make(load_config(arguments.base, arguments.overrides), grids.parse_axes(arguments.vary), arguments.name)
    else:
        grid = grid_runs.find_grid(arguments.runs, arguments.base)
    queued = []
    if arguments.queue:
        queued = grid_runs.enqueue(grid, arguments.runs, arguments.priority, arguments.skip_impossible)
    covered = grid_runs.coverage(grid, grid_runs.seen_in(arguments.runs))
    if arguments.json:
        print(json.dumps({"name": grid.name, "queued": [run.id for run in queued], "cells": [_cell(one) for one in covered]}))
        return 0
    print(f"grid '{grid.name}': {grid_runs.summary(covered)}")
    print(table(grid, covered))
    for reason in dict.fromkeys(one.cell.problem for one in covered if one.cell.problem):
        print(f"impossible: {reason}")
    if queued:
        print(f"queued {len(queued)} runs: python -m corl_core queue")
    return 0


def _cell(one: grid_runs.Covered) -> dict[str, Any]:
    return {"values": one.cell.values, "state": one.state, "accuracy": one.accuracy, "run": one.run.id if one.run else None,
            "problem": one.cell.problem}  # fmt: skip


def table(grid: grids.Grid, covered: list[grid_runs.Covered]) -> str:
    """The coverage matrix: state and last mean held-out accuracy in each cell."""
    along = grids.across(grid)
    own = [key for key in grid.axes if key != along]
    lines = [[*own, *(f"{along}={grids.label(value)}" for value in grid.axes[along])]]
    for values, beside in grids.matrix(grid, covered):
        lines.append([*(grids.label(value) for value in values.values()), *map(_shown, beside)])
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def _shown(one: grid_runs.Covered) -> str:
    return one.state if one.accuracy is None else f"{one.state} {one.accuracy:.3f}"


def _said(arguments: Arguments, value: dict[str, Any]) -> int:
    print(json.dumps(value) if arguments.json else "\n".join(f"{key}: {inner}" for key, inner in value.items()))
    return 0
