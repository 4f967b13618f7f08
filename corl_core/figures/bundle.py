"""A zip to share: figures, their data, the runs' configs and metrics, a sample of votes, and a page that shows them all.

    index.html             opens without a server, asks none for anything, and holds no script
    figures/*.pdf svg png  every figure of the paper for which these runs have values
    data/*.csv             the numbers of each figure, and of each run everything that was logged
    results.tex, .csv      the table of results
    configs/*.yaml         the configuration of each run, with nothing changed: model and data paths stand in it
    votes/*.jsonl, .csv    whole groups of rollouts at steps spread evenly over each run

File names are ours or letters, digits, '.', '_' and '-'. Every file has the date 1980-01-01, so that the same command on the
same runs gives the same bytes.
"""

import io
import json
import shlex
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath

import pandas as pd

from corl_core.figures.bundle_index import Shown, index_html
from corl_core.figures.bundle_votes import Votes, read_votes
from corl_core.figures.errors import FigureError
from corl_core.figures.export import to_csv
from corl_core.figures.paper import table
from corl_core.figures.paper.catalogue import DRAWN, TABLE
from corl_core.figures.paper.recipe import PROGRAM, Recipe, Source, drawn_content, figure, file_content, file_stem, title
from corl_core.figures.stamp import Stamp
from corl_core.figures.text import for_file_name
from corl_core.runs.folder import Run

QUESTIONS = 20  # in each run's sample of votes
MOST_QUESTIONS = 500
DATE = (1980, 1, 1, 0, 0, 0)
KINDS = ("pdf", "svg", "png")

Add = Callable[[str, bytes], None]  # a file's name inside the folder, and its content


def command(recipe: Recipe, file: str, questions: int = QUESTIONS) -> str:
    """The command line that makes the bundle."""
    words = [*PROGRAM, "bundle", *recipe.run_ids, *recipe.options()]
    words += [] if questions == QUESTIONS else ["--questions", str(questions)]
    return shlex.join([*words, "-o", file])


def bundle(recipe: Recipe, source: Source, runs: Sequence[Run], file: str, questions: int = QUESTIONS) -> bytes:
    """The zip's content. `recipe` says how the figures look; which figure it names does not matter. Raises FigureError."""
    if not 0 <= questions <= MOST_QUESTIONS:
        raise FigureError(f"questions={questions} is outside 0 to {MOST_QUESTIONS}; give another number of questions")
    stamp = Stamp("Share bundle", command(recipe, file, questions), recipe.run_ids)
    names = _file_names(runs)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        add = partial(_add, archive, for_file_name(PurePath(file).stem, "bundle"))
        shown = [one for one in (_figure(replace(recipe, figure=name), source, add) for name in DRAWN) if one is not None]
        results = _results(replace(recipe, figure=TABLE), source, add)
        votes = {run.id: _of_run(run, names[run.id], source, questions, stamp, add) for run in runs}
        add("index.html", index_html(stamp, runs, names, shown, results, votes))
    return buffer.getvalue()


def _figure(recipe: Recipe, source: Source, add: Add) -> Shown | None:
    """Adds one figure in every format; None when these runs have nothing to draw."""
    drawn = figure(recipe, source)
    if drawn.empty:
        return None
    stem = file_stem(recipe.figure)
    for kind in KINDS:
        add(f"figures/{stem}.{kind}", drawn_content(drawn, recipe, f"{stem}.{kind}"))
    add(f"data/{stem}.csv", drawn_content(drawn, recipe, f"{stem}.csv"))
    return Shown(stem, title(recipe), recipe.command(f"{stem}.pdf"))


def _results(recipe: Recipe, source: Source, add: Add) -> pd.DataFrame | None:
    """Adds the table of results; None when nothing was evaluated."""
    try:
        shown = table.text(source.history, source.groups(recipe), recipe.agent)
    except FigureError:
        return None
    for kind in ("tex", "csv"):
        add(f"results.{kind}", file_content(recipe, source, f"results.{kind}"))
    return shown


def _of_run(run: Run, name: str, source: Source, questions: int, stamp: Stamp, add: Add) -> Votes:
    """Adds a run's config, its metrics and its sample of votes."""
    add(f"configs/{name}.yaml", (run.path / "run.yaml").read_bytes())
    logged = source.history[source.history["run_id"] == run.id]
    kept = [column for column in ("run_id", "agent", "metric", "step", "value", "time") if column in logged]
    add(f"data/run-{name}.csv", to_csv(logged[kept], stamp))
    votes = read_votes(run, questions)
    if votes.rows:
        lines = (json.dumps(row, ensure_ascii=False) for row in votes.rows)
        add(f"votes/{name}.jsonl", ("\n".join(lines) + "\n").encode())
        add(f"votes/{name}.csv", to_csv(votes.frame, stamp))
    return votes


def _file_names(runs: Sequence[Run]) -> dict[str, str]:
    """A safe name for each run, no two alike on a disk that takes capitals for small letters."""
    names: dict[str, str] = {}
    taken: set[str] = set()
    for run in runs:
        base = name = for_file_name(run.id, "run")
        count = 1
        while name.casefold() in taken:
            count += 1
            name = f"{base}-{count}"
        taken.add(name.casefold())
        names[run.id] = name
    return names


def _add(archive: zipfile.ZipFile, folder: str, name: str, content: bytes) -> None:
    entry = zipfile.ZipInfo(f"{folder}/{name}", DATE)
    entry.external_attr = 0o644 << 16
    entry.compress_type = zipfile.ZIP_DEFLATED
    archive.writestr(entry, content)
