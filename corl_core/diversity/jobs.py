"""Candidates sampled in the background: a folder each, under `diversity/` in the runs folder.

    request.yaml    the candidates, the questions and how much is sampled (see `request.py`)
    status.json     state, progress and process, as a run's; `step` counts completions
    stop            present once somebody asked it to stop
    log.txt         what the sampling process says
    answers.parquet the answers of every candidate that is done: question_id, question, truth, model, sample, answer, completion

The process is its own session, so it outlives the browser and the dashboard. What is sampled is kept; it is a file of answers
like any other, so `--answers` reads it. No folder here holds a run.yaml, so none is taken for a run.
"""

import os
import secrets
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import psutil

from corl_core.config import ConfigError, RunConfig
from corl_core.runs.folder import Status, is_alive, read_status, start_of, write_status
from corl_core.runs.launch import MIN_FREE_BYTES, PROJECT, LaunchError

FOLDER = "diversity"
REQUEST, ANSWERS, LOG = "request.yaml", "answers.parquet", "log.txt"
LOG_BYTES = 16_384


@dataclass(frozen=True)
class Job:
    """One sampling of candidates, under way or kept."""

    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @cached_property
    def request(self) -> RunConfig:
        return RunConfig.from_yaml((self.path / REQUEST).read_text(encoding="utf-8"), source=str(self.path / REQUEST))

    @property
    def answers(self) -> Path | None:
        """The file of answers; None before the first candidate is done."""
        path = self.path / ANSWERS
        return path if path.exists() else None

    def status(self) -> Status:
        """The state as it is now: a process that is gone without having said so has failed."""
        claim = read_status(self.path)
        if claim.final:
            return claim
        if claim.pid is not None and not is_alive(claim.pid, claim.pid_created or 0.0):
            return replace(claim, state="failed", reason="the sampling process was killed", ended=claim.heartbeat)
        return replace(claim, state="stopping") if self.stop_requested else claim

    @property
    def stop_requested(self) -> bool:
        return (self.path / "stop").exists()

    def log_tail(self) -> str:
        """The end of what the process says; '' when it said nothing."""
        path = self.path / LOG
        return path.read_bytes()[-LOG_BYTES:].decode("utf-8", errors="replace") if path.exists() else ""


def all_jobs(runs_dir: Path) -> list[Job]:
    """Those whose request can be read, newest first."""
    found = [Job(path.parent) for path in (Path(runs_dir) / FOLDER).glob(f"*/{REQUEST}")]
    return sorted((job for job in found if _readable(job)), key=lambda job: job.id, reverse=True)


def find_job(runs_dir: Path, ref: str) -> Job | None:
    """A job by its id, or an unambiguous start of it."""
    found = [job for job in all_jobs(runs_dir) if ref and job.id.startswith(ref)]
    return next((job for job in found if job.id == ref), found[0] if len(found) == 1 else None)


def create(request: RunConfig, runs_dir: Path) -> Job:
    """A new folder with its request; nothing is started. Raises LaunchError."""
    path = Path(runs_dir) / FOLDER / f"{time.strftime('%Y%m%d-%H%M%S')}-{secrets.token_hex(2)}"
    try:
        path.mkdir(parents=True)
        if shutil.disk_usage(path).free < MIN_FREE_BYTES:
            raise LaunchError(f"less than {MIN_FREE_BYTES >> 20} MB free in {runs_dir}: free some disk or use --runs DIR")
        write_status(path, Status(state="starting", created=time.time(), max_steps=num_completions(request)))
        (path / REQUEST).write_text(request.to_yaml(), encoding="utf-8")
    except OSError as error:
        raise LaunchError(f"cannot write to {runs_dir}: {error.strerror}; use --runs DIR with a folder you may write") from error
    return Job(path)


def launch(request: RunConfig, runs_dir: Path) -> Job:
    """Starts the sampling in the background and returns at once. Raises LaunchError."""
    job = create(request, runs_dir)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, [str(PROJECT), os.environ.get("PYTHONPATH")]))}
    with (job.path / LOG).open("wb") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "corl_core.training.candidates", str(job.path)],
            stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True, env=environment,
        )  # fmt: skip
    # Within milliseconds, so well before the process, which takes its status over from here.
    began = start_of(psutil.Process(started.pid))
    write_status(job.path, replace(read_status(job.path), pid=started.pid, pid_created=began))
    return job


def stop(job: Job) -> None:
    """Asks to stop after the current batch; the candidates that are done stay."""
    if not job.status().final:
        (job.path / "stop").touch()


def delete(job: Job) -> None:
    """Removes the folder with its answers. Raises LaunchError while it is sampling."""
    if not job.status().final:
        raise LaunchError(f"{job.id} is still sampling: stop it first")
    shutil.rmtree(job.path)


def num_completions(request: RunConfig) -> int:
    """How many completions are asked for; a source with fewer questions gives fewer."""
    return len(request.agents) * request.eval.num_questions * request.eval.num_samples


def _readable(job: Job) -> bool:
    try:
        return bool(job.request)
    except (ConfigError, OSError):
        return False
