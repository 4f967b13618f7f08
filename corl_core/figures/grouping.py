"""Which runs become one line, and what the line is called."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from corl_core.config import RunConfig
from corl_core.methods import METHOD_LABELS

SEEDS, ALONE, TAG = "seeds", "none", "tag:"
UNDEFINED = "undefined"
BESIDE_THE_CONFIG = {"name", "notes", "preset", "seed"}  # what a person calls a run, and what repeats it
Tags = Mapping[str, Mapping[str, str]]  # run id → its tags


@dataclass(frozen=True)
class Party:
    """Runs that are one line. `shared` is what they have in common, as text that no other line has."""

    shared: str
    label: str
    run_ids: tuple[str, ...]

    @property
    def oldest(self) -> str:
        return min(self.run_ids)


def parted(
    configs: Mapping[str, RunConfig], by: str = SEEDS, tags: Tags | None = None, names: Mapping[str, Sequence[str]] | None = None
) -> list[Party]:  # fmt: skip
    """The lines in the order of first sight; `configs` is by run id.

    `by` is 'seeds' (configs that differ by seed, name and notes only are one line), 'none' (each run is one), a config key such
    as 'method' or 'grpo.learning_rate', or 'tag:KEY': runs with the same value are one, those without it 'undefined'.
    `names` are what each run may be called, from the shortest to one that is unique.
    """
    found: dict[str, list[str]] = {}
    for run_id, config in configs.items():
        found.setdefault(_shared(run_id, config, by, (tags or {}).get(run_id, {})), []).append(run_id)
    if by in (SEEDS, ALONE):
        called = names or {run_id: _names(run_id, config) for run_id, config in configs.items()}
        labels = told_apart([called[min(run_ids)] for run_ids in found.values()])
    else:
        labels = [_value_label(by, shared.removeprefix(f"{by}=")) for shared in found]
    return [Party(shared, label, tuple(ids)) for label, (shared, ids) in zip(labels, found.items(), strict=True)]


def told_apart(choices: Sequence[Sequence[str]]) -> list[str]:
    """One label each: the shortest of its names that no other has.

    Every entry holds its names from the shortest to one that is unique.
    """
    often = Counter(name for names in choices for name in set(names))
    return [next((name for name in names if often[name] == 1), names[-1]) for names in choices]


def _shared(run_id: str, config: RunConfig, by: str, tags: Mapping[str, str]) -> str:
    if by == ALONE:
        return run_id
    flat = config.flat()
    if by == SEEDS:
        return str([(key, value) for key, value in flat.items() if key not in BESIDE_THE_CONFIG])
    value = tags.get(by.removeprefix(TAG)) if by.startswith(TAG) else flat.get(by)
    return f"{by}={UNDEFINED if value is None or value == '' else value}"


def _value_label(by: str, value: str) -> str:
    if by == "method":
        return METHOD_LABELS.get(value, value)
    return f"{by.removeprefix(TAG) if by.startswith(TAG) else by.rpartition('.')[2]} = {value}"


def _names(run_id: str, config: RunConfig) -> tuple[str, ...]:
    return config.name, f"{config.name}, seed {config.seed}", f"{config.name}, {run_id}"
