"""Which figures of the paper there are, what each is called, and what it reads from the store."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from corl_core.config import RunConfig
from corl_core.figures.bars import Bars
from corl_core.figures.compare import Group
from corl_core.figures.errors import FigureError
from corl_core.figures.paper import dynamics, table
from corl_core.figures.paper.dynamics import Choice
from corl_core.figures.paper.overlap import error_overlap
from corl_core.figures.seeds import CENTERS, SPREADS
from corl_core.figures.spec import Figure

TABLE = "table"
OVERLAPS = ("kappa", "jaccard", "same_wrong", "both_wrong")


@dataclass(frozen=True)
class Entry:
    """A figure of the paper. `metrics` are read as they are, `pairs` for every pair of agents."""

    name: str
    slug: str  # in file names
    title: str
    draw: Callable[[pd.DataFrame, Sequence[Group], Choice], Figure] | None = None  # None: not over training
    metrics: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    smoothed: bool = False  # whether smoothing changes it


_ENTRIES = [
    Entry("2a", "agreement", "Agreement", dynamics.agreement, ("agreement",), smoothed=True),
    Entry("2b", "pseudo-labels", "Accuracy of the pseudo-labels received", dynamics.pseudo_labels, ("pseudo_label_accuracy",),
          smoothed=True),
    Entry("2c", "evaluation", "Evaluation", dynamics.evaluation, ("eval/accuracy",)),
    Entry("2d", "error-overlap", "Error overlap before RL"),
    Entry("4a", "accuracy", "Validation accuracy", dynamics.evaluation, ("eval/accuracy",)),
    Entry("4b", "reward-std", "Reward std, relative to its first step", dynamics.reward_std, ("reward_std",), smoothed=True),
    Entry("4c", "length", "Completion length", dynamics.completion_length, ("completions/mean_length",), smoothed=True),
    Entry("5a", "agents-accuracy", "Accuracy of each agent", dynamics.agents_accuracy, ("eval/accuracy",)),
    Entry("5b", "agents-agreement", "Agreement of each pair", dynamics.agents_agreement, pairs=("agreement",), smoothed=True),
    Entry("5c", "agents-pseudo-labels", "Accuracy of the pseudo-labels each agent receives", dynamics.agents_pseudo_labels,
          ("pseudo_label_accuracy",), smoothed=True),
    Entry(TABLE, "results", "Table of results", metrics=tuple(table.KEYS)),
]  # fmt: skip
CATALOGUE: dict[str, Entry] = {entry.name: entry for entry in _ENTRIES}
DRAWN = tuple(name for name in CATALOGUE if name != TABLE)


def find(name: str) -> Entry:
    """The figure of that name. Raises FigureError."""
    if name not in CATALOGUE:
        raise FigureError(f"figure {name!r} is not known; choose one of {', '.join(CATALOGUE)}")
    return CATALOGUE[name]


def keys(names: Sequence[str], choice: Choice) -> list[str]:
    """What these figures read: keys of reader.history, each once."""
    found: list[str] = []
    for entry in map(find, names):
        found += [*entry.metrics, *(f"{metric}/*" for metric in entry.pairs)]
        found += [f"eval/error_overlap/{choice.overlap}/*"] if entry.name == "2d" else []
    return list(dict.fromkeys(found))


def draw(
    name: str, history: pd.DataFrame, groups: Sequence[Group], configs: Mapping[str, RunConfig], choice: Choice
) -> Figure | Bars:  # fmt: skip
    """The figure, which may be empty. Raises FigureError for an unknown name or measure, and for the table."""
    entry = find(name)
    for field, known in (("overlap", OVERLAPS), ("center", CENTERS), ("spread", SPREADS)):
        if getattr(choice, field) not in known:
            raise FigureError(f"{field}={getattr(choice, field)!r} is not known; choose one of {', '.join(known)}")
    if not 0 <= choice.smoothing < 1:
        raise FigureError(f"smooth={choice.smoothing:g} is outside 0 to 1; give 0 for the values as they are, or less than 1")
    if entry.draw is not None:
        agents = dict.fromkeys(agent.name for config in configs.values() for agent in config.agents)
        return entry.draw(history, groups, replace(choice, agents=tuple(agents)))
    if entry.name == TABLE:
        raise FigureError("the table is no drawing; write it as .tex or .csv")
    return error_overlap(history, configs, choice)
