"""What a run has spent by each of its values: the x axes on which runs are compared.

  step       updates done
  questions  step × questions a step; every agent of a cohort is asked the same questions
  time       seconds since the run's first value, pauses of a resumed run included
  tokens     prompt and completion tokens, summed over the agents of the cohort
  compute    seconds of each step, summed over its agents: what the cohort costs against what one agent costs. It counts
             every agent's own clock, waiting included, so it is GPU seconds only where each agent has a GPU to itself

A value of a training step stands at what was spent when the step had ended; a held-out value at `step` was measured before
that step, and stands at what the steps before it cost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from corl_core.figures.lines import RunLine
from corl_core.figures.spec import Array


@dataclass(frozen=True)
class Axis:
    """`words` is how a person chooses it, `title` stands under it, `keys` are the metrics it is made of."""

    words: str
    title: str
    keys: tuple[str, ...] = ()


AXES = {
    "step": Axis("Step", "Step (updates)"),
    "questions": Axis("Questions", "Questions seen"),
    "time": Axis("Wall time", "Wall time (s)", ("step_time_s",)),
    "tokens": Axis("Tokens", "Tokens (sum over agents)", ("tokens",)),
    "compute": Axis("Agent-seconds", "Agent-seconds (step time, sum over agents)", ("step_time_s",)),
}


def positions(axis: str, spent: Mapping[str, RunLine], metric: str, line: RunLine, questions_per_step: int) -> Array:
    """Where each value of one run's line stands on the axis (shape [num_steps]); NaN where its cost was not logged.

    `spent` holds this run's lines of the axis' key by agent.
    """
    if axis == "step":
        return line.steps
    if axis == "questions":
        return line.steps * questions_per_step
    agents = [own for agent, own in spent.items() if agent or len(spent) == 1]
    if axis == "time":
        return line.times - _start(agents, line.times)
    if not agents:
        return np.full(len(line.steps), np.nan)
    side = "left" if metric.startswith("eval/") else "right"
    return sum(_spent(own, line.steps, side, added_up=axis == "compute") for own in agents)


def _start(agents: Sequence[RunLine], times: Array) -> float:
    """When the run began its first step, or its first value where step times were not logged."""
    began = [float(own.times[0] - own.values[0]) for own in agents if np.isfinite(own.values[0])]
    return min([*began, float(times.min())]) if len(times) else 0.0


def _spent(own: RunLine, steps: Array, side: str, added_up: bool) -> Array:
    """What one agent had spent by the end of its last step up to these (side "right") or before them ("left")."""
    values = np.nan_to_num(own.values)
    total = np.concatenate([[0.0], np.cumsum(values) if added_up else values])
    return total[np.searchsorted(own.steps, steps, side=side)]
