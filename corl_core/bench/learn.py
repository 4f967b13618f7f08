"""`bench learn`: whether a real pretrained model learns in this engine; the learning check of the README.

Two copies of one model are first warmed up, each on another school's textbook of two-digit arithmetic (`training/warmed.py`: a
short supervised training on the answer format, with the school's slip planted as in the demo). Then both train, as any run does,
on the same questions: with true answers, on each other's votes, on their own votes. The first must raise held-out accuracy
clearly; the other two are reported as they come out.
"""

import json
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corl_core.bench.demo import train_all
from corl_core.config import ConfigError, RunConfig, from_values
from corl_core.runs import journal
from corl_core.runs.folder import Run
from corl_core.runs.results import results

SCHOOLS = {"forgets-carry": "add", "smaller-from-larger": "sub"}  # school → the operation that it teaches wrongly
METHODS = {"ground_truth": "true answers", "corl": "Co-RL", "ttrl": "TTRL"}
LEARNING_RATE = 2e-5  # of the GRPO steps; twenty times the usual one of 0.5B to 7B models, for a model that is far smaller


@dataclass(frozen=True)
class Check:
    """What is checked: a model, and how long it warms up and trains."""

    model: str
    gguf_file: str | None = None
    steps: int = 100
    warm_up_steps: int = 300
    device: str = "auto"
    seed: int = 0


@dataclass(frozen=True)
class Row:
    """One agent of one run. Accuracies are of held-out questions; 'slip': of the operation that its school teaches wrongly."""

    method: str
    school: str
    base: float
    base_majority: float
    final: float
    final_majority: float
    slip_base: float
    slip_final: float
    step_s: float  # median
    run_s: float  # from the launch to the end


def measure(
    check: Check, runs_dir: Path, overrides: list[str], methods: Sequence[str] = (*METHODS,), jobs: int = 1
) -> Iterator[Row]:
    """Warms up, then trains every method, `jobs` runs at a time. Raises ConfigError."""
    folders = warm_up(check)
    cells = [(method, configuration(check, folders, method, overrides)) for method in methods]
    for method, run in train_all(cells, runs_dir, jobs):
        yield from (_row(run, method, school) for school in folders)


def warm_up(check: Check) -> dict[str, str]:
    """School → the folder of the model that it taught, made in a process of its own, which leaves the GPU free again."""
    packed = ["--gguf-file", check.gguf_file] if check.gguf_file else []
    command = [sys.executable, "-m", "corl_core.training.warmed", check.model, *packed, "--school", *SCHOOLS,
               "--steps", str(check.warm_up_steps), "--seed", str(check.seed), "--device", check.device]  # fmt: skip
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise ConfigError(f"--model {check.model} could not be warmed up, see above")
    return json.loads(done.stdout.splitlines()[-1])


def configuration(check: Check, folders: dict[str, str], method: str, overrides: list[str]) -> RunConfig:
    """The run of one method: two agents, which share a GPU where there is one."""
    values = {
        "name": f"learn, {METHODS[method]}", "method": method, "seed": check.seed, "device": check.device,
        "agents": [{"name": school, "model": folder} for school, folder in folders.items()],
        "data": {"train": "arithmetic", "prompt_template": "{question}", "chat_template": "never"},
        "grpo": {"max_steps": check.steps, "questions_per_step": 16, "num_generations": 8, "max_completion_length": 40,
                 "learning_rate": LEARNING_RATE, "torch_compile": False},  # it would not pay in so few steps
        "eval": {"every_steps": max(1, check.steps // 4), "num_questions": 252, "num_samples": 4},
        "checkpoints": {"every_steps": 0},
    }  # fmt: skip
    return from_values(values, overrides, "bench learn")


def _row(run: Run, method: str, school: str) -> Row:
    ends = results(run)["agents"][school]
    first, last, kind, status = ends["first"], ends["last"], SCHOOLS[school], run.status()
    steps = [line["metrics"]["step_time_s"] for line in journal.read(run.journal_paths()[school]) if line["event"] == "step"]
    return Row(
        method, school, first["eval/accuracy"], first["eval/majority_accuracy"], last["eval/accuracy"],
        last["eval/majority_accuracy"], first[f"eval/accuracy/{kind}"], last[f"eval/accuracy/{kind}"],
        statistics.median(steps), status.ended - status.created,
    )  # fmt: skip


def table(check: Check, rows: Sequence[Row]) -> str:
    """Markdown: a line for each method and agent, below what was done before."""
    columns = {"base": "base", "base majority": "base_majority", "final": "final", "final majority": "final_majority",
               "slip, base": "slip_base", "slip, final": "slip_final"}  # fmt: skip
    lines = [
        f"{Path(check.model).name}: two copies, each warmed up for {check.warm_up_steps} steps on its school's textbook, then "
        f"{check.steps} steps of GRPO, {len(SCHOOLS)} agents a run.",
        "",
        "| reward | school | " + " | ".join(columns) + " | s a step | run, s |",
        "| --- " * (4 + len(columns)) + "|",
    ]
    for row in rows:
        cells = " | ".join(f"{getattr(row, column):.2f}" for column in columns.values())
        lines.append(f"| {METHODS[row.method]} | {row.school} | {cells} | {row.step_s:.2f} | {row.run_s:.0f} |")
    return "\n".join(lines)
