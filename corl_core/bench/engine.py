"""`bench engine`: this engine's cohort beside plain TRL, in one call on one machine.

Arms, in turn and repeated: two plain TRL processes; two agents of this engine that reward themselves (no exchange); a
Co-RL cohort of two. All run the same models, questions and settings, with supervisor and MLflow logging on for the
engine's arms. A step is the time between two step ends, so nothing in a step goes uncounted.
"""

import multiprocessing
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from corl_core.config import RunConfig, load_config
from corl_core.runs import launch
from corl_core.runs.journal import Tail
from corl_core.runs.supervisor import Supervisor

SKIP = 5  # first steps, which pay for start-up
PARTS = {"generate": "generate_time_s", "grade": "grade_time_s", "exchange": "exchange_wait_s", "update": "update_time_s",
         "record": "log_time_s"}  # fmt: skip
ARMS = {"plain TRL": None, "engine, own votes": "ttrl", "engine, Co-RL": "corl"}


@dataclass
class Arm:
    """Medians over steps, agents and repeats; seconds."""

    step_s: list[float] = field(default_factory=list)
    parts: dict[str, list[float]] = field(default_factory=lambda: {part: [] for part in PARTS})

    def step(self) -> float:
        return statistics.median(self.step_s)

    def share(self, part: str) -> float | None:
        return statistics.median(self.parts[part]) / self.step() if self.parts[part] else None


def configuration(steps: int, device: str, overrides: list[str]) -> RunConfig:
    fixed = [f"grpo.max_steps={steps}", f"device={device}", "eval.num_questions=0", "checkpoints.every_steps=0"]
    return load_config("demo-pair", [*fixed, *overrides])


def measure(config: RunConfig, repeats: int) -> dict[str, Arm]:
    """Runs every arm `repeats` times, in turn."""
    arms = {name: Arm() for name in ARMS}
    with tempfile.TemporaryDirectory() as folder:
        for repeat in range(repeats):
            for name, method in ARMS.items():
                if method is None:
                    _plain(config, arms[name], Path(folder) / f"plain-{repeat}")
                else:
                    _engine(config.model_copy(update={"method": method, "ring": None}), arms[name], Path(folder) / "runs")
    return arms


def _gaps(ends: list[float]) -> list[float]:
    return [later - earlier for earlier, later in zip(ends[SKIP:], ends[SKIP + 1 :], strict=False)]


def _plain(config: RunConfig, arm: Arm, folder: Path) -> None:
    import json

    from corl_core.bench import plain_trl

    folder.mkdir(parents=True)
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["corl_core.training.process"])
    processes = [
        context.Process(target=plain_trl.main, args=(config.to_yaml(), agent.name, str(folder), False)) for agent in config.agents
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        if process.exitcode:
            raise RuntimeError(f"a plain TRL process ended with exit code {process.exitcode}")
    for agent in config.agents:
        result = json.loads((folder / f"{agent.name}.json").read_text())
        arm.step_s += _gaps(result["ends"])
        arm.parts["generate"].append(result["generate_s"])


def _engine(config: RunConfig, arm: Arm, runs_dir: Path) -> None:
    run = launch.create(config, runs_dir)
    status = Supervisor(run).run()
    if status.state != "finished":
        raise RuntimeError(f"the {config.method} run {status.state}: {status.reason}")
    for agent in config.agents:
        lines = [line for line in Tail(run.journal_paths()[agent.name]).read() if line["event"] == "step"]
        arm.step_s += _gaps([line["time"] for line in lines])
        for part, metric in PARTS.items():
            arm.parts[part] += [line["metrics"].get(metric, 0.0) for line in lines[SKIP:]]


def table(arms: dict[str, Arm]) -> str:
    """Markdown: seconds a step, the ratio to plain TRL, and the parts of a step."""
    plain = arms["plain TRL"].step()
    lines = ["| arm | ms a step | ratio | " + " | ".join(PARTS) + " |", "| --- " * (3 + len(PARTS)) + "|"]
    for name, arm in arms.items():
        shares = [arm.share(part) for part in PARTS]
        cells = " | ".join("–" if share is None else f"{share:.0%}" for share in shares)
        lines.append(f"| {name} | {1000 * arm.step():.0f} | {arm.step() / plain:.2f} | {cells} |")
    exchange = arms["engine, Co-RL"].step() / arms["engine, own votes"].step()
    return "\n".join([*lines, "", f"Co-RL over own votes (the price of the exchange): {exchange:.2f}"])
