"""What came out of a run, read from its journals."""

from typing import Any

from corl_core.runs import journal
from corl_core.runs.folder import Run


def evaluations(run: Run, agent: str) -> list[dict[str, Any]]:
    """An agent's evaluation lines, in step order; '' gives the cohort's."""
    return [line for line in journal.read(run.journal_paths()[agent]) if line["event"] == "eval"]


def results(run: Run) -> dict[str, Any]:
    """State and alarms, and for each agent and the cohort the metrics of the first and the last evaluation ({} before one)."""
    status = run.status()
    report: dict[str, Any] = {"id": run.id, "state": status.state, "reason": status.reason, "step": status.step}
    report["alarms"] = status.alarms
    names = [agent.name for agent in run.config.agents]
    report["agents"] = {name: _ends(evaluations(run, name)) | {"checkpoint": checkpoint(run, name)} for name in names}
    report["cohort"] = _ends(evaluations(run, ""))
    return report


def checkpoint(run: Run, agent: str) -> dict[str, Any]:
    """Which weights the agent left behind: the rule that chose them, the step (updates done), what the rule measured there,
    and whether it used true answers; {} before there are any."""
    lines = [line for line in journal.read(run.journal_paths()[agent]) if line["event"] == "checkpoint"]
    return {key: lines[-1][key] for key in ("rule", "step", "value", "uses_truth")} if lines else {}


def _ends(lines: list[dict[str, Any]]) -> dict[str, dict[str, float]]:
    if not lines:
        return {"first": {}, "last": {}}
    return {end: {"step": lines[index]["step"]} | lines[index]["metrics"] for end, index in (("first", 0), ("last", -1))}
