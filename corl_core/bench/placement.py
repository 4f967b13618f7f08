"""`bench placement`: what it costs to put agents on GPUs of their own, on one GPU, or one agent on several.

Arms, in turn on one machine: one agent alone on the first GPU; two agents that exchange votes, a GPU each; the same two on the
first GPU; one agent over two GPUs, by each way that is asked for. All train a model of one shape with random weights, whose
completions have full length, on the same questions, with supervisor, exchange and records as in any run. A step is the time
between two step ends. On the CPU agents take cores in place of GPUs, which says that it works and no more.
"""

import json
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from corl_core.bench import shapes
from corl_core.config import RunConfig, load_config
from corl_core.runs import launch
from corl_core.runs.journal import Tail
from corl_core.runs.supervisor import Supervisor

SKIP = 2  # first steps, which pay for start-up
PARTS = {"generate": "generate_time_s", "exchange": "exchange_wait_s", "update": "update_time_s"}
ALONE = "one agent, one GPU"


@dataclass(frozen=True)
class Setting:
    """What is measured. `parallel`: ways to train one agent over two GPUs."""

    model: str
    device: str
    rows: int = 128
    tokens: int = 256
    steps: int = 8
    parallel: Sequence[str] = ("ddp",)


@dataclass(frozen=True)
class Row:
    """One arm; medians over its steps and agents, seconds."""

    arm: str
    step_s: float | None
    parts: dict[str, float]
    reason: str = ""  # why there is no measurement


def arms(setting: Setting) -> dict[str, list[dict]]:
    """Arm → where its agents are."""
    cuda = setting.device == "cuda"
    over_two = {"gpus": [0, 1]} if cuda else {"processes": 2}
    made = {
        ALONE: [{"gpus": [0]}],
        "two agents, a GPU each": [{"gpus": [0]}, {"gpus": [1]}],
        "two agents, one GPU": [{"gpus": [0]}, {"gpus": [0]}],
    }
    made |= {f"one agent, two GPUs ({how})": [over_two | {"parallel": how}] for how in setting.parallel}
    return made if cuda else {arm: [{k: v for k, v in at.items() if k != "gpus"} for at in own] for arm, own in made.items()}


def configuration(setting: Setting, folder: Path, arm: str, overrides: Iterable[str] = ()) -> RunConfig:
    """`folder`: the model's."""
    places = arms(setting)[arm]
    agents = [{"name": f"agent-{n}", "model": str(folder), "placement": place} for n, place in enumerate(places)]
    cuda = str(setting.device == "cuda").lower()
    fixed = [
        f"name={arm}", f"agents={json.dumps(agents)}", f"method={'corl' if len(agents) > 1 else 'ttrl'}", "ring=null",
        f"device={setting.device}", f"grpo.max_steps={setting.steps}", "grpo.num_generations=8",
        f"grpo.questions_per_step={setting.rows // 8}", f"grpo.max_completion_length={setting.tokens}",
        f"grpo.bf16={cuda}", f"grpo.gradient_checkpointing={cuda}", "eval.num_questions=0", "checkpoints.every_steps=0",
        f"grpo.gradient_accumulation_steps={4 if setting.device == 'cuda' else 1}",  # two float32 agents of 3B fit 140 GiB
    ]  # fmt: skip
    return load_config("demo-pair", [*fixed, *overrides])


def measure(setting: Setting, overrides: Sequence[str] = ()) -> list[Row]:
    """Every arm once."""
    import torch

    with tempfile.TemporaryDirectory() as top:
        folder = shapes.save(setting.model, Path(top) / "model", torch.float32, setting.device)
        if setting.device == "cuda":
            torch.cuda.empty_cache()
        return [_measure(arm, configuration(setting, folder, arm, overrides), Path(top) / "runs") for arm in arms(setting)]


def _measure(arm: str, config: RunConfig, runs_dir: Path) -> Row:
    run = launch.create(config, runs_dir)
    status = Supervisor(run).run()
    if status.state != "finished":
        return Row(arm, None, {}, status.reason)
    gaps: list[float] = []
    parts: dict[str, list[float]] = {part: [] for part in PARTS}
    for agent in config.agents:
        lines = [line for line in Tail(run.journal_paths()[agent.name]).read() if line["event"] == "step"][SKIP:]
        gaps += [after["time"] - line["time"] for line, after in pairwise(lines)]
        for part, metric in PARTS.items():
            parts[part] += [line["metrics"].get(metric, 0.0) for line in lines[1:]]
    return Row(arm, statistics.median(gaps), {part: statistics.median(values) for part, values in parts.items()})


def table(setting: Setting, rows: Sequence[Row]) -> str:
    """Markdown: seconds a step, and against one agent alone."""
    alone = next(row.step_s for row in rows if row.arm == ALONE)
    lines = [f"{setting.model}, {setting.rows} completions × {setting.tokens} tokens a step, {setting.device}", ""]
    lines += ["| arm | s a step | against one agent alone | generate | exchange | update |", "| --- " * 6 + "|"]
    for row in rows:
        if row.step_s is None:
            lines.append(f"| {row.arm} | – | {row.reason} | – | – | – |")
            continue
        cells = " | ".join(f"{row.parts[part]:.2f}" for part in PARTS)
        lines.append(f"| {row.arm} | {row.step_s:.2f} | {f'{row.step_s / alone:.2f}' if alone else '–'} | {cells} |")
    return "\n".join(lines)
