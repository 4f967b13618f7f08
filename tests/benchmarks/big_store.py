"""A store as large as a long study: by default 100 runs × 20 metrics × 1,000 steps, with their run folders.

    python -m tests.benchmarks.big_store RUNS_DIR [--runs 100] [--steps 1000]

The schema is MLflow's own; the rows are written straight into its tables, since two million calls to log_metric take an hour.
Curves are made-up: a level that rises, with noise and now and then a spike. Groups of ten seeds share a config.
"""

import argparse
import json
import random
import sqlite3
import uuid
from pathlib import Path

import numpy as np

from corl_core.config import RunConfig
from corl_core.runs.folder import Status, write_status
from corl_core.tracking.store import EXPERIMENT, ensure_store

METRICS = (
    "reward", "reward_std", "frac_reward_zero_std", "labeled_frac", "vote_share", "parse_rate", "tie_rate",
    "pseudo_label_accuracy", "vote_accuracy", "reward_accuracy", "false_reward_rate", "entropy", "completions/mean_length",
    "completions/clipped_ratio", "loss", "grad_norm", "step_time_s", "tokens", "agreement", "error_overlap/kappa",
)  # fmt: skip
SHOWN = ("agreement", "pseudo_label_accuracy", "reward_std", "entropy")  # the four that are measured
START = 1_796_000_000
SEEDS = 10


def make(runs_dir: Path, num_runs: int = 100, num_steps: int = 1000) -> None:
    """Makes the folders and the store; does nothing where they are there."""
    if (runs_dir / "made.json").exists():
        return
    uri = f"sqlite:///{runs_dir.resolve() / 'mlflow.db'}"
    experiment = ensure_store(uri, runs_dir).get_experiment_by_name(EXPERIMENT).experiment_id
    with sqlite3.connect(runs_dir / "mlflow.db") as store:
        store.execute("pragma synchronous=off")
        for number in range(num_runs):
            _run(store, runs_dir, experiment, number, num_steps)
    (runs_dir / "made.json").write_text(json.dumps({"runs": num_runs, "steps": num_steps}))


def _run(store: sqlite3.Connection, runs_dir: Path, experiment: str, number: int, num_steps: int) -> None:
    config = _config(number, num_steps)
    run_id, started = f"20261130-{number // 60:02d}{number % 60:02d}00-study-{number:04x}", START + 60 * number
    folder = runs_dir / run_id
    folder.mkdir()
    (folder / "run.yaml").write_text(config.to_yaml())
    ended = float(started + num_steps)
    write_status(folder, Status("finished", started, step=num_steps, max_steps=num_steps, started=started, ended=ended))
    key = uuid.UUID(int=random.Random(number).getrandbits(128)).hex
    _add(store, "runs", {
        "run_uuid": key, "name": f"{config.name} {config.seed}", "source_type": "LOCAL", "status": "FINISHED",
        "start_time": started * 1000, "end_time": int(ended * 1000), "lifecycle_stage": "active",
        "experiment_id": int(experiment), "user_id": "bench",
    })  # fmt: skip
    tags = {"corl.run_id": run_id, "corl.role": "cohort", "mlflow.runName": f"{config.name} {config.seed}"}
    for name, value in tags.items():
        _add(store, "tags", {"run_uuid": key, "key": name, "value": value})
    noise = np.random.default_rng(number)
    steps = np.arange(num_steps)
    for place, name in enumerate(METRICS):
        values = 0.4 + 0.02 * place + 0.3 * (1 - np.exp(-3 * steps / num_steps)) + 0.05 * noise.standard_normal(num_steps)
        values[noise.integers(0, num_steps, 3)] += 0.5
        values = np.cumsum(np.abs(values)) * 1000 if name == "tokens" else values
        rows = [(key, name, float(v), (started + s) * 1000, 0, s) for s, v in enumerate(values.tolist())]
        columns = "(run_uuid, key, value, timestamp, is_nan, step)"
        store.executemany(f"insert into metrics {columns} values (?, ?, ?, ?, ?, ?)", rows)
        store.execute(f"insert into latest_metrics {columns} values (?, ?, ?, ?, ?, ?)", rows[-1])


def _config(number: int, num_steps: int) -> RunConfig:
    families = ("llama", "qwen2")
    return RunConfig.model_validate({
        "name": f"study {number // SEEDS}", "seed": number % SEEDS,
        "agents": [{"name": family, "model": f"tiny:{family}"} for family in families],
        "data": {"train": "arithmetic", "prompt_template": "{question}"},
        "grpo": {"max_steps": num_steps, "learning_rate": 1e-5 * (1 + number // SEEDS)},
    })  # fmt: skip


def _add(store: sqlite3.Connection, table: str, row: dict[str, object]) -> None:
    marks = ", ".join("?" * len(row))
    store.execute(f"insert into {table} ({', '.join(row)}) values ({marks})", tuple(row.values()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs_dir", type=Path)
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--steps", type=int, default=1000)
    given = parser.parse_args()
    make(given.runs_dir, given.runs, given.steps)
