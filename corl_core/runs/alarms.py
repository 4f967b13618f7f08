"""Alarms of a run: rung while it trains, and worked out again from its journals."""

import heapq
from collections.abc import Iterable, Iterator
from typing import Any

from corl_core.alarms.record import Alarm, alarms_of
from corl_core.alarms.seen import Line
from corl_core.alarms.watch import Watch
from corl_core.config import RunConfig
from corl_core.runs.cohort import CohortMetrics
from corl_core.runs.folder import Run
from corl_core.runs.journal import read


class Bell:
    """What a run's supervisor feeds: every agent's lines, and the cohort's as agent ''. Silent when alarms are off.

    `told` are the cohort's lines so far: a run that is resumed is fed again from its first line, and tells nothing twice.
    """

    def __init__(self, config: RunConfig, told: Iterable[Line] = ()):
        settings, names = config.alarms, [agent.name for agent in config.agents]
        self._watch = None if settings.action == "off" else Watch(names, config.num_votes, settings.window, settings.ignore)
        self._is_supervised = "ground_truth" in config.signals
        self._told = [line for line in told if line["event"] in ("alarm", "alarm_end")]
        self._known = {_key(line) for line in self._told}

    @property
    def alarms(self) -> list[Alarm]:
        """Those raised so far, oldest first."""
        return alarms_of(self._told)

    def first_that_ends(self, alarms: Iterable[Line]) -> Line | None:
        """Of new alarms, the one by which a run ends that is to stop at one: true answers do not say which weights are the last
        of a run that trains without them."""
        return next((alarm for alarm in alarms if self._is_supervised or not alarm.get("uses_truth")), None)

    def add(self, agent: str, line: Line) -> list[dict[str, Any]]:
        """The journal lines that this line sets off, as arguments of `Journal.write`."""
        events = self._watch.add(agent, line) if self._watch else []
        events = [event for event in events if _key(event) not in self._known]
        self._told += events
        return events


def _key(line: Line) -> tuple[str, str, str, int]:
    return line["event"], line["kind"], line["agent"], line["step"]


def replayed(run: Run) -> list[Alarm]:
    """The alarms that the run's journals set off today, whatever `alarms.action` was; the run may be under way."""
    config = run.config.model_copy(update={"alarms": run.config.alarms.model_copy(update={"action": "warn"})})
    bell, cohort = Bell(config), CohortMetrics(config)
    for agent, line in _in_order(run):
        bell.add(agent, line)
        for event in cohort.add(agent, line):
            bell.add("", event)
    return bell.alarms


def _in_order(run: Run) -> Iterator[tuple[str, Line]]:
    """(agent, line) of what counts in all agents' journals, in the order in which it was written."""
    streams = [[(agent, line) for line in read(path)] for agent, path in run.journal_paths().items() if agent]
    return heapq.merge(*streams, key=lambda item: item[1]["time"])
