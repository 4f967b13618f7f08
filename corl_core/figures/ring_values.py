"""What the arrows of a ring show at a step, out of a run's history."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

WINDOW = 25  # steps up to the one looked at: a step has too few questions for a share


@dataclass(frozen=True)
class Reading:
    """An arrow's numbers; None: not known (no ground truth, nothing voted yet)."""

    agreement: float | None = None  # of the two agents' votes; None for an agent's own
    accuracy: float | None = None  # of the pseudo-labels that it carries

    @property
    def numbers(self) -> list[str]:
        shown = (("agree", self.agreement), ("right", self.accuracy))
        return [f"{value:.0%} {word}" for word, value in shown if value is not None]


def ring_readings(history: pd.DataFrame, peers: Mapping[str, str], step: int, window: int = WINDOW) -> dict[str, Reading]:
    """taker → the reading of the arrow that points to it: means over the last `window` steps up to `step`."""
    recent = history[(history["step"] <= step) & (history["step"] > step - window)]
    means = recent.groupby(["agent", "metric"])["value"].mean()
    readings = {}
    for taker, giver in peers.items():
        pair = (means.get(("", f"agreement/{name}")) for name in (f"{giver}.{taker}", f"{taker}.{giver}"))
        agreement = next((value for value in pair if value is not None), None) if taker != giver else None
        readings[taker] = Reading(_known(agreement), _known(means.get((taker, "pseudo_label_accuracy"))))
    return {taker: reading for taker, reading in readings.items() if reading.numbers}


def _known(value: float | None) -> float | None:
    return None if value is None or pd.isna(value) else float(value)
