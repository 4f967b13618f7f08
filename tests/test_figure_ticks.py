"""Where the x axis counts, its ticks are whole numbers."""

import re

import numpy as np
import pytest

from corl_core.figures import palette
from corl_core.figures.export import export
from corl_core.figures.spec import Figure, Series


def ticks(x: list[float]) -> set[str]:
    """The numbers in the file below an axis of y from 7 to 8, which has none of x's."""
    line = Series("a", np.array(x, float), np.linspace(7, 8, len(x)), palette.style(0))
    svg = export(Figure("reward", "Reward", "Step", "Reward", (line,), (7, 8)), "svg").decode()
    return {text for text in re.findall(r">([\d.]+)<", svg) if not 6.5 < float(text) < 8.5}


@pytest.mark.parametrize("last", [1, 3, 10, 14, 37, 600])
def test_steps_are_whole_numbers(last):
    found = ticks(list(range(last + 1)))
    assert {"0"} < found and not [text for text in found if "." in text]


def test_hours_are_not():
    assert [text for text in ticks([0.0, 0.4, 1.3]) if "." in text]
