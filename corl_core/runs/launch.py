"""Starting, stopping and deleting runs. A run is its own session: it outlives the browser and the dashboard."""

import os
import re
import secrets
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
from filelock import FileLock

from corl_core import extras
from corl_core.config import RunConfig
from corl_core.data.preflight import refuse_before_launch
from corl_core.runs import at_hand
from corl_core.runs.folder import QUEUED, Run, Status, is_alive, locked, read_status, start_of, write_status
from corl_core.runs.inside import make_folder
from corl_core.runs.placement import visible_gpus, wishes

PROJECT = Path(__file__).resolve().parents[2]
MIN_FREE_BYTES = 200 * 2**20


class LaunchError(RuntimeError):
    """A run that could not be started or removed; the text says what to do."""


def create(config: RunConfig, runs_dir: Path, state: str = "starting", phase: str = "") -> Run:
    """A new run folder with its configuration; nothing is started. Raises LaunchError, PlacementError for GPUs that there
    are not, MissingPackage, and ConfigError for files that there are not."""
    wishes(config, visible_gpus())
    extras.check(config)
    at_hand.check(config)
    slug = re.sub(r"[^a-z0-9]+", "-", config.name.lower()).strip("-")[:40] or "run"
    path = Path(runs_dir) / f"{time.strftime('%Y%m%d-%H%M%S')}-{slug}-{secrets.token_hex(4)}"
    try:
        path.mkdir(parents=True)
        if shutil.disk_usage(path).free < MIN_FREE_BYTES:
            raise LaunchError(f"less than {MIN_FREE_BYTES >> 20} MB free in {runs_dir}: free some disk or use --runs DIR")
        (path / "run.yaml").write_text(config.to_yaml(), encoding="utf-8")
        for agent in config.agents:
            make_folder(path / "agents" / agent.name, within=path)
        write_status(path, Status(state=state, created=time.time(), phase=phase, max_steps=config.grpo.max_steps))
    except OSError as error:
        raise LaunchError(f"cannot write to {runs_dir}: {error.strerror}; use --runs DIR with a folder you may write") from error
    return Run(path)


def launch(config: RunConfig, runs_dir: Path) -> Run:
    """Starts a run in the background and returns at once. Raises LaunchError, and DataError for data it is refused for."""
    refuse_before_launch(config)
    run = create(config, runs_dir)
    start(run)
    return run


def resume(run: Run) -> None:
    """Goes on with a run that was stopped or that failed, from its agents' last common checkpoint, in the background. Raises
    LaunchError when it has finished or still runs."""
    with FileLock(run.path / ".resume.lock"):  # two clicks at once: the second finds a run that is starting
        reopen(run)
        start(run)


def reopen(run: Run) -> None:
    """Takes back that a run has ended, for a supervisor that is about to start. Raises LaunchError as `resume` does."""
    status = run.status()
    if status.state == "finished":
        raise LaunchError(f"{run.id} has finished: there is nothing to resume; start a new run from its configuration")
    if not status.final:
        raise LaunchError(f"{run.id} is {status.state}: it can be resumed once it has ended")
    (run.path / "stop").unlink(missing_ok=True)
    now = {"heartbeat": time.time(), "beat": time.monotonic()}
    ready = Status("starting", status.created, step=status.step, max_steps=status.max_steps, **now)
    with locked(run.path):
        write_status(run.path, replace(ready, attempt=status.attempt + 1, first_started=status.first_started or status.started))


def start(run: Run) -> None:
    """A supervisor of its own session for the run, which takes its status over. It sees only GPUs that the run was put on."""
    path = os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))
    environment = os.environ | {"PYTHONPATH": path} | ({"CUDA_VISIBLE_DEVICES": run.gpu} if run.gpu else {})
    with (run.path / "supervisor.log").open("ab") as log:
        supervisor = subprocess.Popen(
            [sys.executable, "-m", "corl_core", "supervise", str(run.path)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env=environment,
        )  # fmt: skip
    process = psutil.Process(supervisor.pid)
    with locked(run.path):  # within milliseconds, and the supervisor takes its status over; should it be faster, it stands
        found = read_status(run.path)
        if found.pid is None or not is_alive(found.pid, found.pid_created or 0.0):
            write_status(run.path, replace(found, state="starting", phase="", pid=process.pid, pid_created=start_of(process)))


def stop(run: Run) -> None:
    """Asks a run to stop after the current step; returns at once. A run that waits leaves the queue, and one that has ended is
    left as it is."""
    from corl_core.runs import queue  # which starts runs through this module

    if run.status().state == QUEUED and queue.cancel(run):
        return
    if not run.status().final:
        (run.path / "stop").touch()


def kill(run: Run) -> None:
    """Ends the supervisor of a run that does not answer; its agents end with it. The run has then failed."""
    status = run.status()
    if not status.final and status.pid is not None and is_alive(status.pid, status.pid_created or 0.0):
        os.kill(status.pid, signal.SIGKILL)


def delete(run: Run) -> None:
    """Removes the run's folder; its curves in MLflow stay. Raises LaunchError while it runs."""
    if not run.status().final:
        raise LaunchError(f"{run.id} is still {run.status().state}: stop it first")
    shutil.rmtree(run.path)
