"""The command line: everything a page can do, a command can do too.

    train PRESET|FILE       train in the foreground, with a progress bar
    launch PRESET|FILE      start a background run
    status, stop, results RUN · list
    sync RUN                replay a run into a tracking server
    demo                    the demo cohort and the dashboard on it (`make demo`)
    check-data SPEC         what a run's questions and answers hold, before it starts
    paraphrase SOURCE       a column of paraphrases by a local model
    answers FILE.jsonl      how answers are read and compared
    bench demo|engine|answers  the tables of the README

A mistake of the user's is one line on stderr and exit code 2; a run that did not finish gives exit code 1.
"""

import argparse
import os
import sys
from pathlib import Path

from corl_core.cli import answers, bench, data, demo, runs
from corl_core.config import ConfigError
from corl_core.data.questions import DataError
from corl_core.runs.folder import RunNotFound, default_runs_dir
from corl_core.runs.launch import LaunchError


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m corl_core", description="Train cohorts that learn from each other's votes.")
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument("--runs", type=Path, default=None, metavar="DIR", help="runs folder (default: CORL_RUNS or runs/)")
    common.add_argument("--json", action="store_true", help="print JSON")
    verbs = top.add_subparsers(dest="verb", required=True, metavar="VERB")
    for module in (runs, demo, bench, data, answers):
        module.add_verbs(verbs, common)
    return top


def main(argv: list[str] | None = None) -> int:
    arguments = parser().parse_args(argv)
    arguments.runs = (arguments.runs or default_runs_dir()).resolve()
    try:
        return arguments.run(arguments)
    except (ConfigError, DataError, RunNotFound, LaunchError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # e.g. `… list | head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
