"""The sections of a run's configuration that belong to supervision signals and alarms."""

from typing import Any, Literal

from pydantic import Field, field_validator

from corl_core.alarms.record import KINDS
from corl_core.alarms.seen import MIN_STEPS, WINDOW
from corl_core.config_sections_base import Strict
from corl_core.methods import SIGNALS

SignalName = Literal[tuple(SIGNALS)]
AlarmKind = Literal[KINDS]


class SignalConfig(Strict):
    """Settings of single supervision signals."""

    weights: dict[SignalName, float] | None = Field(
        None,
        description="For method 'weighted': signal → weight of its reward in the sum, e.g. {corl: 1, format: 0.1}. "
        "Its first signal with pseudo-labels names the label that is recorded.",
    )
    no_answer_reward: float | None = Field(
        None,
        description="RENT: reward of a completion without a parsed answer (its released 'format' experiment has -7). "
        "None: by its entropy, like any other.",
    )
    random_frac: float = Field(0.5, gt=0, lt=1, description="Random reward: chance that a completion is rewarded.")
    alpha_start: float = Field(
        0.01, ge=0, le=1, description="Co-rewarding-II: share of the agent mixed into its teacher at each step, at first."
    )
    alpha_end: float = Field(1e-5, ge=0, le=1, description="Co-rewarding-II: the same share at the last step (cosine between).")

    @field_validator("weights")
    @classmethod
    def _weights_weigh(cls, value: dict[str, float] | None) -> dict[str, float] | None:
        if value is not None and not any(value.values()):
            raise ValueError(f"weights={value}: at least one signal needs a weight other than 0; signals: {', '.join(SIGNALS)}")
        return value


class AlarmConfig(Strict):
    """What happens when a run shows a sign of collapse; each alarm's threshold stands with its definition in `alarms/`."""

    action: Literal["off", "warn", "checkpoint", "stop"] = Field(
        "warn",
        description="When an alarm goes off: nothing (off), say so (warn), save the weights too (checkpoint), or also end "
        "the run (stop; an alarm that was seen by true answers ends supervised runs alone).",
    )
    window: int = Field(WINDOW, ge=MIN_STEPS, description="Steps that an alarm looks back on.")
    ignore: list[AlarmKind] = Field(default_factory=list, description="Kinds that are not watched for.")

    @field_validator("action", mode="before")
    @classmethod
    def _off_is_a_word(cls, value: Any) -> Any:
        return "off" if value is False else value  # YAML reads a bare off as false
