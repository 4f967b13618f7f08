"""Where a run can go on from: the checkpoints that its agents have finished writing.

    agents/NAME/checkpoints/checkpoint-STEP/    TRL's own files, the teacher if there is one, and `complete.json`, written last

A checkpoint without its mark was cut off while it was written, and does not count.
"""

from pathlib import Path

from corl_core.runs.folder import Run

COMPLETE = "complete.json"


def folder(agent_path: Path) -> Path:
    return agent_path / "checkpoints"


def path(agent_path: Path, step: int) -> Path:
    return folder(agent_path) / f"checkpoint-{step}"


def complete(agent_path: Path) -> list[int]:
    """The steps (updates done) of an agent's whole checkpoints, in order."""
    marks = folder(agent_path).glob(f"checkpoint-*/{COMPLETE}")
    return sorted(int(number) for mark in marks if (number := mark.parent.name.removeprefix("checkpoint-")).isdigit())


def resume_steps(run: Run) -> dict[str, int]:
    """agent → the step it goes on from; 0 starts over. Agents on a ring all go on from the newest step that each of them
    has; agents that exchange nothing go on from their own newest."""
    have = {agent.name: complete(run.agent_path(agent.name)) for agent in run.config.agents}
    if not run.config.has_ring:
        return {name: max(steps, default=0) for name, steps in have.items()}
    common = max(set.intersection(*map(set, have.values())), default=0)
    return dict.fromkeys(have, common)
