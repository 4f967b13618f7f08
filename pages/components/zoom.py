"""The part of each chart that is looked at, kept in the link: zoom=agreement:10,20,,;reward:,,0.1,0.4

A chart's name, then x from and to, y from and to; two that are empty are the whole range. Streamlit knows nothing of a
chart's axes, so it is ours to write and to check.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass

import streamlit as st

from pages.components import link
from pages.components.boundary import told

KEY = "zoom"
DIFFERENCE = ".difference"  # after a metric's name: the chart of its differences from the baseline
Range = tuple[float, float]


@dataclass(frozen=True)
class Box:
    """What is looked at: x and y ranges; None is the whole."""

    x: Range | None
    y: Range | None


def boxes() -> dict[str, Box]:
    """Chart → what is looked at, as the link says; what can't be read is left out."""
    return {name: box for _, name, box in _parts() if name and box}


def check(names: Collection[str]) -> None:
    """Notes what the link asks for and can't be shown: no range, or of a chart that is not among `names`."""
    for part, name, box in _parts():
        if box is None or name.removesuffix(DIFFERENCE) not in names:
            link.note(f"Zoom: the link asks for “{part[:80]}”, which is no range of a chart here; the whole curve is shown.")


def _parts() -> list[tuple[str, str, Box | None]]:
    """Each part of the link's zoom, with its name and box."""
    parts = [part for part in st.query_params.get(KEY, "").split(";") if part]
    return [(part, part.rpartition(":")[0], parse(part.rpartition(":")[2])) for part in parts]


def parse(text: str) -> Box | None:
    """A box of four numbers with commas, None for anything else."""
    parts = text.split(",")
    if len(parts) != 4:
        return None
    try:
        numbers = [float(part) if part else None for part in parts]
    except ValueError:
        return None
    x, y = _range(*numbers[:2]), _range(*numbers[2:])
    bad = any(pair is None and any(part is not None for part in half) for pair, half in ((x, numbers[:2]), (y, numbers[2:])))
    return None if bad or (x is None and y is None) else Box(x, y)


def _range(low: float | None, high: float | None) -> Range | None:
    ordered = low is not None and high is not None and math.isfinite(low) and math.isfinite(high) and low < high
    return (low, high) if ordered else None


@told
def follow(name: str, widget: str) -> None:
    """For a chart's callback: writes what it is zoomed to into the link."""
    now = boxes()
    now.pop(name, None)
    state = st.session_state.get(widget) or {}
    if (seen := state.get("zoom")) is not None:
        x, y = seen.get("x"), seen.get("y")
        now[name] = Box(tuple(map(float, x)) if x else None, tuple(map(float, y)) if y else None)
    write(now)


@told
def forget() -> None:
    """For the callback of what changes an axis: every chart shows its whole range again."""
    write({})


def write(now: dict[str, Box]) -> None:
    """Puts the boxes into the link."""
    parts = [f"{name}:{_words(box.x)},{_words(box.y)}" for name, box in now.items() if box.x or box.y]
    if parts:
        st.query_params[KEY] = ";".join(parts)
    elif KEY in st.query_params:
        del st.query_params[KEY]


def _words(pair: Range | None) -> str:
    return "," if pair is None else f"{pair[0]:.6g},{pair[1]:.6g}"
