"""The command line: everything a page can do, a command can do too.

    train PRESET|FILE       train in the foreground, with a progress bar
    launch PRESET|FILE      start a background run
    status, stop, resume, results RUN · list
    queue                   runs that wait for free slots: add, hold, release, cancel, move, slots
    grid PRESET --vary k=a,b  an ablation grid: what covers its cells; --queue queues the others
    sync RUN                replay a run into a tracking server
    alarms RUN              what a run's journals set off: lock-in, collapse, no signal
    forecast PRESET|FILE    memory an agent and hours, before anything is started; what would fit
    doctor                  what is wrong here, and what to do; --repair mends what it safely can
    rename, note, tag RUN   what a person calls a run and writes about it
    trash, prune RUN… · archive RUN · import FILE   keeping house: deleting with a way back, one file a run, fewer checkpoints
    demo                    the demo cohort and the dashboard on it (`make demo`)
    check-data SPEC         what a run's questions and answers hold, before it starts
    paraphrase SOURCE       a column of paraphrases by a local model
    answers FILE.jsonl      how answers are read and compared
    diversity               whom to pair: from files of answers, or from candidates sampled here
    figure NAME RUN… -o FILE  a figure of the paper, or its table, from your runs
    bundle RUN… -o FILE.zip   figures, data, configs and a sample of votes, to share
    bench demo|engine|answers|…  the tables of the README

A mistake of the user's is one line on stderr and exit code 2; a run that did not finish gives exit code 1.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path

from corl_core.config import ConfigError
from corl_core.data.questions import DataError
from corl_core.figures.errors import FigureError
from corl_core.runs.folder import RunNotFound, default_runs_dir
from corl_core.runs.launch import LaunchError
from corl_core.tracking.errors import TrackingUnavailable

VERBS = {
    "runs": ("train", "launch", "status", "stop", "resume", "results", "sync", "list", "supervise"),
    "queue": ("queue", "grid"),
    "alarms": ("alarms",),
    "demo": ("demo", "app"),
    "bench": ("bench",),
    "data": ("check-data", "paraphrase"),
    "answers": ("answers",),
    "figure": ("figure", "bundle"),
    "diversity": ("diversity",),
    "doctor": ("doctor",),
    "forecast": ("forecast",),
    "housekeeping": ("rename", "note", "tag", "trash", "archive", "import", "prune"),
}
"""Module of this package → the verbs it adds. Only the module of the verb that was asked for is imported."""


def parser(verb: str | None = None) -> argparse.ArgumentParser:
    """Knows that verb alone; every verb when it is None or unknown, for the help and the error."""
    top = argparse.ArgumentParser(prog="python -m corl_core", description="Train cohorts that learn from each other's votes.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--runs", type=Path, default=None, metavar="DIR", help="runs folder (default: CORL_RUNS or runs/)")
    common.add_argument("--json", action="store_true", help="print JSON")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for module in [name for name, own in VERBS.items() if verb in own] or VERBS:
        importlib.import_module(f"corl_core.cli.{module}").add_verbs(verbs, common)
    return top


def main(argv: list[str] | None = None) -> int:
    argv = sys.argv[1:] if argv is None else argv
    arguments = parser(argv[0] if argv else None).parse_args(argv)
    arguments.runs = (arguments.runs or default_runs_dir()).resolve()
    try:
        return arguments.run(arguments)
    except (ConfigError, DataError, RunNotFound, LaunchError, FigureError, TrackingUnavailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # e.g. `… list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
