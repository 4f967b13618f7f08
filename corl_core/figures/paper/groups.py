"""Runs to lines: which runs are drawn as one, what the line is called, and its colour."""

from collections import Counter
from collections.abc import Mapping, Sequence

from corl_core.config import RunConfig
from corl_core.figures.compare import Group
from corl_core.figures.errors import FigureError
from corl_core.figures.palette import COLORS, style
from corl_core.figures.spec import Style
from corl_core.methods import METHOD_LABELS

SEEDS, ALONE = "seeds", "none"
UNDEFINED = "undefined"
BESIDE_THE_CONFIG = ("name", "notes", "preset", "seed")


def grouped(configs: Mapping[str, RunConfig], slots: Mapping[str, int], by: str = SEEDS) -> list[Group]:
    """Groups in the order of first sight; `configs` is by run id.

    `by` is 'seeds' (configs that differ by seed, name and notes only are one line), 'none' (each run is one), or a
    config key such as 'method' or 'grpo.learning_rate': runs with the same value are one, those without it 'undefined'.
    A group has the colour of its oldest run, whose id is the smallest; where an earlier group has that colour already, the
    first one that is free, while there is one: a paper's figure must tell its lines apart. Raises FigureError for a key that
    no run has.
    """
    found: dict[object, list[str]] = {}
    for run_id, config in configs.items():
        found.setdefault(_identity(run_id, config, by), []).append(run_id)
    if by not in (SEEDS, ALONE) and configs and not any(by in config.flat() for config in configs.values()):
        raise FigureError(f"group={by!r} is no config key of these runs; give seeds, none, or a key such as method")
    oldest = [min(run_ids) for run_ids in found.values()]
    labels = _labels(oldest, configs) if by in (SEEDS, ALONE) else [_value_label(by, str(value)) for value in found]
    styles = _told_apart([slots.get(first, place) for place, first in enumerate(oldest)])
    groups = zip(labels, found.values(), styles, strict=True)
    return [Group(label, tuple(run_ids), look) for label, run_ids, look in groups]


def _told_apart(slots: Sequence[int]) -> list[Style]:
    """A style for each slot, no two of one colour while there are colours left; the dash stays that of the slot."""
    taken: list[int] = []
    for slot in slots:
        colour = slot % len(COLORS)
        free = [each for each in range(len(COLORS)) if each not in {other % len(COLORS) for other in taken}]
        taken.append(slot if colour in free or not free else slot - colour + free[0])
    return [style(slot) for slot in taken]


def _identity(run_id: str, config: RunConfig, by: str) -> object:
    if by == ALONE:
        return run_id
    flat = config.flat()
    if by == SEEDS:
        return tuple((key, str(value)) for key, value in flat.items() if key not in BESIDE_THE_CONFIG)
    value = flat.get(by)
    return UNDEFINED if value is None or value == "" else str(value)


def _value_label(by: str, value: str) -> str:
    return METHOD_LABELS.get(value, value) if by == "method" else f"{by.rpartition('.')[2]} = {value}"


def _labels(run_ids: Sequence[str], configs: Mapping[str, RunConfig]) -> list[str]:
    """The shortest of name; name and seed; name and id that no other has."""
    choices = []
    for run_id in run_ids:
        name = configs[run_id].name
        choices.append((name, f"{name}, seed {configs[run_id].seed}", f"{name}, {run_id}"))
    often = Counter(word for words in choices for word in words)
    return [next((word for word in words if often[word] == 1), words[-1]) for words in choices]
