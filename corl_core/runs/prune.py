"""Checkpoints removed by rule: none are kept of a run that has finished, the newest of one that can still be resumed.

On a ring only a step that every agent has can be gone on from, so it is those that are counted, and whatever is newer than the
newest of them is of no use either. Without a ring each agent's own are.
"""

import shutil
from pathlib import Path

from filelock import FileLock

from corl_core.runs import checkpoints
from corl_core.runs.folder import Run
from corl_core.runs.launch import LaunchError
from corl_core.runs.trash import size_bytes


def default_keep(run: Run) -> int:
    return 0 if run.status().state == "finished" else 1


def prune(run: Run, keep: int | None = None) -> int:
    """Keeps the newest `keep` steps to go on from (None: by the rule above); returns the bytes freed. Raises LaunchError."""
    with FileLock(run.path / ".resume.lock"):  # nobody resumes it meanwhile
        if not (status := run.status()).final:
            raise LaunchError(f"{run.id} is still {status.state}: its agents keep the newest themselves (checkpoints.keep)")
        keep = default_keep(run) if keep is None else keep
        return sum(_remove(path) for path in superfluous(run, keep))


def superfluous(run: Run, keep: int) -> list[Path]:
    """The checkpoint folders that go, those without their mark included."""
    have = {agent.name: checkpoints.complete(run.agent_path(agent.name)) for agent in run.config.agents}
    common = sorted(set.intersection(*map(set, have.values()))) if have else []
    goes = []
    for name, steps in have.items():
        usable = common if run.config.has_ring else steps
        kept = {f"checkpoint-{step}" for step in usable[len(usable) - min(keep, len(usable)) :]}
        there = sorted(checkpoints.folder(run.agent_path(name)).glob("checkpoint-*"))
        goes += [path for path in there if path.is_dir() and not path.is_symlink() and path.name not in kept]
    return goes


def _remove(path: Path) -> int:
    size = size_bytes(path)
    (path / checkpoints.COMPLETE).unlink(missing_ok=True)  # first: half of a checkpoint is none
    shutil.rmtree(path)
    return size
