"""Colours, dashes and markers, and which slot belongs to whom.

The colours are Okabe and Ito's colour-blind safe set without its yellow, which is too pale
for a line on white. A slot is a number that belongs to an agent (its place in the run's
config) or to a run (the order in which runs were first seen, kept in a file, so that a
run's colour survives the deletion of another run). A group of runs takes the slot of its oldest run
when it is first seen and keeps it too, whichever of its runs are looked at later.
"""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from filelock import FileLock

from corl_core.figures.spec import Style

COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#000000", "#56B4E9")
INK_SLOT = COLORS.index("#000000")
MARKERS = ("circle", "square", "diamond", "triangle-up", "cross", "triangle-down", "pentagon")
DASHES = ("solid", "dash", "dot", "dashdot")
SLOTS_FILE = "colours.json"
GROUP = "group:"  # before the name of a group in the file; a run id has no colon


def style(slot: int) -> Style:
    """The style of a slot. 28 slots differ in colour or dash, and 196 in colour, dash or marker; then they repeat."""
    color = slot % len(COLORS)
    dash = slot // len(COLORS) % len(DASHES)
    turn = slot // (len(COLORS) * len(DASHES))
    return Style(COLORS[color], DASHES[dash], MARKERS[(color + turn) % len(MARKERS)])


def agent_styles(agents: Iterable[str]) -> dict[str, Style]:
    """Each agent's style by its place in the run's config."""
    return {agent: style(slot) for slot, agent in enumerate(agents)}


def run_slots(runs_dir: Path, run_ids: Iterable[str]) -> dict[str, int]:
    """The slot of each run, given out in order of run id at first sight and then kept.

    Run ids open with their start time, so the order is the order of starting. In a folder
    that can't be written, slots hold only as long as no run is deleted.
    """
    known = _read_slots(runs_dir / SLOTS_FILE)
    if new := sorted(set(run_ids) - known.keys()):
        first = max((slot for name, slot in known.items() if not name.startswith(GROUP)), default=-1) + 1
        known = _keep(runs_dir, {run_id: first + place for place, run_id in enumerate(new)})
    return known


def group_slots(runs_dir: Path, oldest: Mapping[str, int]) -> dict[str, int]:
    """The slot of each group: the one given here, of its oldest run, at first sight, and then kept."""
    known = _read_slots(runs_dir / SLOTS_FILE)
    if new := {GROUP + name: slot for name, slot in oldest.items() if GROUP + name not in known}:
        known = _keep(runs_dir, new)
    return {name: known[GROUP + name] for name in oldest}


def _keep(runs_dir: Path, new: Mapping[str, int]) -> dict[str, int]:
    """Adds slots to the file; what another process has given out meanwhile stays."""
    path = runs_dir / SLOTS_FILE
    try:
        with FileLock(runs_dir / f".{SLOTS_FILE}.lock", timeout=5):
            known = dict(new) | _read_slots(path)
            _write_slots(path, known)
    except OSError:  # a folder that can't be written; a lock that nobody gives back is a TimeoutError, which is one
        known = dict(new) | _read_slots(path)
    return known


def _read_slots(path: Path) -> dict[str, int]:
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(stored, dict):
        return {}
    return {str(key): slot for key, slot in stored.items() if isinstance(slot, int)}


def _write_slots(path: Path, slots: dict[str, int]) -> None:
    try:
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".colours-")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(slots, file, indent=0)
        os.replace(name, path)
    except OSError:
        return
