"""`bench demo`: what each demo preset teaches, over seeds; the table of the README.

Base accuracy is of the first evaluation (step 0), final accuracy of the last; both on held-out questions. 'Slip' is the
accuracy on the one operation that the agent's school teaches wrongly.
"""

import statistics
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from corl_core.config import RunConfig, load_config
from corl_core.runs import launch
from corl_core.runs.folder import Run, all_runs
from corl_core.runs.results import results
from corl_core.tiny_names import find_school, is_tiny, parse_tiny

T = TypeVar("T")
POLL_S = 0.5
PRESETS = ("demo", "demo-pair", "demo-same-family", "demo-ttrl", "demo-ground-truth", "demo-hurts")


@dataclass(frozen=True)
class Row:
    """One agent of one run."""

    preset: str
    agent: str
    seed: int
    base: float
    base_majority: float
    final: float
    final_majority: float
    slip_base: float | None
    slip_final: float | None


class Unfinished(RuntimeError):
    """Some runs did not finish; which and why."""


def measure(presets: list[str], seeds: list[int], runs_dir: Path, overrides: list[str], jobs: int = 1) -> Iterator[Row]:
    """Trains every preset with every seed, `jobs` runs at a time; a cell that has finished before is not trained again."""
    cells = [(preset, load_config(preset, [f"seed={seed}", *overrides])) for preset in presets for seed in seeds]
    for _, run in train_all(cells, runs_dir, jobs):
        yield from (_row(run, agent.name) for agent in run.config.agents)


def train_all(cells: Sequence[tuple[T, RunConfig]], runs_dir: Path, jobs: int) -> Iterator[tuple[T, Run]]:
    """A finished run of each configuration, `jobs` at a time; one that has finished before is taken as it is. A run that fails
    leaves the others alone; after the last one Unfinished is raised."""
    failures = []
    with ThreadPoolExecutor(jobs) as pool:
        training = [(of, pool.submit(_finished_or_trained, config, runs_dir)) for of, config in cells]
        for of, one in training:
            try:
                run = one.result()
            except Unfinished as error:
                failures.append(str(error))
            else:
                yield of, run
    if failures:
        raise Unfinished(f"{len(failures)} of {len(cells)} runs did not finish: {'; '.join(failures)}")


def _finished_or_trained(config: RunConfig, runs_dir: Path) -> Run:
    return _finished(config, runs_dir) or _train(config, runs_dir)


def _finished(config: RunConfig, runs_dir: Path) -> Run | None:
    return next((run for run in all_runs(runs_dir) if run.config == config and run.status().state == "finished"), None)


def _train(config: RunConfig, runs_dir: Path) -> Run:
    run = launch.launch(config, runs_dir)
    while not (status := run.status()).final:
        time.sleep(POLL_S)
    if status.state != "finished":
        raise Unfinished(f"{run.id} {status.state}: {status.reason}")
    return run


def slip_kind(config: RunConfig, agent: str) -> str | None:
    """The operation that a tiny agent's school teaches wrongly most often; None for any other model."""
    settings = config.agent(agent)
    if not is_tiny(settings.model):
        return None
    school = find_school(parse_tiny(settings.model)[0], settings.school)
    return max(school.slip_frac, key=school.slip_frac.__getitem__, default=None)


def _row(run: Run, agent: str) -> Row:
    ends = results(run)["agents"][agent]
    first, last, kind = ends["first"], ends["last"], slip_kind(run.config, agent)
    return Row(
        run.config.name, agent, run.config.seed, first["eval/accuracy"], first["eval/majority_accuracy"],
        last["eval/accuracy"], last["eval/majority_accuracy"],
        first.get(f"eval/accuracy/{kind}"), last.get(f"eval/accuracy/{kind}"),
    )  # fmt: skip


def table(rows: list[Row]) -> str:
    """Markdown: mean ± standard deviation over seeds, a line for each preset and agent."""
    columns = {"base": "base", "base majority": "base_majority", "final": "final", "final majority": "final_majority",
               "slip, base": "slip_base", "slip, final": "slip_final"}  # fmt: skip
    lines = ["| preset | agent | seeds | " + " | ".join(columns) + " |", "| --- " * (3 + len(columns)) + "|"]
    for preset, agent in dict.fromkeys((row.preset, row.agent) for row in rows):
        chosen = [row for row in rows if (row.preset, row.agent) == (preset, agent)]
        cells = " | ".join(spread([getattr(row, column) for row in chosen]) for column in columns.values())
        lines.append(f"| {preset} | {agent} | {len(chosen)} | {cells} |")
    return "\n".join(lines)


def spread(values: Sequence[float | None]) -> str:
    """'mean ± standard deviation' of the values that are known; a mean alone of one, a dash of none."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    return f"{statistics.mean(known):.2f}" + (f" ± {statistics.stdev(known):.2f}" if len(known) > 1 else "")
