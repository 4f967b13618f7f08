"""A few steps of the actual run on the actual device, scaled to the whole: seconds a step by phase, and the GPUs' memory.

The probe is a run like any other, in a folder that is removed: same models, data, placement and settings, without evaluation and
checkpoints. Its first step pays for start-up and is left out. Evaluation is scaled from the sampling of training by completions.
"""

import os
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from corl_core.config import RunConfig
from corl_core.data.preflight import refuse_before_launch
from corl_core.forecast.cards import gpus
from corl_core.forecast.report import gib, hours
from corl_core.runs import launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import Tail
from corl_core.runs.launch import LaunchError

POLL_S = 0.5
TRACKING_URI = "MLFLOW_TRACKING_URI"
PARTS = {"sampling": "generate_time_s", "grading": "grade_time_s", "exchange": "exchange_wait_s", "update": "update_time_s"}


@dataclass(frozen=True)
class Probe:
    """Medians over the probe's steps, of the slowest agent; `used`: GPU → bytes that it rose by, at the most."""

    steps: int
    step_s: float
    parts_s: dict[str, float]
    mean_tokens: float
    run_steps: int
    evaluations: int
    evaluation_s: float
    used: dict[str, float]

    @property
    def hours(self) -> float:
        return (self.run_steps * self.step_s + self.evaluations * self.evaluation_s) / 3600

    @property
    def sampling_share(self) -> float:
        sampling = self.run_steps * self.parts_s["sampling"] + self.evaluations * self.evaluation_s
        return sampling / (3600 * self.hours)

    def notes(self) -> list[str]:
        parts = ", ".join(f"{name} {seconds:.3g} s" for name, seconds in self.parts_s.items())
        how = f"{self.steps} steps here: {self.step_s:.3g} s a step ({parts})"
        said = [f"measured over {how}; {self.mean_tokens:.0f} tokens a completion"]
        said.append(f"so the run takes {hours(self.hours)}, {self.sampling_share:.0%} of it sampling, if lengths stay so")
        return said + [f"GPU {gpu} rose by {gib(size)}, as the driver counts it" for gpu, size in self.used.items()]

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"hours": self.hours, "sampling_share": self.sampling_share}


def probe(config: RunConfig, steps: int) -> Probe:
    """Trains `steps` steps after a first one. Raises LaunchError when the run ends otherwise."""
    from corl_core.runs.supervisor import Supervisor

    refuse_before_launch(config)
    with tempfile.TemporaryDirectory() as folder, _own_store(), _watched() as used:
        run = launch.create(short(config, steps), Path(folder))
        status = Supervisor(run).run()
        if status.state != "finished":
            raise LaunchError(f"the probe {status.state}: {status.reason}")
        return _read(config, run, steps, used)


def short(config: RunConfig, steps: int) -> RunConfig:
    """The run's first steps alone."""
    num = config.grpo.num_iterations * (steps + 1)
    return config.model_copy(
        update={
            "grpo": config.grpo.model_copy(update={"max_steps": num, "warmup_steps": min(num, config.grpo.warmup_steps)}),
            "eval": config.eval.model_copy(update={"num_questions": 0, "checkpoint": "last"}),
            "checkpoints": config.checkpoints.model_copy(update={"every_steps": 0}),
        }
    )


def _read(config: RunConfig, run: Run, steps: int, used: dict[str, float]) -> Probe:
    found = [_agent_steps(path) for agent, path in run.journal_paths().items() if agent]
    slowest = max(found, key=lambda lines: statistics.median(line["step_time_s"] for line in lines))
    parts = {name: statistics.median(line.get(metric, 0.0) for line in slowest) for name, metric in PARTS.items()}
    sampled = config.grpo.questions_per_step * config.num_samples
    evaluated = config.eval.num_questions * config.eval.num_samples
    evaluations = 1 + -(-config.grpo.max_steps // config.eval.every_steps) if evaluated else 0
    return Probe(
        steps, statistics.median(line["step_time_s"] for line in slowest), parts,
        statistics.mean(line["completions/mean_length"] for line in slowest), config.grpo.max_steps, evaluations,
        parts["sampling"] * evaluated / sampled, dict(used),
    )  # fmt: skip


def _agent_steps(journal: Path) -> list[dict[str, float]]:
    """The metrics of every step but the first."""
    return [line["metrics"] for line in Tail(journal).read() if line["event"] == "step"][1:]


@contextmanager
def _own_store() -> Iterator[None]:
    """Meanwhile no tracking server is named, so the probe is logged into its own folder, which is removed."""
    uri = os.environ.pop(TRACKING_URI, None)
    try:
        yield
    finally:
        if uri is not None:
            os.environ[TRACKING_URI] = uri


@contextmanager
def _watched() -> Iterator[dict[str, float]]:
    """GPU → bytes in use beyond those at the start, at the most so far; empty without a GPU."""
    before = {gpu.id: gpu.used for gpu in gpus() if gpu.used is not None}
    most, ended = dict.fromkeys(before, 0.0), threading.Event()

    def watch() -> None:
        while not ended.wait(POLL_S):
            for gpu in gpus():
                if gpu.used is not None and gpu.id in most:
                    most[gpu.id] = max(most[gpu.id], gpu.used - before[gpu.id])

    thread = threading.Thread(target=watch, daemon=True)
    if before:
        thread.start()
    try:
        yield most
    finally:
        ended.set()
