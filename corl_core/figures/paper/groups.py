"""Runs to the lines of a paper's figure: its lines must be told apart by colour."""

from collections.abc import Mapping, Sequence

from corl_core.config import RunConfig
from corl_core.figures.compare import Group
from corl_core.figures.errors import FigureError
from corl_core.figures.grouping import ALONE, SEEDS, parted
from corl_core.figures.palette import COLORS, style
from corl_core.figures.spec import Style


def grouped(configs: Mapping[str, RunConfig], slots: Mapping[str, int], by: str = SEEDS) -> list[Group]:
    """Groups as in `grouping.parted`, by seeds, none, or a config key. Raises FigureError for a key that no run has.

    A group has the colour of its oldest run, whose id is the smallest; where an earlier group has that colour already, the
    first one that is free, while there is one.
    """
    if by not in (SEEDS, ALONE) and configs and not any(by in config.flat() for config in configs.values()):
        raise FigureError(f"group={by!r} is no config key of these runs; give seeds, none, or a key such as method")
    found = parted(configs, by)
    styles = _told_apart([slots.get(party.oldest, place) for place, party in enumerate(found)])
    return [Group(party.label, party.run_ids, look) for party, look in zip(found, styles, strict=True)]


def _told_apart(slots: Sequence[int]) -> list[Style]:
    """A style for each slot, no two of one colour while there are colours left; the dash stays that of the slot."""
    taken: list[int] = []
    for slot in slots:
        colour = slot % len(COLORS)
        free = [each for each in range(len(COLORS)) if each not in {other % len(COLORS) for other in taken}]
        taken.append(slot if colour in free or not free else slot - colour + free[0])
    return [style(slot) for slot in taken]
