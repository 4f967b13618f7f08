"""Every supervision signal by name: what people call it, and where its targets come from.

This is the one list: the configuration, the trainer and the dashboard read what a method needs from here. The rule itself is
in `rewards/<name>.py`.
"""

from dataclasses import dataclass
from typing import Literal

LabelSource = Literal["peer", "self", "other wording", "teacher", "truth"]


@dataclass(frozen=True)
class Method:
    """A supervision signal. `labels_from` is None when rollouts are rewarded without a pseudo-label."""

    label: str
    about: str
    labels_from: LabelSource | None = None

    @property
    def votes(self) -> bool:
        """Whether votes become targets, so that completions beyond those that are trained on have a use."""
        return self.labels_from not in (None, "truth")


SIGNALS = {
    "corl": Method("Co-RL", "the peer's vote", "peer"),
    "ttrl": Method("TTRL", "the agent's own vote", "self"),
    "ground_truth": Method("Supervised GRPO", "the true answer", "truth"),
    "intuitor": Method("Intuitor", "the agent's self-certainty"),
    "rent": Method("RENT", "low entropy of the agent's tokens"),
    "co_rewarding_1": Method("Co-rewarding-I", "the agent's vote on the same question in other words", "other wording"),
    "co_rewarding_2": Method("Co-rewarding-II", "the vote of the agent's own moving average", "teacher"),
    "random": Method("Random reward", "a coin (control)"),
    "format": Method("Format reward", "one well-formed box (control)"),
}
WEIGHTED = "weighted"
METHODS = SIGNALS | {WEIGHTED: Method("Weighted sum", "a weighted sum of signals")}
METHOD_LABELS = {name: method.label for name, method in METHODS.items()}
