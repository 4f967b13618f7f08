"""Feeds journal lines to the detectors as they come, and says each alarm once.

The cost of a line depends on the window and not on the length of the run. An alarm is raised once an agent and kind. It ends
when its detector has found nothing for a window of steps (or of evaluations, where it looks at those), and does not come back:
what comes and goes is told once. NaN does not end.

Agents that do not wait for each other are apart in time, so one may be well ahead when the cohort reaches a step at which an
alarm is due. It is then raised again with that earlier step, and stands in for the later one: which alarms a run has, and at
which steps, does not depend on who was ahead.
"""

from collections.abc import Callable, Collection
from typing import Any

from corl_core.alarms.constant_answer import constant_answer
from corl_core.alarms.entropy import entropy_collapse
from corl_core.alarms.lengths import length_blow_up, length_collapse
from corl_core.alarms.lock_in import confident_disagreement, confident_fall
from corl_core.alarms.non_finite import non_finite
from corl_core.alarms.parse_drop import parse_drop
from corl_core.alarms.reward_gap import reward_up_accuracy_down
from corl_core.alarms.seen import EVALUATIONS, WINDOW, Found, Joint, JointStep, Line, Past
from corl_core.alarms.zero_signal import zero_signal

Event = dict[str, Any]  # arguments of `Journal.write`

AT_STEPS: dict[str, Callable[[Past], Found | None]] = {
    "length_collapse": length_collapse,
    "length_blow_up": length_blow_up,
    "entropy_collapse": entropy_collapse,
    "constant_answer": constant_answer,
    "zero_signal": zero_signal,
    "parse_drop": parse_drop,
}
AT_EVALUATIONS: dict[str, Callable[[Past], Found | None]] = {  # all by true answers
    "label_lock_in": confident_fall,
    "reward_up_accuracy_down": reward_up_accuracy_down,
}
FOR_GOOD = ("non_finite",)


class Watch:
    """One run's alarms; `num_votes` completions vote on each question, and kinds that are `ignored` are not watched for."""

    def __init__(self, agents: Collection[str], num_votes: int, window: int = WINDOW, ignored: Collection[str] = ()):
        self._pasts = {agent: Past(agent, window) for agent in agents}
        self._joint = Joint(tuple(agents), num_votes, window)
        self._shares: dict[int, dict[str, float]] = {}  # step → vote shares, until the cohort's line of that step comes
        self._num_questions: dict[int, int] = {}
        self._window, self._ignored = window, frozenset(ignored)
        self._raised: dict[tuple[str, str], int] = {}  # kind and agent → step
        self._quiet: dict[tuple[str, str, str], int] = {}  # open alarm and what it was found in → looks without it

    def add(self, agent: str, line: Line) -> list[Event]:
        """What this line of an agent's journal ('': the cohort's) sets off: 'alarm' and 'alarm_end' events."""
        if agent:
            return self._of_agent(self._pasts[agent], line)
        return self._of_cohort(line) if line["event"] == "step" else []

    def _of_agent(self, past: Past, line: Line) -> list[Event]:
        if line["event"] == "attempt":
            self._rewind(past, line["step"])
        if line["event"] not in ("step", "update", "eval"):
            return []
        past.add(line)
        share = line["metrics"].get("vote_share")
        if line["event"] == "step" and share is not None and len(self._pasts) > 1:
            self._shares.setdefault(line["step"], {})[past.agent] = share
            self._num_questions[line["step"]] = len(line.get("votes", ()))
        detectors = {"non_finite": non_finite}
        detectors |= {"step": AT_STEPS, "eval": AT_EVALUATIONS}.get(line["event"], {})
        patience = EVALUATIONS if line["event"] == "eval" else self._window
        return [
            event for kind, detect in detectors.items()
            for event in self._told(kind, past.agent, line["step"], detect(past), patience, line["event"])
        ]  # fmt: skip

    def _rewind(self, past: Past, step: int) -> None:
        """The agent was resumed: what it did from this step on it does again, and what that raised does not count."""
        past.rewind(step)
        self._joint.rewind(step)
        redone = [key for key, at in self._raised.items() if key[1] == past.agent and at >= step]
        for kind, agent in redone:
            del self._raised[kind, agent]
            self._quiet = {key: count for key, count in self._quiet.items() if key[:2] != (kind, agent)}

    def _of_cohort(self, line: Line) -> list[Event]:
        step = line["step"]
        self._joint.add(JointStep(step, line["metrics"], self._shares.pop(step, {}), self._num_questions.pop(step, 0)))
        return [
            event for agent in self._pasts
            for event in self._told(
                "label_lock_in", agent, line["step"], confident_disagreement(self._joint, agent), self._window, "cohort"
            )
        ]  # fmt: skip

    def _told(self, kind: str, agent: str, step: int, found: Found | None, patience: int, source: str) -> list[Event]:
        if kind in self._ignored:
            return []
        key = (kind, agent, source)
        if found is not None and step < self._raised.get((kind, agent), step + 1):
            self._raised[kind, agent] = step
            self._quiet[key] = 0
            told = {"step": step, "kind": kind, "agent": agent, "evidence": dict(found.evidence), "text": found.text}
            by_truth = {"uses_truth": True} if source == "eval" and kind in AT_EVALUATIONS else {}
            return [{"event": "alarm"} | told | by_truth]
        if key not in self._quiet or kind in FOR_GOOD:
            return []
        self._quiet[key] = 0 if found is not None else self._quiet[key] + 1
        if self._quiet[key] < patience:
            return []
        del self._quiet[key]
        return [{"event": "alarm_end", "step": step, "kind": kind, "agent": agent}]


def about(kind: str) -> str:
    """What raises an alarm of this kind: its detectors' definitions."""
    both = (AT_STEPS.get(kind), AT_EVALUATIONS.get(kind), confident_disagreement if kind == "label_lock_in" else None)
    found = [detector for detector in both if detector] or [non_finite]
    return " Or: ".join(" ".join((detector.__doc__ or "").split("\n\n")[0].split()) for detector in found)
