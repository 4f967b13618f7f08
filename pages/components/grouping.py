"""Which runs become one line: seeds of one config, each run alone, or runs with one value of a config key or tag.

A run keeps its colour for ever, and a group the colour that its oldest run had when it was first seen
(corl_core/figures/palette.py), so a line does not change its colour when others come or go.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence

from corl_core.config import RunConfig
from corl_core.figures.compare import Facts, Group
from corl_core.figures.palette import style
from pages.components import data
from pages.components.actions import method_label
from pages.components.data import Known

BESIDE_THE_CONFIG = {"name", "notes", "preset"}  # what a person calls a run, not what it does
SEEDS, ALONE, TAG = "seeds", "none", "tag:"
WORDS = {SEEDS: "Seeds of one config", ALONE: "Each run"}
UNDEFINED = "undefined"
Tags = Mapping[str, Mapping[str, str]]


def choices(runs: Sequence[Known], tags: Tags) -> dict[str, str]:
    """What the runs can be grouped by, each with its words: first what differs between them."""
    flats = [run.config.flat() for run in runs]
    keys = list(dict.fromkeys(key for flat in flats for key in flat))
    differs = {key for key in keys if len({str(flat.get(key, UNDEFINED)) for flat in flats}) > 1}
    ordered = sorted(keys, key=lambda key: key not in differs)
    named = sorted({f"{TAG}{key}" for own in tags.values() for key in own if not key.startswith("mlflow.")})
    return WORDS | {key: key for key in [*ordered, *named]}


def groups(by: str, runs: Sequence[Known], slots: Mapping[str, int], tags: Tags) -> list[Group]:
    """The groups in the order of first sight."""
    if by == ALONE:
        return alone(runs, slots)
    if by == SEEDS:
        return by_seed(runs, slots)
    found: dict[str, list[Known]] = {}
    for run in runs:
        found.setdefault(_value(run, by, tags), []).append(run)
    name = by.removeprefix(TAG) if by.startswith(TAG) else by.rsplit(".", 1)[-1]
    words = [method_label(value) if by == "method" else f"{name} = {value}" for value in found]
    return _groups(words, {f"{by}={value}": members for value, members in found.items()}, slots)


def alone(runs: Sequence[Known], slots: Mapping[str, int]) -> list[Group]:
    """Each run as a group of one, in the run's own colour."""
    words = told_apart([_names(run) for run in runs])
    return [Group(label, (run.id,), style(slots[run.id])) for label, run in zip(words, runs, strict=True)]


def by_seed(runs: Sequence[Known], slots: Mapping[str, int]) -> list[Group]:
    """Runs with the same config but for the seed and the name; a group takes the name of its oldest run."""
    found: dict[str, list[Known]] = {}
    for run in runs:
        found.setdefault(_identity(run.config), []).append(run)
    words = told_apart([_names(_oldest(members)) for members in found.values()])
    return _groups(words, found, slots)


def facts(runs: Sequence[Known]) -> dict[str, Facts]:
    """What the figures need to know of each run."""
    words = told_apart([_names(run) for run in runs])
    return {
        run.id: Facts(run.config.seed, run.config.grpo.questions_per_step, label)
        for run, label in zip(runs, words, strict=True)
    }


def told_apart(choices: Sequence[Sequence[str]]) -> list[str]:
    """One label each: the shortest of its names that no other has.

    Every entry holds its names from the shortest to one that is unique.
    """
    often = Counter(name for names in choices for name in set(names))
    return [next((name for name in names if often[name] == 1), names[-1]) for names in choices]


def _groups(words: Sequence[str], found: Mapping[str, Sequence[Known]], slots: Mapping[str, int]) -> list[Group]:
    """Groups of these words, from what they share to their runs."""
    names = {shared: hashlib.sha256(shared.encode()).hexdigest()[:16] for shared in found}
    kept = data.group_slots({names[shared]: slots[_oldest(members).id] for shared, members in found.items()})
    return [
        Group(label, tuple(run.id for run in members), style(kept[names[shared]]))
        for label, (shared, members) in zip(words, found.items(), strict=True)
    ]


def _oldest(members: Sequence[Known]) -> Known:
    return min(members, key=lambda run: run.id)


def _value(run: Known, by: str, tags: Tags) -> str:
    if by.startswith(TAG):
        return tags.get(run.id, {}).get(by.removeprefix(TAG)) or UNDEFINED
    value = run.config.flat().get(by)
    return UNDEFINED if value is None or value == "" else str(value)


def _names(run: Known) -> tuple[str, ...]:
    name = run.config.name
    short = (name, f"{name}, seed {run.config.seed}", run.label)
    return (*short, f"{run.label} ({run.id[-4:]})", run.id)


def _identity(config: RunConfig) -> str:
    flat = config.flat()
    return str([(key, value) for key, value in flat.items() if key not in BESIDE_THE_CONFIG | {"seed"}])
