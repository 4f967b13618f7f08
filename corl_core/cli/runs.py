"""Verbs that start, watch and stop runs."""

import argparse
import json
import sys
import time
from datetime import datetime
from pathlib import Path
from typing import Any

from corl_core.cli.progress import follow
from corl_core.config import load_config
from corl_core.forecast.room import require_room
from corl_core.methods import METHOD_LABELS
from corl_core.runs import launch as runs
from corl_core.runs.folder import Run, all_runs, find_run
from corl_core.runs.queue_dispatch import wake_for
from corl_core.runs.results import results
from corl_core.runs.settle import settle
from corl_core.security import masked
from corl_core.tracking.closing import close_later


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    for name, run, text in (("train", _train, "train in the foreground"), ("launch", _launch, "start a background run")):
        verb = verbs.add_parser(name, parents=[common], help=text)
        verb.add_argument("config", help="a preset's name or a .yaml file")
        add_overrides(verb)
        add_anyway(verb)
        verb.set_defaults(run=run)
    for name, run, text in (
        ("status", _status, "state of a run"),
        ("stop", _stop, "stop a run after its current step"),
        ("resume", _resume, "go on with a run that was stopped or failed, in the background"),
        ("results", _results, "first and last evaluation of a run"),
        ("sync", _sync, "log a run's journals into a tracking server (MLFLOW_TRACKING_URI)"),
    ):
        verb = verbs.add_parser(name, parents=[common], help=text)
        verb.add_argument("ref", metavar="RUN", help="a run's id, the start of one, or a run's name")
        verb.set_defaults(run=run)
    verbs.add_parser("list", parents=[common], help="all runs, newest first").set_defaults(run=_list)
    verb = verbs.add_parser("supervise", help="(internal) a run's supervisor process")
    verb.add_argument("path", type=Path)
    verb.set_defaults(run=_supervise, runs=None, json=False)


def add_overrides(verb: argparse.ArgumentParser) -> None:
    text = "change one field, e.g. --set grpo.learning_rate=1e-4 --set agents.0.model=tiny:qwen2"
    verb.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides", help=text)


def add_anyway(verb: argparse.ArgumentParser) -> None:
    verb.add_argument("--anyway", action="store_true", help="also where the forecast says that it cannot fit this machine")


def _train(arguments: argparse.Namespace) -> int:
    config = load_config(arguments.config, arguments.overrides)
    require_room(config, arguments.anyway)
    run = runs.launch(config, arguments.runs)
    status = follow(run, quiet=arguments.json)
    return _print(arguments, results(run)) or int(status.state != "finished")


def _launch(arguments: argparse.Namespace) -> int:
    config = load_config(arguments.config, arguments.overrides)
    require_room(config, arguments.anyway)
    return _print(arguments, summary(runs.launch(config, arguments.runs)))


def _status(arguments: argparse.Namespace) -> int:
    run = find_run(arguments.runs, arguments.ref)
    found = summary(run)
    wake_for(arguments.runs, [found["state"]])
    close_later([(run, run.status())])
    return _print(arguments, found)


def _stop(arguments: argparse.Namespace) -> int:
    run = find_run(arguments.runs, arguments.ref)
    runs.stop(run)
    while not (status := run.status()).final:
        if status.state == "stalled":
            print(f"{run.id} does not answer ({status.reason}): ending it", file=sys.stderr)
            runs.kill(run)
        time.sleep(0.2)
    return _print(arguments, summary(run))


def _resume(arguments: argparse.Namespace) -> int:
    run = find_run(arguments.runs, arguments.ref)
    runs.resume(run)
    return _print(arguments, summary(run))


def _results(arguments: argparse.Namespace) -> int:
    return _print(arguments, results(find_run(arguments.runs, arguments.ref)))


def _sync(arguments: argparse.Namespace) -> int:
    from corl_core.tracking.log import TrackingError, sync
    from corl_core.tracking.store import tracking_uri

    run, uri = find_run(arguments.runs, arguments.ref), tracking_uri(arguments.runs)
    try:
        lines = sync(run, uri)
    except TrackingError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return _print(arguments, {"id": run.id, "uri": masked(uri), "lines": lines})


def _list(arguments: argparse.Namespace) -> int:
    everything = all_runs(arguments.runs)
    for run in everything:
        if run.problem:
            print(f"warning: {run.id} is left out: {run.problem}", file=sys.stderr)
    rows = [summary(run) for run in everything if not run.problem]
    close_later((run, run.status()) for run in everything if not run.problem)
    wake_for(arguments.runs, [row["state"] for row in rows])
    if arguments.json:
        return _print(arguments, rows)
    if not rows:
        print(f"no runs in {arguments.runs}; start one with: python -m corl_core launch demo")
    for row in rows:
        created = datetime.fromtimestamp(row["created"]).astimezone().strftime("%Y-%m-%d %H:%M %Z")
        steps, method = f"{row['step']:>5}/{row['max_steps']:<5}", METHOD_LABELS[row["method"]]
        print(f"{row['id']:<48} {row['state']:<9} {steps} {method:<16} {created}")
    return 0


def _supervise(arguments: argparse.Namespace) -> int:
    from corl_core.runs.supervisor import supervise

    return int(supervise(Run(arguments.path)).state == "failed")


def summary(run: Run) -> dict[str, Any]:
    """What `launch`, `status` and `list` tell of a run."""
    status, config = settle(run), run.config
    return {
        "id": run.id, "name": config.name, "state": status.state, "reason": status.reason, "pid": status.pid,
        "step": status.step, "max_steps": status.max_steps, "method": config.method, "seed": config.seed,
        "created": status.created, "path": str(run.path), "alarms": status.alarms,
        **({"placement": status.placement} if status.placement else {}),
    }  # fmt: skip


def _print(arguments: argparse.Namespace, value: Any) -> int:
    """JSON when asked for, else 'key: value' lines (nested ones indented)."""
    print(json.dumps(value) if arguments.json else "\n".join(_lines(value)))
    return 0


def _lines(value: Any, indent: str = "") -> list[str]:
    lines = []
    for key, inner in value.items():
        if key == "alarms":
            lines.append(f"{indent}alarms: {len(inner) or 'none'}")
            lines += [f"{indent}  step {alarm['step']}: {alarm['text']}" for alarm in inner]
        elif isinstance(inner, dict):
            lines += [f"{indent}{key}:", *_lines(inner, indent + "  ")]
        else:
            lines.append(f"{indent}{key}: {inner:.4g}" if isinstance(inner, float) and inner < 1e6 else f"{indent}{key}: {inner}")
    return lines
