"""The cohort's metrics, from the agents' journals: known only once every agent has reached a step.

Agreement is worked out at each step on the questions of that step, and error overlap on those of the last WINDOW steps
(a step's few questions are too few for a kappa); both again, under `eval/`, on the held-out questions of each evaluation.
"""

from collections import deque
from typing import Any

from corl_core.config import RunConfig
from corl_core.diagnostics import cohort_agreement, cohort_overlap

WINDOW = 25  # steps


class CohortMetrics:
    """Feed it every journal line of every agent, in each agent's order; it answers with the cohort's lines."""

    def __init__(self, config: RunConfig):
        self._names = [agent.name for agent in config.agents]
        self._waiting: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
        self._window: deque[dict[str, dict[str, Any]]] = deque(maxlen=WINDOW)

    def add(self, agent: str, line: dict[str, Any]) -> list[dict[str, Any]]:
        """The cohort's journal lines that this line completes, as arguments of `Journal.write`."""
        if line["event"] not in ("step", "eval") or len(self._names) < 2:
            return []
        key = (line["event"], line["step"])
        lines = self._waiting.setdefault(key, {})
        lines[agent] = line
        if len(lines) < len(self._names):
            return []
        del self._waiting[key]
        metrics = self._held_out(lines) if line["event"] == "eval" else self._training(lines)
        return [{"event": line["event"], "step": line["step"], "metrics": metrics}] if metrics else []

    def _training(self, lines: dict[str, dict[str, Any]]) -> dict[str, float]:
        self._window.append(lines)
        votes = {name: [vote for step in self._window for vote in step[name]["votes"]] for name in self._names}
        truths = [truth for step in self._window for truth in step[self._names[0]]["truths"]]
        now = {name: lines[name]["votes"] for name in self._names}
        return cohort_agreement(now) | cohort_overlap(votes, truths)

    def _held_out(self, lines: dict[str, dict[str, Any]]) -> dict[str, float]:
        votes = {name: lines[name]["votes"] for name in self._names}
        metrics = cohort_agreement(votes) | cohort_overlap(votes, lines[self._names[0]]["truths"])
        return {f"eval/{name}": value for name, value in metrics.items()}
