"""An alarm as it is written down, and the kinds there are."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

TITLES = {
    "label_lock_in": "Label lock-in",
    "reward_up_accuracy_down": "Reward up, accuracy down",
    "length_collapse": "Length collapse",
    "length_blow_up": "Length blow-up",
    "entropy_collapse": "Entropy collapse",
    "constant_answer": "One answer for all",
    "zero_signal": "No learning signal",
    "parse_drop": "Answers unreadable",
    "non_finite": "Not a number",
}
KINDS = tuple(TITLES)


@dataclass(frozen=True)
class Alarm:
    """One agent's alarm: raised at `step`, and over at `ended` (None: it lasts)."""

    kind: str
    agent: str
    step: int
    evidence: Mapping[str, float | str]
    text: str
    ended: int | None = None
    uses_truth: bool = False  # it was seen by true answers

    @property
    def title(self) -> str:
        return TITLES.get(self.kind, self.kind)


def alarms_of(lines: Iterable[Mapping[str, Any]]) -> list[Alarm]:
    """The alarms among a cohort's journal lines, one an agent and kind, each with its end where one is written down.

    An alarm that was raised again at an earlier step is that one.
    """
    found: dict[tuple[str, str], Alarm] = {}
    for line in lines:
        if line["event"] == "alarm":
            key = (line["kind"], line["agent"])
            seen = line["evidence"], line["text"]
            found[key] = Alarm(line["kind"], line["agent"], line["step"], *seen, uses_truth=line.get("uses_truth", False))
        elif line["event"] == "alarm_end" and (line["kind"], line["agent"]) in found:
            key = (line["kind"], line["agent"])
            found[key] = replace(found[key], ended=line["step"])
    return list(found.values())
