"""Runs made for the page tests, the way the engine makes them, without training.

A folder with run.yaml and status.json, journals beside it, and the journals logged to MLflow.
The numbers are smooth made-up curves.
"""

import math
import os
import random
import re
import time
from pathlib import Path

import psutil

from corl_core.config import RunConfig
from corl_core.runs.folder import Run, Status, start_of, write_status
from corl_core.runs.inside import make_folder
from corl_core.runs.journal import Journal
from corl_core.tracking.log import RunLogger
from corl_core.tracking.store import tracking_uri

MEASURES = ("kappa", "jaccard", "same_wrong", "both_wrong")
CREATED = 1_796_000_000.0  # unix seconds
GAIN = {"corl": 0.3, "ttrl": -0.08, "ground_truth": 0.35}


def run_config(name: str = "demo", method: str = "corl", seed: int = 0, steps: int = 20) -> RunConfig:
    """A small config in the shape of the demo."""
    families = ("llama", "qwen2", "gpt_neox")
    return RunConfig.model_validate(
        {
            "name": name,
            "method": method,
            "seed": seed,
            "agents": [{"name": family, "model": f"tiny:{family}"} for family in families],
            "data": {"train": "arithmetic", "prompt_template": "{question}"},
            "grpo": {"max_steps": steps},
            "eval": {"every_steps": max(1, steps // 5)},
        }
    )


def make_run(
    runs_dir: Path,
    config: RunConfig,
    state: str = "finished",
    steps: int | None = None,
    number: int = 0,
    logged: bool = True,
    reason: str = "",
) -> Run:
    """A run folder that stands at `steps` updates, with its metrics logged."""
    done = config.grpo.max_steps if steps is None else steps
    clock = time.strftime("%Y%m%d-%H%M%S", time.gmtime(CREATED + 60 * number))
    slug = re.sub(r"[^a-z0-9]+", "-", config.name.lower()).strip("-")
    path = runs_dir / f"{clock}-{slug}-{number:04x}"
    path.mkdir(parents=True)
    (path / "run.yaml").write_text(config.to_yaml(), encoding="utf-8")
    run = Run(path)
    write_status(path, _status(state, done, config.grpo.max_steps, number, reason))
    for place, agent in enumerate(config.agents):
        _write_agent(run, agent.name, place, done)
    _write_cohort(run, done)
    if logged:
        RunLogger(run, tracking_uri(runs_dir)).flush()
    return run


def _status(state: str, done: int, steps: int, number: int, reason: str) -> Status:
    created = CREATED + 60 * number
    process = psutil.Process(os.getpid())
    alive = state not in ("finished", "stopped", "failed")
    return Status(
        state=state,
        created=time.time() - 90 if alive else created,
        reason=reason,
        pid=process.pid,
        pid_created=start_of(process),
        step=done,
        max_steps=steps,
        started=time.time() - 60 if alive else created + 5,
        ended=None if alive else created + 5 + done,
        heartbeat=time.time() + 3600 if alive else created + 5 + done,
    )


def _write_agent(run: Run, agent: str, place: int, done: int) -> None:
    config, noise = run.config, random.Random(f"{run.id}{agent}")
    steps, gain = config.grpo.max_steps, GAIN[config.method]
    make_folder(run.path / "agents" / agent, within=run.path)
    journal = Journal(run.path / "agents" / agent / "journal.jsonl")
    (run.path / "agents" / agent / "log.txt").write_text(f"{agent} step {done}\n")
    for step in range(done + 1):
        level = 0.62 + 0.02 * place + gain * (1 - math.exp(-3 * step / steps))
        if step % config.eval.every_steps == 0 or step == steps:
            right = level + noise.gauss(0, 0.01)
            metrics = {"eval/accuracy": right, "eval/majority_accuracy": min(1.0, right + 0.08)}
            journal.write("eval", step=step, metrics=metrics)
        if step < done:
            label = round(8 * min(1, max(0, level + noise.gauss(0, 0.12)))) / 8
            spread = max(0.02, 0.34 - gain * 0.6 * step / steps + noise.gauss(0, 0.03))
            metrics = {"pseudo_label_accuracy": label, "reward_std": spread, "reward": level}
            metrics |= {"tokens": 1000 * (step + 1), "step_time_s": 0.5}
            journal.write("step", step=step, metrics=metrics)


def _write_cohort(run: Run, done: int) -> None:
    config, noise = run.config, random.Random(run.id)
    names = [agent.name for agent in config.agents]
    pairs = [f"{a}.{b}" for i, a in enumerate(names) for b in names[i + 1 :]]
    journal = Journal(run.path / "journal.jsonl")
    for step in range(done):
        level = 0.5 + 0.35 * step / config.grpo.max_steps
        metrics = {}
        for pair in pairs:
            metrics[f"agreement/{pair}"] = min(1, max(0, level + noise.gauss(0, 0.08)))
            for measure in MEASURES:
                metrics[f"error_overlap/{measure}/{pair}"] = 0.1 + noise.gauss(0, 0.1)
        for name in ("agreement", *(f"error_overlap/{measure}" for measure in MEASURES)):
            own = [value for key, value in metrics.items() if key.startswith(f"{name}/")]
            metrics[name] = sum(own) / len(own)
        journal.write("step", step=step, metrics=metrics)
