"""How configurations differ, and which runs differ by their seed only."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pandas as pd

from corl_core.config import RunConfig
from corl_core.figures.compare import Group
from corl_core.figures.palette import style
from pages.components.data import Known

NOT_SET = "not set"
BESIDE_THE_CONFIG = {"name", "notes", "preset"}  # what a person calls a run, not what it does


def differences(runs: Sequence[Known], everything: bool = False) -> pd.DataFrame:
    """Config fields as rows and runs as columns; only fields that differ, unless `everything`."""
    table = pd.DataFrame({run.id: pd.Series(_shown(run.config)) for run in runs}, dtype=object)
    table = table.fillna(NOT_SET)
    if not everything:
        table = table[table.nunique(axis=1) > 1]
    names = {run.id: run.label for run in runs}
    return table.rename(columns=names).rename_axis("field").reset_index()


def alone(runs: Sequence[Known], slots: dict[str, int]) -> list[Group]:
    """Each run as a group of one."""
    words = told_apart([_names(run) for run in runs])
    return [Group(label, (run.id,), style(slots[run.id])) for label, run in zip(words, runs, strict=True)]


def by_seed(runs: Sequence[Known], slots: dict[str, int]) -> list[Group]:
    """Runs with the same config but for the seed and the name, in the order of first sight.

    A group takes the name and the colour of its oldest run.
    """
    found: dict[tuple, list[Known]] = {}
    for run in runs:
        found.setdefault(_identity(run.config), []).append(run)
    oldest = [min(members, key=lambda run: run.id) for members in found.values()]
    words = told_apart([_names(run) for run in oldest])
    return [
        Group(label, tuple(run.id for run in members), style(slots[first.id]))
        for label, first, members in zip(words, oldest, found.values(), strict=True)
    ]


def told_apart(choices: Sequence[Sequence[str]]) -> list[str]:
    """One label each: the shortest of its names that no other has.

    Every entry holds its names from the shortest to one that is unique.
    """
    often = Counter(name for names in choices for name in set(names))
    return [next((name for name in names if often[name] == 1), names[-1]) for names in choices]


def _names(run: Known) -> tuple[str, ...]:
    name = run.config.name
    return (name, f"{name}, seed {run.config.seed}", run.label)


def _identity(config: RunConfig) -> tuple:
    flat = config.flat()
    return tuple((key, value) for key, value in flat.items() if key not in BESIDE_THE_CONFIG | {"seed"})


def _shown(config: RunConfig) -> dict[str, Any]:
    return {key: NOT_SET if value is None else str(value) for key, value in config.flat().items()}
