"""What any reader does that finds a run dead: writes down that it has ended, once, and keeps what its agents left unfinished.

`Run.status` only looks; `settle` also writes, so that everybody reads the same from then on and MLflow can be told.
"""

from contextlib import suppress
from dataclasses import replace

from filelock import FileLock, Timeout

from corl_core.runs.folder import Run, Status, locked, read_status, update_status, write_status

DYING_S = 2.0  # how long a process that has been killed may take to let go of its lock


def settle(run: Run) -> Status:
    """`Run.status`; the end of a run whose supervisor has died is written down. One who may not write, or has no room to, reads
    on."""
    status = run.status()
    if not status.final or read_status(run.path).final:
        return status
    try:
        with FileLock(run.path / ".supervisor.lock", timeout=DYING_S):
            status = run.status()
            if status.final and not read_status(run.path).final:
                status = replace(status, untold=status.pid is not None)
                keep_rollouts(run)
                update_status(run.path, status)
    except Timeout:  # some supervisor of the run lives, and will say so
        return read_status(run.path)
    except OSError:
        pass
    return status


def keep_rollouts(run: Run) -> None:
    """The rollouts that dead agents had not put into a Parquet file yet. Only while none of them lives."""
    from corl_core.runs.open_shard import OpenShard

    if run.problem:
        return
    for agent in run.config.agents:
        folder = run.agent_path(agent.name) / "rollouts"
        if folder.exists():
            OpenShard(folder).close()


def close_rollouts(run: Run) -> None:
    """Keeps what is unfinished, and makes the index that Votes and Theory read the run by, so that nobody who opens them waits
    for it."""
    from corl_core.rollouts.index import load

    keep_rollouts(run)
    for agent in () if run.problem else run.config.agents:
        load(run.agent_path(agent.name), run.config.num_votes)


def mark_told(run: Run, attempt: int) -> None:
    """MLflow knows how this attempt ended."""
    with suppress(OSError), locked(run.path):
        stored = read_status(run.path)
        if stored.final and stored.untold and stored.attempt == attempt:
            write_status(run.path, replace(stored, untold=False))
