"""`figure`: a figure of the paper from one's own runs. `bundle`: figures, data, configs and votes to share."""

import argparse
import json
import os
import tempfile
from pathlib import Path

from corl_core.figures.errors import FigureError
from corl_core.figures.palette import run_slots
from corl_core.figures.paper.catalogue import CATALOGUE, OVERLAPS
from corl_core.figures.paper.recipe import Recipe, Source, file_content, kind_of
from corl_core.figures.seeds import CENTERS, SPREADS
from corl_core.figures.venues import FONTS, SPANS, VENUES
from corl_core.runs.folder import Run, all_runs, find_runs

DEFAULT = Recipe("", ())


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("figure", parents=[common], help="a figure of the paper, or its table, from your runs")
    verb.add_argument("name", nargs="?", metavar="NAME", help="which figure; see --list")
    verb.add_argument("--list", action="store_true", help="list the figures")
    _add_options(verb, "FILE; its suffix is the format: pdf, svg, png, html, csv or tex")
    verb.set_defaults(run=_figure)
    verb = verbs.add_parser("bundle", parents=[common], help="a zip to share: figures, data, configs, a sample of votes")
    _add_options(verb, "FILE.zip")
    verb.add_argument("--questions", type=int, default=None, metavar="N", help="questions in each run's sample of votes")
    verb.set_defaults(run=_bundle, name="2a", list=False)


def _add_options(verb: argparse.ArgumentParser, out: str) -> None:
    verb.add_argument("refs", nargs="*", metavar="RUN", help="a run's id, the start of one, or a name: all runs of it")
    verb.add_argument("-o", "--output", type=Path, metavar="FILE", help=out)
    add = verb.add_argument
    add("--group", default=DEFAULT.group, metavar="KEY", help="seeds (one line a config; default), none, or a config key")
    add("--smooth", type=float, default=DEFAULT.smooth, metavar="W", help="weight of the past, 0 to 1 (default: %(default)s)")
    add("--center", choices=CENTERS, default=DEFAULT.center, help="of several seeds (default: %(default)s)")
    add("--spread", choices=SPREADS, default=DEFAULT.spread, help="the band round it (default: %(default)s)")
    add("--members", action="store_true", help="draw each run faint behind its mean")
    add("--agent", default=DEFAULT.agent, metavar="NAME", help="this agent only")
    add("--overlap", choices=OVERLAPS, default=DEFAULT.overlap, help="how figure 2d measures it (default: %(default)s)")
    add("--ylim", type=float, nargs=2, metavar=("LOW", "HIGH"), help="the y range; lines that leave it are marked")
    add("--venue", choices=VENUES, default=DEFAULT.venue, help="column widths and type (default: %(default)s)")
    add("--span", choices=SPANS, default=DEFAULT.span, help="how wide (default: %(default)s)")
    add("--width", type=float, metavar="IN", help="width in inches, instead of the venue's")
    add("--height", type=float, metavar="IN", help="height in inches")
    add("--dpi", type=int, default=DEFAULT.dpi, help="dots per inch of a PNG (default: %(default)s)")
    add("--font", choices=FONTS, default=DEFAULT.font, help="typeface (default: %(default)s)")
    add("--title", action="store_true", help="write the title above the figure")


def _figure(arguments: argparse.Namespace) -> int:
    if arguments.list:
        return _list(arguments.json)
    if not arguments.name:
        raise FigureError("NAME is missing; say which figure, e.g. 2a (python -m corl_core figure --list names them)")
    runs, recipe = _asked(arguments)
    kind_of(arguments.output.name, recipe.figure)
    content = file_content(recipe, _source(arguments.runs, runs, recipe.keys), arguments.output.name)
    return _write(arguments, recipe, content, recipe.command(arguments.output.name))


def _bundle(arguments: argparse.Namespace) -> int:
    from corl_core.figures import bundle

    runs, recipe = _asked(arguments)
    if arguments.output.suffix != ".zip":
        raise FigureError(f"output '{arguments.output.name}' does not end in .zip; a bundle is a zip file")
    questions = bundle.QUESTIONS if arguments.questions is None else arguments.questions
    source = _source(arguments.runs, runs, None)
    content = bundle.bundle(recipe, source, runs, arguments.output.name, questions)
    return _write(arguments, recipe, content, bundle.command(recipe, arguments.output.name, questions))


def _asked(arguments: argparse.Namespace) -> tuple[list[Run], Recipe]:
    """The runs, each once, and the recipe. Raises FigureError, RunNotFound or ConfigError."""
    if not arguments.refs:
        raise FigureError("RUN is missing; name at least one (python -m corl_core list shows them)")
    if arguments.output is None:
        raise FigureError("-o FILE is missing; say where to write, e.g. -o figure.pdf")
    if not arguments.output.absolute().parent.is_dir():
        raise FigureError(f"output folder '{arguments.output.parent}' does not exist; make it first")
    found = {run.id: run for ref in arguments.refs for run in find_runs(arguments.runs, ref)}
    options = {name: getattr(arguments, name) for name in vars(DEFAULT) if name not in ("figure", "run_ids", "ylim")}
    ylim = tuple(arguments.ylim) if arguments.ylim else None
    return list(found.values()), Recipe(arguments.name, tuple(found), ylim=ylim, **options)


def _source(runs_dir: Path, runs: list[Run], keys: list[str] | None) -> Source:
    from corl_core.tracking.reader import history
    from corl_core.tracking.store import tracking_uri

    configs = {run.id: run.config for run in runs}
    slots = run_slots(runs_dir, [run.id for run in all_runs(runs_dir) if not run.problem])
    return Source(history(tracking_uri(runs_dir), list(configs), keys), configs, slots)


def _write(arguments: argparse.Namespace, recipe: Recipe, content: bytes, command: str) -> int:
    """Writes the file whole or not at all, and says so."""
    path = arguments.output
    try:
        handle, unfinished = tempfile.mkstemp(dir=path.absolute().parent, prefix=f".{path.name[:40]}-")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(unfinished, 0o644)
        os.replace(unfinished, path)
    except OSError as error:
        raise FigureError(f"cannot write '{path}': {error.strerror or error}") from error
    told = {"file": str(path), "bytes": len(content), "runs": list(recipe.run_ids), "command": command}
    runs = "1 run" if len(recipe.run_ids) == 1 else f"{len(recipe.run_ids)} runs"
    print(json.dumps(told) if arguments.json else f"{path}: {len(content):,} bytes, {runs}")
    return 0


def _list(as_json: bool) -> int:
    if as_json:
        print(json.dumps({name: entry.title for name, entry in CATALOGUE.items()}))
    else:
        print("\n".join(f"{name:<6} {entry.title}" for name, entry in CATALOGUE.items()))
    return 0
