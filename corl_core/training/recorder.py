"""What one agent writes down: a journal line a step, and every rollout as Parquet."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from corl_core.diagnostics import Step, agent_metrics
from corl_core.runs.inside import make_folder
from corl_core.runs.journal import Journal, read
from corl_core.runs.open_shard import SCHEMA as ROLLOUT_SCHEMA
from corl_core.runs.open_shard import OpenShard, shard_steps, write_shard

SHARD_STEPS = 25


class Recorder:
    """The journal and the rollouts of one agent."""

    def __init__(self, folder: Path, agent: str):
        self._folder, self._first_step = folder / "rollouts", None
        make_folder(self._folder, within=folder.parents[1])  # the run's
        self.agent, self.journal = agent, Journal(folder / "journal.jsonl")
        self._open = OpenShard(self._folder)
        self._open.close()  # that of an earlier attempt
        self._std_at_start: float | None = None

    def step(self, step: int, question_ids: list[str], record: Step, measured: dict[str, float]) -> dict[str, float]:
        """One journal line: the metrics of a step (returned), and the votes that the cohort's metrics need."""
        metrics = agent_metrics(record) | measured
        if std := metrics.get("reward_std"):
            self._std_at_start = self._std_at_start or std
        if self._std_at_start and "reward_std" in metrics:
            metrics["reward_std_normalized"] = metrics["reward_std"] / self._std_at_start
        votes = [vote.key for vote in record.votes]
        self.journal.write("step", step=step, metrics=metrics, questions=question_ids, votes=votes, truths=list(record.truths))
        return metrics

    def resume(self, step: int) -> None:
        """Goes on from `step` updates: what an earlier attempt recorded from there on no longer counts."""
        self.journal.write("attempt", step=step)
        for path in sorted(self._folder.glob("[0-9]*.parquet")):
            first, last = shard_steps(path)
            if last < step:
                continue
            if first < step:
                kept = pq.read_table(path, filters=[("step", "<", step)])
                write_shard(self._folder, kept.cast(ROLLOUT_SCHEMA), first, step - 1)
            path.unlink()
        steps = (line["metrics"] for line in read(self.journal.path) if line["event"] == "step")
        self._std_at_start = next((std for metrics in steps if (std := metrics.get("reward_std"))), None)

    def rollouts(self, step: int, rows: list[dict[str, Any]]) -> None:
        """Keeps a step's rollouts, before the step is told; a shard is written every SHARD_STEPS steps."""
        self._first_step = step if self._first_step is None else self._first_step
        self._open.add(step, [{"step": step, "agent": self.agent} | row for row in rows])
        if step - self._first_step + 1 >= SHARD_STEPS:
            self.flush()

    def flush(self) -> None:
        """Writes what is kept as one shard."""
        self._open.close()
        self._first_step = None


class NoRecorder:
    """In its place on the ranks of an agent that keep no record, and its own journal there."""

    def __init__(self) -> None:
        self.journal = self

    def write(self, event: str, **fields: Any) -> None:
        """Nothing: rank 0 tells it."""

    def resume(self, step: int) -> None:
        """Nothing."""

    def flush(self) -> None:
        """Nothing."""


def one_line(step: int, metrics: dict[str, float]) -> str:
    """What the log says of a step or an evaluation: enough to see whether it learns."""
    evaluation, training = ("eval/accuracy", "eval/majority_accuracy"), ("reward", "reward_std", "vote_share")
    shown = (*evaluation, *training, "pseudo_label_accuracy", "step_time_s")
    return f"step {step}: " + ", ".join(f"{name} {metrics[name]:.3f}" for name in shown if name in metrics)
