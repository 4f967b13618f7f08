"""`bench engine --model SHAPE`: whole GRPO steps of a model of real size, plain TRL beside this engine, in one call.

The model has random weights, so completions are as long as they may be. Rewards are coins: every row has an advantage, and the
engine's update leaves nothing out that TRL's does not. Each arm is as many processes as there are agents, all at once, spread
over the GPUs that are visible; without exchange, whose price is measured by `bench engine` and `bench exchange`. A step is the
time between two step ends, so nothing in a step goes uncounted.
"""

import json
import multiprocessing
import os
import statistics
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from corl_core.bench import shapes
from corl_core.config import RunConfig, load_config
from corl_core.runs import launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import Tail
from corl_core.runs.placement import VISIBLE, visible_gpus

SKIP = 2  # first steps, which pay for kernels, graphs and the allocator
NO_CUDNN = "-no-cudnn"
ARMS = {
    "plain": "plain TRL", f"plain{NO_CUDNN}": "plain TRL, without cuDNN's attention",
    "engine": "engine", f"engine{NO_CUDNN}": "engine, without cuDNN's attention",
}  # fmt: skip
DEFAULT_ARMS = ("plain", "engine")
PARTS = {"generate": "generate_time_s", "grade": "grade_time_s", "update": "update_time_s", "record": "log_time_s"}
PROMPT = "please reason step by step, and put your final answer within a box. the question is: {question}"


@dataclass
class Arm:
    """Medians over steps and agents; seconds."""

    step_s: float | None = None
    parts: dict[str, float] = field(default_factory=dict)
    peak_gib: float | None = None  # of one process: the allocator's, of tensors
    said: list[str] = field(default_factory=list)  # how the engine sampled
    error: str = ""  # why the figures are none, or not of what was to be measured


def configuration(
    model: str, steps: int, device: str, rows: int, tokens: int, agents: int, folder: Path, overrides: Sequence[str] = ()
) -> RunConfig:  # fmt: skip
    """Makes the model's folder, from a configuration, and returns what the arms run."""
    import torch

    dtype = torch.bfloat16 if device == "cuda" else torch.float32
    path = shapes.save(model, folder / "base", dtype, device)
    if device == "cuda":
        torch.cuda.empty_cache()  # this process only waits
    kind = "bfloat16" if device == "cuda" else "float32"
    names = ", ".join(f"{{name: agent-{number}, model: '{path}', dtype: {kind}}}" for number in range(agents))
    fixed = [
        f"agents=[{names}]", "ring=null", "method=random", f"device={device}", f"grpo.max_steps={steps}",
        f"grpo.questions_per_step={rows // 8}", "grpo.num_generations=8", f"grpo.max_completion_length={tokens}",
        f"grpo.bf16={str(device == 'cuda').lower()}", "grpo.gradient_checkpointing=true", "grpo.learning_rate=1e-6",
        "eval.num_questions=0", "checkpoints.every_steps=0", f"data.prompt_template='{PROMPT}'",
    ]  # fmt: skip
    return load_config("demo-ttrl", [*fixed, *overrides])


def measure(
    config: RunConfig, folder: Path, arms: Sequence[str] = DEFAULT_ARMS, done: Callable[[str, Arm], None] = lambda *_: None
) -> dict[str, Arm]:
    """By name. Every arm is handed to `done` when it is, and one that fails leaves the others alone."""
    found = {}
    for kind in arms:
        name = ARMS[kind]
        try:
            found[name] = _run(kind, config, folder)
        except Exception as error:
            traceback.print_exc()
            found[name] = Arm(error=f"{type(error).__name__}: {error}")
        done(name, found[name])
    return found


def _run(arm: str, config: RunConfig, folder: Path) -> Arm:
    """All agents of an arm, each in a process of its own that begins anew."""
    context, gpus = multiprocessing.get_context("spawn"), visible_gpus()
    run = launch.create(config, folder / "runs")
    made = [
        context.Process(target=_child, args=(arm, str(run.path), agent.name, gpus[number % len(gpus)] if gpus else None))
        for number, agent in enumerate(config.agents)
    ]
    for process in made:
        process.start()
    for process in made:
        process.join()
    if failed := [process.exitcode for process in made if process.exitcode]:
        raise RuntimeError(f"a process of the arm '{arm}' ended with exit code {failed[0]}")
    found = [_read(arm, run, agent.name) for agent in config.agents]
    return Arm(
        statistics.median([step for one in found for step in one[0]]),
        {part: statistics.median([one[1][part] for one in found if part in one[1]]) for part in found[0][1]},
        max((one[2] for one in found if one[2] is not None), default=None),
        [reason for one in found for _, reason in one[3]],
        "sampled by the shared path" if any(path == "shared" for one in found for path, _ in one[3]) else "",
    )


def _read(arm: str, run: Run, agent: str) -> tuple[list[float], dict[str, float], float | None, list[tuple[str, str]]]:
    """Seconds of each step, of the parts of one, the peak in GiB, and by which path it sampled, with why."""
    result = json.loads((run.path / f"{agent}.json").read_text())
    if not arm.startswith("engine"):
        ends = result["ends"]
        steps = [later - earlier for earlier, later in zip(ends[SKIP - 1 :], ends[SKIP:], strict=False)]
        generate = statistics.median(result["generate"][SKIP:])
        return steps, {"generate": generate, "rest": statistics.median(steps) - generate}, result["peak_gib"], []
    lines = Tail(run.journal_paths()[agent]).read()
    metrics = [line for line in lines if line["event"] == "step"]
    ends = [line["time"] for line in metrics]
    parts = {
        part: statistics.median([line["metrics"].get(metric, 0.0) for line in metrics[SKIP:]]) for part, metric in PARTS.items()
    }
    steps = [later - earlier for earlier, later in zip(ends[SKIP - 1 :], ends[SKIP:], strict=False)]
    return steps, parts, result["peak_gib"], [(line["path"], line["reason"]) for line in lines if line["event"] == "rollouts"]


def _child(arm: str, path: str, agent: str, gpu: str | None) -> None:
    if gpu is not None:
        os.environ[VISIBLE] = gpu
    run = Run(Path(path))
    import torch

    if arm.endswith(NO_CUDNN):
        torch.backends.cuda.enable_cudnn_sdp(False)
    result = _engine(run, agent) if arm.startswith("engine") else _plain(run, agent)
    peak = torch.cuda.max_memory_allocated() / 2**30 if torch.cuda.is_available() else None
    (run.path / f"{agent}.json").write_text(json.dumps(result | {"peak_gib": peak}))


def _engine(run: Run, name: str) -> dict:
    from corl_core.training.agent import Agent

    Agent.save = lambda self, folder: folder.mkdir(parents=True, exist_ok=True)  # gigabytes that nobody reads
    run.agent_path(name).mkdir(parents=True, exist_ok=True)
    Agent(run, name, port=0).run()
    return {}


def _plain(run: Run, name: str) -> dict:
    from corl_core.bench import plain_trl

    folder = run.path / "plain"
    folder.mkdir(exist_ok=True)
    plain_trl.main(run.config.to_yaml(), name, str(folder), False, coins=True)
    return json.loads((folder / f"{name}.json").read_text())


def bench(
    model: str, steps: int, device: str, rows: int, tokens: int, agents: int, overrides: Sequence[str],
    arms: Sequence[str] = DEFAULT_ARMS, done: Callable[[str, Arm], None] = lambda *_: None,
) -> dict[str, Arm]:  # fmt: skip
    """Everything in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        config = configuration(model, steps, device, rows, tokens, agents, Path(folder), overrides)
        return measure(config, Path(folder), arms, done)


def table(arms: dict[str, Arm], rows: int, tokens: int) -> str:
    """Markdown: seconds a step by phase, the ratio to the faster plain TRL, tokens a second of one agent, peak memory of one
    process."""
    plain = min((arm.step_s for name, arm in arms.items() if name.startswith(ARMS["plain"]) and arm.step_s), default=None)
    lines = [
        "| arm | s a step | speed-up | generate (s) | rest (s) | tokens/s | peak memory (GiB) |", "| --- " * 7 + "|",
    ]  # fmt: skip
    for name, arm in arms.items():
        if arm.step_s is None:
            lines.append(f"| {name} | failed" + " | –" * 5 + " |")
            continue
        generate, faster = arm.parts["generate"], "–" if plain is None else f"{plain / arm.step_s:.2f}"
        peak = "–" if arm.peak_gib is None else f"{arm.peak_gib:.1f}"
        shown = f"{name} ({arm.error})" if arm.error else name
        lines.append(
            f"| {shown} | {arm.step_s:.2f} | {faster} | {generate:.2f} | {arm.step_s - generate:.2f} "
            f"| {rows * tokens / arm.step_s:,.0f} | {peak} |"
        )
    said = [f"{name}: {line}" for name, arm in arms.items() for line in [*arm.said, *([arm.error] if arm.error else [])]]
    return "\n".join([*lines, "", "rest: grading, update and record.", *said])
