"""Compare: what runs can be grouped by, and the groups in their lasting colours.

A run keeps its colour for ever, and a group the colour that its oldest run had when it was first seen
(corl_core/figures/palette.py), so a line does not change its colour when others come or go.
"""

import hashlib
from collections.abc import Mapping, Sequence

from corl_core.figures.compare import Facts, Group
from corl_core.figures.grouping import ALONE, SEEDS, TAG, UNDEFINED, Tags, parted, told_apart
from corl_core.figures.palette import style
from pages.components import data
from pages.components.data import Known

WORDS = {SEEDS: "Seeds of one config", ALONE: "Each run"}


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
    found = parted({run.id: run.config for run in runs}, by, tags, {run.id: _names(run) for run in runs})
    if by == ALONE:
        return [Group(party.label, party.run_ids, style(slots[party.oldest])) for party in found]
    digests = [hashlib.sha256(party.shared.encode()).hexdigest()[:16] for party in found]
    kept = data.group_slots({digest: slots[party.oldest] for digest, party in zip(digests, found, strict=True)})
    pairs = zip(digests, found, strict=True)
    return [Group(party.label, party.run_ids, style(kept[digest])) for digest, party in pairs]


def facts(runs: Sequence[Known]) -> dict[str, Facts]:
    """What the figures need to know of each run."""
    words = told_apart([_names(run) for run in runs])
    return {
        run.id: Facts(run.config.seed, run.config.grpo.questions_per_step, label, run.status.attempt_step)
        for run, label in zip(runs, words, strict=True)
    }


def _names(run: Known) -> tuple[str, ...]:
    name = run.name
    short = (name, f"{name}, seed {run.config.seed}", run.label)
    return (*short, f"{run.label} ({run.id[-4:]})", run.id)
