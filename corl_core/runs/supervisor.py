"""One run's supervisor: starts the agents, watches them, works out the cohort's metrics, and alone writes to MLflow.

It hosts the vote store, so that no agent's death takes the store along. An agent that fails ends the run with its name
and the round it was in; on every way out no agent is left behind, and the end is written down before MLflow is told.
"""

import math
import os
import signal
import time
import traceback
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, replace
from functools import partial
from typing import Any

import psutil
from filelock import FileLock, Timeout

from corl_core.runs.alarms import Bell
from corl_core.runs.beating import beating
from corl_core.runs.causes import cause
from corl_core.runs.checkpoints import resume_steps
from corl_core.runs.cohort import CohortMetrics
from corl_core.runs.folder import Run, Status, read_status, start_of, update_status
from corl_core.runs.journal import Journal, Line, Tail, before, read, whole_bytes
from corl_core.runs.launchers import Launcher, launcher
from corl_core.runs.settle import close_rollouts, mark_told
from corl_core.runs.watched import Watched as _Agent
from corl_core.runs.watched import end
from corl_core.tracking.log import Tracker

TICK_S = 0.2
HEARTBEAT_S = 1.0
BEGIN_S = 600.0  # after which a start that has not come to its end shows no sign of life any more
CHECKPOINT_SIGNAL = signal.SIGUSR1  # to an agent: save the weights now
GRACE_S = 10.0  # after which an agent that was asked to end is killed
STOP_STEPS = 10  # steps' worth of time that a stop waits before agents are made to end
MLFLOW_GRACE_S = 20.0  # how long a supervisor whose run has ended waits for MLflow
TAKE_OVER_S = 2.0  # how long a supervisor waits for another one of its run to leave, and when it is to follow that one:
FOLLOW_S = 60.0
RESERVE, RESERVE_BYTES = ".reserve", 65_536  # room for the last words of a run that has filled the disk


class Supervisor:
    """Runs one cohort to its end; `run` returns the final status."""

    def __init__(self, run: Run):
        me = psutil.Process()
        self.run_folder, self.config = run, run.config
        self.status = replace(read_status(run.path), state="starting", pid=me.pid, pid_created=start_of(me))
        self.stop_requested = False
        self._agents: dict[str, _Agent] = {}
        self._launcher: Launcher | None = None
        self._told: set[tuple[str, int]] = set()  # (event, step) of the cohort's own lines so far
        self._stalled = ""  # which agent shows no sign of life
        self._resume: dict[str, int] = {}  # agent → updates done in the checkpoint that it goes on from
        self._stop_reason = ""  # why the run stops itself; "" when a person asked
        self._beat()

    def run(self) -> Status:
        tracker, trace = Tracker(self.run_folder), ""
        try:
            with self._beating(BEGIN_S):
                self._begin()
            tracker.start()
            failure = self._watch()
        except Exception as error:  # such as a disk that is full: an end like any other
            trace = traceback.format_exc()
            failure = f"supervisor: {error}"
            self._has_failed(failure, cause(type(error).__name__, str(error), None))
        finally:
            self._end_agents()
        state = "failed" if failure else "stopped" if self.stop_requested else "finished"
        self._end(state, failure or self._stop_reason)
        with suppress(OSError):
            print(trace, end="", flush=True)
        if tracker.finish(self.status, MLFLOW_GRACE_S, self._is_followed):
            mark_told(self.run_folder, self.status.attempt)
        return self.status

    def _begin(self) -> None:
        """Starts the agents."""
        from corl_core.training.exchange import host_store

        (self.run_folder.path / RESERVE).write_bytes(bytes(RESERVE_BYTES))
        self._launcher = launcher(self.run_folder, self.status)
        self._store = host_store(self._launcher.host)
        self._journal = Journal(self.run_folder.path / "journal.jsonl")
        earlier = self._go_on() if self.status.attempt > 1 else {}
        told = read(self._journal.path)
        self._told = {(line["event"], line["step"]) for line in told if "step" in line}  # never written twice
        self._cohort, self._bell = CohortMetrics(self.config), Bell(self.config, told)
        self.status = replace(self.status, alarms=[asdict(alarm) for alarm in self._bell.alarms])
        for agent in self.config.agents:
            self._agents[agent.name] = self._start(agent.name)
        for name, lines in earlier.items():
            for line in lines:
                self._count(name, line)

    def _end(self, state: str, reason: str) -> None:
        """Writes the end down, on a full disk into the room that was kept for it; a folder that was deleted wants no word."""
        step = min((agent.steps for agent in self._agents.values()), default=self.status.step)
        self.status = replace(self.status, state=state, reason=reason, phase="", step=step)
        now = max(time.time(), self.status.started or 0.0)  # the clock may have been set back
        self.status = replace(self.status, ended=now, heartbeat=now, untold=True)
        if not self.run_folder.is_there:
            return
        (self.run_folder.path / RESERVE).unlink(missing_ok=True)
        update_status(self.run_folder.path, self.status)
        with suppress(OSError):  # the disk may still be full; whoever settles or resumes the run tries again
            close_rollouts(self.run_folder)

    def _is_followed(self) -> bool:
        """Whether the run goes on already, under a supervisor that waits for this one to leave."""
        return self.run_folder.is_there and read_status(self.run_folder.path).attempt > self.status.attempt

    def _go_on(self) -> dict[str, list[Line]]:
        """For a run that is resumed: where its agents go on from, and what each has written until there."""
        self._resume = resume_steps(self.run_folder)
        first = min(self._resume.values())
        self.status = replace(self.status, step=first, attempt_step=first)
        self._journal.write("attempt", step=first, attempt=self.status.attempt)
        print(f"attempt {self.status.attempt}: going on from step {first}", flush=True)
        paths = self.run_folder.journal_paths()
        return {name: before(read(paths[name]), step) for name, step in self._resume.items()}

    def _start(self, name: str) -> _Agent:
        path, resume = self.run_folder.journal_paths()[name], self._resume.get(name)
        written = whole_bytes(path)
        return _Agent(self._launcher.start(name, self._store.port, resume), Tail(path, written), steps=resume or 0)

    def _watch(self) -> str:
        """Until every agent has ended; returns what went wrong, '' when nothing did."""
        while True:
            self._launcher.wait([agent.process for agent in self._agents.values()], TICK_S)
            self._read_journals()
            self._pass_on_stop()
            if time.monotonic() - (self.status.beat or 0.0) >= HEARTBEAT_S:
                self._look_for_life()
                self._beat()
            failed = [(name, agent) for name, agent in self._agents.items() if agent.process.exitcode]
            if failed:
                return self._first_failure(failed)
            if all(agent.process.exitcode == 0 for agent in self._agents.values()):
                self._read_journals()
                return ""
            time.sleep(TICK_S / 4)

    def _read_journals(self) -> None:
        for name, agent in self._agents.items():
            for line in agent.tail.read():
                agent.read(line)
                if line["event"] in ("step", "update"):
                    self._mark_started(line["time"] - line["metrics"]["step_time_s"])
                if agent.asked_to_end and not self.stop_requested:
                    self.stop_requested, self._stop_reason = True, f"agent '{name}' was told to end by SIGTERM"
                self._count(name, line)

    def _count(self, name: str, line: Line) -> None:
        """What a line of an agent means for the cohort: its metrics and its alarms."""
        self._ring(self._bell.add(name, line))
        for event in self._cohort.add(name, line):
            if (event["event"], event["step"]) not in self._told:
                self._journal.write(**event)
            self._ring(self._bell.add("", event))

    def _ring(self, events: list[dict[str, Any]]) -> None:
        """Writes alarms down, and does what the run is to do about a new one as long as it trains."""
        for event in events:
            self._journal.write(**event)
        if not events:
            return
        self.status = replace(self.status, alarms=[asdict(alarm) for alarm in self._bell.alarms])
        new = [event for event in events if event["event"] == "alarm"]
        for event in new:
            print(f"alarm at step {event['step']}: {event['text']}", flush=True)
        if new and any(agent.process.exitcode is None for agent in self._agents.values()):
            self._act_on(new)

    def _act_on(self, alarms: list[dict[str, Any]]) -> None:
        if self.stop_requested:
            return
        if self.config.alarms.action == "checkpoint":
            for agent in self._agents.values():
                agent.process.signal(CHECKPOINT_SIGNAL, alone=True)
        if self.config.alarms.action == "stop" and (ends := self._bell.first_that_ends(alarms)):
            self.stop_requested = True
            self._stop_reason = f"alarm {ends['kind']} at step {ends['step']}: {ends['text']}"

    def _mark_started(self, moment: float) -> None:
        if self.status.started is None:
            state = "running" if self.status.state == "starting" else self.status.state
            self.status = replace(self.status, state=state, started=moment)

    def _pass_on_stop(self) -> None:
        agents = self._agents.values()
        if not self.stop_requested and (self.run_folder.path / "stop").exists():
            self.stop_requested = True
        if self.stop_requested and self.status.state != "stopping":
            self.status = replace(self.status, state="stopping")
            self._stop_at = time.monotonic() + self._stop_limit_s()
            for agent in agents:
                agent.process.signal(signal.SIGTERM)
        elif self.stop_requested and time.monotonic() > self._stop_at and any(agent.is_late for agent in agents):
            self._end_agents()

    def _stop_limit_s(self) -> float:
        """How long agents may take to end after their current step and its evaluation; slow models get longer."""
        slowest = max((agent.longest_step_s for agent in self._agents.values()), default=0.0)
        return 3 * GRACE_S + STOP_STEPS * slowest

    def _look_for_life(self) -> None:
        folders, first_step_s = self.run_folder.agent_path, self.config.exchange.timeout_s
        stalled = {name: agent.stalled(folders(name), first_step_s) for name, agent in self._agents.items()}
        self._stalled = "; ".join(f"agent '{name}' {why}" for name, why in stalled.items() if why)

    def _beat(self) -> None:
        """Tells that the run goes on, and how far it is. Raises OSError where that cannot be written."""
        agents = self._agents.values()
        phases = sorted((agent.phase for agent in agents if agent.phase), key=lambda phase: "%" not in phase)
        self.status = replace(
            self.status,
            heartbeat=time.time(),
            beat=time.monotonic(),
            step=min((agent.steps for agent in agents), default=self.status.step),
            max_steps=self.config.grpo.max_steps,
            placement=self._launcher.placement if self._launcher else self.status.placement,
            phase=phases[0] if phases else "",  # what the others wait for, if somebody makes progress
        )
        if not update_status(self.run_folder.path, self._shown()):  # somebody has seen it dead, and that stands
            self.stop_requested = True

    def _shown(self) -> Status:
        """The status as readers are told it: a run that is to end is stopping as soon as that is known, however long its agents
        take."""
        if self.stop_requested:
            return replace(self.status, state="stopping", reason=self.status.reason or self._stop_reason)
        if self._stalled and self.status.state in ("starting", "running"):
            return replace(self.status, state="stalled", reason=self._stalled)
        return self.status

    def _beating(self, limit_s: float) -> AbstractContextManager[None]:
        """A heartbeat while the supervisor is busy with one thing."""
        unwanted = partial(setattr, self, "stop_requested", True)
        return beating(self.run_folder.path, self._shown, unwanted, limit_s)

    def _first_failure(self, failed: list[tuple[str, _Agent]]) -> str:
        """Tells the other agents, waits for them, and says whose failure came first and why."""
        name, agent = failed[0]
        if self.stop_requested and agent.process.exitcode in (-signal.SIGKILL, -signal.SIGTERM):
            return ""
        reason = f"agent '{name}'{agent.place} {agent.why(self.run_folder.log_tail(name, 4096))}"
        self._has_failed(reason, agent.cause)
        from corl_core.training.exchange import ABORT

        self._store.set(ABORT, f"the run was aborted: {reason}")
        return reason

    def _has_failed(self, reason: str, why: str) -> None:
        """Told at once: the other agents may take their time to end, and this process may not live to see it."""
        self.status = replace(self.status, state="stopping", reason=reason, cause=why)
        with suppress(OSError):
            self._beat()

    def _end_agents(self) -> None:
        """Asks every agent that still runs to end, and kills those that do not within the grace, or whose folder is gone."""
        with self._beating(math.inf):  # each wait has its limit
            end([agent.process for agent in self._agents.values()], GRACE_S, politely=self.run_folder.is_there)
        with suppress(OSError):  # a full disk; the lines stay in the agents' journals
            self._read_journals()
        with suppress(OSError):
            if self._launcher is not None:
                self._launcher.close()


def _take_over(run: Run, lock: FileLock) -> bool:
    """Waits for this run's lock: briefly, and for longer when the run is this process's by its status, for then the supervisor
    that holds it is about to leave. False when another one keeps it, or has brought the run to its end."""
    begun = time.monotonic()
    while True:
        with suppress(Timeout):
            lock.acquire(timeout=0.1)
            return not read_status(run.path).final
        mine = read_status(run.path).pid == os.getpid()
        if time.monotonic() - begun > (FOLLOW_S if mine else TAKE_OVER_S):
            return False


def supervise(run: Run) -> Status:
    """A supervisor process's whole life; SIGTERM and Ctrl-C stop the run after the current step. A run has one at a time: a
    second one leaves it alone."""
    lock = FileLock(run.path / ".supervisor.lock")  # the system lets go of it when this process ends, however that is
    if not _take_over(run, lock):
        print("another supervisor runs this run: leaving it alone", flush=True)
        return read_status(run.path)
    supervisor = Supervisor(run)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(supervisor, "stop_requested", True))
    return supervisor.run()
