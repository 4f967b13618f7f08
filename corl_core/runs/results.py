"""What came out of a run, read from its journals."""

from typing import Any

from corl_core.runs.folder import Run
from corl_core.runs.journal import Tail


def evaluations(run: Run, agent: str) -> list[dict[str, Any]]:
    """An agent's evaluation lines, in step order; '' gives the cohort's."""
    return [line for line in Tail(run.journal_paths()[agent]).read() if line["event"] == "eval"]


def results(run: Run) -> dict[str, Any]:
    """State, and for each agent and the cohort the metrics of the first and the last evaluation ({} before one)."""
    status = run.status()
    report: dict[str, Any] = {"id": run.id, "state": status.state, "reason": status.reason, "step": status.step}
    report["agents"] = {agent.name: _ends(evaluations(run, agent.name)) for agent in run.config.agents}
    report["cohort"] = _ends(evaluations(run, ""))
    return report


def _ends(lines: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    if not lines:
        return {"first": {}, "last": {}}
    return {end: {"step": lines[index]["step"]} | lines[index]["metrics"] for end, index in (("first", 0), ("last", -1))}
