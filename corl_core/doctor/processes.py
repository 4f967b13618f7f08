"""Supervisors, agents, samplers and dispatchers of this user whose run is gone or over: what nobody will end by itself.

A process counts as ours by its command line, never by its name or number alone: a supervisor names its run's folder there, and an
agent, a fork of a server that has loaded the training code, says nothing, but writes into its run's log. What is ended is the
very process that was seen: same number, same start, same command line.
"""

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import psutil

from corl_core.doctor.record import Finding
from corl_core.runs.folder import FINAL, Run, is_alive, read_status, start_of

SETTLE_S = 60.0  # a supervisor still has MLflow to tell after its run is over
GRACE_S = 5.0
AGENT_MARK = "corl_core.training.process"  # in the command line of the server that agents are forks of
LOG = "log.txt"
STARTED = {  # kind → how its command line begins, before the folder
    "supervisor": ("-m", "corl_core", "supervise"),
    "sampler": ("-m", "corl_core.training.candidates"),
    "dispatcher": ("-m", "corl_core.runs.queue_dispatch"),
}
MARKS = {"sampler": "request.yaml", "dispatcher": ""}  # kind → what its folder holds, where that is no run.yaml


@dataclass(frozen=True)
class Ours:
    """A process that belongs to a run folder."""

    pid: int
    created: float  # by `start_of`
    command: tuple[str, ...]
    kind: str  # 'agent', or one of STARTED
    run_path: Path  # the folder it works for


def check(runs_dir: Path) -> list[Finding]:
    found = [ours for ours in all_ours() if _inside(ours.run_path, runs_dir)]
    orphans = [(ours, why) for ours in found if (why := why_orphan(ours))]
    words = f"{len(found)} processes of these runs, {len(orphans)} that nobody needs"
    return [Finding("processes", "ok", words), *(_orphan(ours, why) for ours, why in orphans)]


def _orphan(ours: Ours, why: str) -> Finding:
    about = {"pid": ours.pid, "created": ours.created, "command": list(ours.command)}
    what = f"{ours.kind} of {ours.run_path.name}: {why}"
    return Finding(f"process {ours.pid}", "bad", what, f"end it: kill {ours.pid}", "end process", about)


def all_ours() -> list[Ours]:
    """Every supervisor and agent of this user, whatever its runs folder."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.uids().real == os.getuid() and (ours := recognised(process)):
                found.append(ours)
        except (psutil.Error, OSError):
            continue
    return found


def recognised(process: psutil.Process) -> Ours | None:
    command = tuple(process.cmdline())
    if found := started(command):
        return Ours(process.pid, start_of(process), command, *found)
    if any(AGENT_MARK in part for part in command) and (path := _log_of(process.pid)):
        return Ours(process.pid, start_of(process), command, "agent", path)
    return None


def started(command: tuple[str, ...]) -> tuple[str, Path] | None:
    """What it is, and the folder that it names: `python -m corl_core supervise FOLDER`, and the like."""
    for kind, words in STARTED.items():
        for place in range(len(command) - len(words)):
            if command[place : place + len(words)] == words:
                return kind, Path(command[place + len(words)])
    return None


def why_orphan(ours: Ours) -> str:
    """Why nobody needs this process any more; '' when somebody does, or may."""
    if not (ours.run_path / MARKS.get(ours.kind, "run.yaml")).exists():
        return "its run is gone" if ours.kind in ("supervisor", "agent") else "its folder is gone"
    if ours.kind == "dispatcher":
        return ""
    status = read_status(ours.run_path)
    if status.state in FINAL and time.time() - (status.ended or status.created) > SETTLE_S:
        return f"its run is {status.state}"
    if ours.kind != "agent" or status.pid is None or is_alive(status.pid, status.pid_created or 0.0):
        return ""
    return "its supervisor is gone" if Run(ours.run_path).status().final else ""


def end(finding: Finding, runs_dir: Path) -> list[str]:
    """Asks, waits, and then kills: the process that was found, if it is still that one and still without a run."""
    about = finding.about
    try:
        process = psutil.Process(about["pid"])
        ours = recognised(process)
        same = ours and abs(ours.created - about["created"]) < 0.01 and list(ours.command) == about["command"]
        if not same or not why_orphan(ours):
            return [f"process {about['pid']}: no longer the one that was seen; left alone"]
        for number, wait_s in ((signal.SIGTERM, GRACE_S), (signal.SIGKILL, GRACE_S)):
            process.send_signal(number)
            process.send_signal(signal.SIGCONT)  # one that is stopped hears nothing until it goes on
            if process in psutil.wait_procs([process], timeout=wait_s)[0]:
                return [f"process {about['pid']}: ended"]
    except psutil.NoSuchProcess:
        return [f"process {about['pid']}: ended"]
    except psutil.Error as error:
        return [f"process {about['pid']}: cannot be ended ({error})"]
    return [f"process {about['pid']}: does not end; it may hang in the driver"]


def _log_of(pid: int) -> Path | None:
    """The run folder whose agent's log this process writes its output to: RUN/agents/NAME/log.txt."""
    try:
        log = Path(os.readlink(f"/proc/{pid}/fd/1").removesuffix(" (deleted)"))
    except OSError:
        return None
    return log.parents[2] if log.name == LOG and len(log.parents) > 2 and log.parents[1].name == "agents" else None


def _inside(path: Path, runs_dir: Path) -> bool:
    return path.resolve().is_relative_to(runs_dir.resolve())
