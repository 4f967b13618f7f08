"""All that a person may set of a file, the command that makes it again, and the file itself.

The page and the command line both make a `Recipe`, so the command that a page shows makes the same bytes.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields

import pandas as pd

from corl_core.config import RunConfig
from corl_core.figures.bars import Bars
from corl_core.figures.compare import Group
from corl_core.figures.errors import FigureError
from corl_core.figures.export import ALL_FORMATS, export, to_csv
from corl_core.figures.grouping import SEEDS
from corl_core.figures.paper import table
from corl_core.figures.paper.catalogue import TABLE, draw, find, keys
from corl_core.figures.paper.dynamics import Choice
from corl_core.figures.paper.groups import grouped
from corl_core.figures.spec import Figure
from corl_core.figures.stamp import Stamp
from corl_core.figures.venues import Look, look

PROGRAM = ("python", "-m", "corl_core")
BESIDE_THE_OPTIONS = ("figure", "run_ids")


@dataclass(frozen=True)
class Recipe:
    """One file's making. Sizes in inches; None is the venue's own."""

    figure: str
    run_ids: tuple[str, ...]
    group: str = SEEDS
    smooth: float = 0.8
    center: str = "mean"
    spread: str = "std"
    members: bool = False
    agent: str = ""
    overlap: str = "kappa"
    ylim: tuple[float, float] | None = None
    venue: str = "neurips"
    span: str = "column"
    width: float | None = None
    height: float | None = None
    dpi: int = 300
    font: str = "sans"
    title: bool = False

    @property
    def choice(self) -> Choice:
        """What the drawing of the figure depends on."""
        return Choice(self.smooth, self.center, self.spread, self.members, self.agent, self.ylim, self.overlap)

    @property
    def look(self) -> Look:
        """The file's size and type. Raises FigureError."""
        return look(self.venue, self.span, self.width, self.height, self.dpi, self.font, self.title)

    @property
    def keys(self) -> list[str]:
        """What reader.history is to be asked for. Raises FigureError for an unknown figure."""
        return keys([self.figure], self.choice)

    def command(self, file: str, verb: str = "figure") -> str:
        """The command line that makes the file; options that keep their default are left out."""
        first = [self.figure] if verb == "figure" else []
        return shlex.join([*PROGRAM, verb, *first, *self.run_ids, *self.options(), "-o", file])

    def options(self) -> list[str]:
        """The options that differ from their default, as on the command line."""
        words: list[str] = []
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in BESIDE_THE_OPTIONS or value == field.default:
                continue
            many = value if isinstance(value, tuple) else [] if value is True else [value]
            words += [f"--{field.name}", *map(_word, many)]
        return words


def _word(value: object) -> str:
    """A value as an argument, short where that loses nothing."""
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)


@dataclass(frozen=True)
class Source:
    """What a file is made from: the history of its runs, their configs by id, and their colour slots."""

    history: pd.DataFrame
    configs: Mapping[str, RunConfig]
    slots: Mapping[str, int]

    def groups(self, recipe: Recipe) -> list[Group]:
        """The lines of the figure. Raises FigureError for an agent or a config key that no run has."""
        chosen = {run_id: self.configs[run_id] for run_id in recipe.run_ids}
        names = list(dict.fromkeys(agent.name for config in chosen.values() for agent in config.agents))
        if recipe.agent and recipe.agent not in names:
            raise FigureError(f"agent={recipe.agent!r} is in none of these runs; choose one of {', '.join(names)}")
        return grouped(chosen, self.slots, recipe.group)


def figure(recipe: Recipe, source: Source) -> Figure | Bars:
    """The figure that the recipe asks for; it may be empty. Raises FigureError."""
    chosen = {run_id: source.configs[run_id] for run_id in recipe.run_ids}
    return draw(recipe.figure, source.history, source.groups(recipe), chosen, recipe.choice)


def file_content(recipe: Recipe, source: Source, file: str) -> bytes:
    """The content of a file of this name; its suffix says the format. Raises FigureError, also when there is nothing in it."""
    kind = kind_of(file, recipe.figure)
    stamp = Stamp(title(recipe), recipe.command(file), recipe.run_ids)
    if recipe.figure == TABLE:
        groups = source.groups(recipe)
        if kind == "tex":
            return table.tex(source.history, groups, stamp, recipe.agent)
        return to_csv(table.frame(source.history, groups, recipe.agent), stamp)
    drawn = figure(recipe, source)
    if drawn.empty:
        wanted = ", ".join(recipe.keys)
        raise FigureError(f"figure {recipe.figure} has nothing to draw: these runs have no values of {wanted} yet")
    return drawn_content(drawn, recipe, file)


def drawn_content(drawn: Figure | Bars, recipe: Recipe, file: str) -> bytes:
    """A file of a figure that is drawn already."""
    stamp = Stamp(title(recipe), recipe.command(file), recipe.run_ids)
    return export(drawn, kind_of(file, recipe.figure), recipe.look, stamp)


def kind_of(file: str, name: str) -> str:
    """The format that a file's suffix names. Raises FigureError for one that this figure can't have."""
    kind = file.rpartition(".")[2].lower() if "." in file else ""
    allowed: Sequence[str] = ("tex", "csv") if find(name).name == TABLE else ALL_FORMATS
    if kind not in allowed:
        raise FigureError(f"output '{file}' has no known suffix for figure {name}; use one of .{', .'.join(allowed)}")
    return kind


def title(recipe: Recipe) -> str:
    """What the file is called in its metadata."""
    entry = find(recipe.figure)
    return entry.title if entry.name == TABLE else f"Figure {entry.name}: {entry.title}"


def file_stem(name: str) -> str:
    """A figure's file name without its suffix, as in 2a-agreement."""
    return find(name).slug if name == TABLE else f"{name}-{find(name).slug}"
