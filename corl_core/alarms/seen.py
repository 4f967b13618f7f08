"""What alarms look at: the last lines of an agent's journal, and the first ones to measure against.

It is kept as lines come and never grows, so a detector costs the same at step 10 and at step 100,000. What is missing from the
lines (no ground truth, no votes, a reward that is not 0 or 1) makes a detector not applicable: it finds nothing.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

Line = Mapping[str, Any]  # one journal line: see `runs/journal.py`
WINDOW = 25  # steps that a detector looks back on
MIN_STEPS = 10  # with a metric, below which a window says nothing
FIRST = 10  # steps at the start that later ones are measured against
EVALUATIONS = 4  # evaluations that a detector looks back on


@dataclass(frozen=True)
class Found:
    """What a detector saw: the numbers it decided on, and a sentence for a person."""

    evidence: dict[str, float | str]
    text: str


@dataclass(frozen=True)
class Evaluation:
    """A held-out evaluation, with the means of the training metrics over the window of steps before it."""

    step: int
    metrics: Mapping[str, float]
    training: Mapping[str, float]


@dataclass
class Past:
    """What is remembered of one agent."""

    agent: str
    window: int = WINDOW
    newest: Line = field(default_factory=dict)
    first: list[Line] = field(default_factory=list)  # its first FIRST 'step' lines
    steps: deque[Line] = field(default_factory=deque)  # its last `window` 'step' lines, oldest first
    evaluations: deque[Evaluation] = field(default_factory=lambda: deque(maxlen=EVALUATIONS))
    best: Evaluation | None = None  # the one with the highest majority accuracy so far

    def add(self, line: Line) -> None:
        self.newest = line
        if line["event"] == "step":
            if len(self.first) < FIRST:
                self.first.append(line)
            self.steps.append(line)
            if len(self.steps) > self.window:
                self.steps.popleft()
        elif line["event"] == "eval":
            names = {name for step in self.steps for name in step["metrics"]}
            training = {name: value for name in names if (value := mean(self.steps, name)) is not None}
            self.evaluations.append(Evaluation(line["step"], line["metrics"], training))
            self._keep_best(self.evaluations[-1])

    def rewind(self, step: int) -> None:
        """Forgets what an attempt that goes on from `step` updates will do again."""
        self.first = [line for line in self.first if line["step"] < step]
        self.steps = deque(line for line in self.steps if line["step"] < step)
        self.evaluations = deque((found for found in self.evaluations if found.step <= step), self.evaluations.maxlen)
        if self.best is not None and self.best.step > step:
            self.best = None
            for evaluation in self.evaluations:
                self._keep_best(evaluation)

    def _keep_best(self, evaluation: Evaluation) -> None:
        reached = evaluation.metrics.get("eval/majority_accuracy")
        if reached is not None and (self.best is None or reached > self.best.metrics["eval/majority_accuracy"]):
            self.best = evaluation


@dataclass(frozen=True)
class JointStep:
    """A step that every agent of the cohort has done."""

    step: int
    metrics: Mapping[str, float]  # the cohort's: agreement/a.b
    shares: Mapping[str, float]  # agent → mean vote share
    num_questions: int


@dataclass
class Joint:
    """What is remembered of the cohort as a whole."""

    agents: tuple[str, ...]
    num_votes: int  # completions that vote on each question
    window: int = WINDOW
    first: list[JointStep] = field(default_factory=list)  # the run's first `window` steps
    steps: deque[JointStep] = field(default_factory=deque)  # its last `window` steps, oldest first

    def add(self, step: JointStep) -> None:
        if len(self.first) < self.window:
            self.first.append(step)
        self.steps.append(step)
        if len(self.steps) > self.window:
            self.steps.popleft()

    def rewind(self, step: int) -> None:
        self.first = [done for done in self.first if done.step < step]
        self.steps = deque(done for done in self.steps if done.step < step)


def mean(lines: Iterable[Line], metric: str, least: int = 1) -> float | None:
    """Mean of a metric over the lines that have it; None where fewer than `least` do."""
    values = [line["metrics"][metric] for line in lines if metric in line["metrics"]]
    return fmean(values) if len(values) >= least else None


def now_and_first(past: Past, metric: str) -> tuple[float, float] | None:
    """A metric's mean over the window and over the run's first steps; None while the window still holds any of those."""
    if not past.steps or past.steps[0]["step"] <= past.first[-1]["step"]:
        return None
    now, first = mean(past.steps, metric, MIN_STEPS), mean(past.first, metric)
    return None if now is None or first is None else (now, first)
