"""Rollouts for tests, written by the recorder that training uses, from answers that a test spells out.

A draw is one question in one step: {"step", "id", "truth", agent: (answers, label)}, with answers as in "5 5 7 -", where - is
a completion without an answer, and "" as label for none.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from corl_core.config import RunConfig
from corl_core.runs.folder import Run, Status, write_status
from corl_core.training.recorder import ROLLOUT_SCHEMA, Recorder

Draw = Mapping[str, Any]


def small_config(method: str = "corl", agents: Sequence[str] = ("a", "b"), k: int = 4, **fields: Any) -> RunConfig:
    """A cohort of tiny models with K rollouts a group."""
    values = {
        "name": "small", "method": method, "agents": [{"name": name, "model": "tiny:llama"} for name in agents],
        "grpo": {"num_generations": k, "max_steps": 100} | fields.pop("grpo", {}),
    } | fields  # fmt: skip
    return RunConfig.model_validate(values)


def made_run(folder: Path, draws: Sequence[Draw], config: RunConfig | None = None, state: str = "finished") -> Run:
    """A run whose agents have saved these draws, in shards of 25 steps and what is left."""
    run = Run(folder / "20261130-090000-small-0001")
    run.path.mkdir(parents=True)
    config = config or small_config()
    (run.path / "run.yaml").write_text(config.to_yaml(), encoding="utf-8")
    write_status(run.path, Status(state=state, created=1_796_000_000.0, started=1_796_000_000.0, ended=1_796_000_100.0))
    for agent in config.agents:
        record(run, agent.name, draws)
    return run


def record(run: Run, agent: str, draws: Sequence[Draw], resume: int | None = None) -> None:
    """Lets an agent record its part of the draws, perhaps as one that goes on from a step; a step's draws are one call."""
    recorder = Recorder(run.agent_path(agent), agent)
    if resume is not None:
        recorder.resume(resume)
    steps = list(dict.fromkeys(draw["step"] for draw in draws if agent in draw))
    for step in steps:
        own = [draw for draw in draws if draw["step"] == step and agent in draw]
        recorder.rollouts(step, [row for place, draw in enumerate(own) for row in rows(draw, agent, place, run.config)])
    recorder.flush()


def rows(draw: Draw, agent: str, place: int, config: RunConfig) -> list[dict[str, Any]]:
    """The rows of one group, as the recorder takes them."""
    answers, label = draw[agent]
    made = []
    for number, answer in enumerate(answers.split()):
        key = None if answer == "-" else answer
        row = {
            "group": place, "question_id": draw["id"], "question": draw.get("question", f"What is {draw['id']}?"),
            "completion": draw.get("text", "so") if key is None else f"{draw.get('text', 'so')} \\boxed{{{key}}}.",
            "answer": key, "key": key, "outcome": "no_box" if key is None else "parsed", "pseudo_label": label or None,
            "reward": float(key == label) if label else None, "truth": draw.get("truth"),
            "trained": number < config.grpo.num_generations,
        }  # fmt: skip
        made.append({name: value for name, value in row.items() if name in ROLLOUT_SCHEMA.names})
    return made
