"""One run's supervisor: starts the agents, watches them, works out the cohort's metrics, and alone writes to MLflow.

It hosts the vote store, so that no agent's death takes the store along. An agent that fails ends the run with its name
and the round it was in; on every way out no agent is left behind.
"""

import multiprocessing
import os
import signal
import time
from dataclasses import asdict, dataclass, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

import psutil
from filelock import FileLock, Timeout

from corl_core.runs.alarms import Bell
from corl_core.runs.causes import cause
from corl_core.runs.checkpoints import resume_steps
from corl_core.runs.cohort import CohortMetrics
from corl_core.runs.folder import Run, Status, read_status, write_status
from corl_core.runs.journal import Journal, Line, Tail, before, read, whole_bytes
from corl_core.tracking.log import Tracker

TICK_S = 0.2
HEARTBEAT_S = 1.0
CHECKPOINT_SIGNAL = signal.SIGUSR1  # to an agent: save the weights now
GRACE_S = 10.0  # after which an agent that was asked to end is killed
STOP_STEPS = 10  # steps' worth of time that a stop waits before agents are made to end
MLFLOW_GRACE_S = 20.0  # how long a run that has ended waits for MLflow


@dataclass
class _Agent:
    """What the supervisor knows of one agent."""

    process: BaseProcess
    tail: Tail
    steps: int = 0  # steps written down
    phase: str = "starting"
    error: str = ""
    error_kind: str = ""
    longest_step_s: float = 0.0


class Supervisor:
    """Runs one cohort to its end; `run` returns the final status."""

    def __init__(self, run: Run):
        me = psutil.Process()
        self.run_folder, self.config = run, run.config
        self.status = replace(
            read_status(run.path), state="starting", pid=me.pid, pid_created=me.create_time(), heartbeat=time.time()
        )
        self.stop_requested = False
        self._resume: dict[str, int] = {}  # agent → updates done in the checkpoint that it goes on from
        self._stop_reason = ""  # why the run stops itself; "" when a person asked
        self._beat()

    def run(self) -> Status:
        # A forkserver that has imported the training code once: each agent then starts at once and shares its memory.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["corl_core.training.process"])
        from corl_core.training.exchange import host_store

        self._store = host_store()
        self._journal = Journal(self.run_folder.path / "journal.jsonl")
        earlier = self._go_on() if self.status.attempt > 1 else {}
        told = read(self._journal.path)
        self._told = {(line["event"], line["step"]) for line in told if "step" in line}  # never written twice
        self._cohort, self._bell = CohortMetrics(self.config), Bell(self.config, told)
        self.status = replace(self.status, alarms=[asdict(alarm) for alarm in self._bell.alarms])
        self._agents = {agent.name: self._start(context, agent.name) for agent in self.config.agents}
        for name, lines in earlier.items():
            for line in lines:
                self._count(name, line)
        tracker = Tracker(self.run_folder)
        tracker.start()
        try:
            reason = self._watch()
        finally:
            self._end_agents()
        self._beat()
        state = "failed" if reason else "stopped" if self.stop_requested else "finished"
        reason = reason or self._stop_reason
        self.status = replace(self.status, state=state, reason=reason, phase="", ended=time.time(), heartbeat=time.time())
        tracker.finish(self.status, MLFLOW_GRACE_S)
        write_status(self.run_folder.path, self.status)
        return self.status

    def _go_on(self) -> dict[str, list[Line]]:
        """For a run that is resumed: where its agents go on from, and what each has written until there."""
        self._resume = resume_steps(self.run_folder)
        first = min(self._resume.values())
        self.status = replace(self.status, step=first, attempt_step=first)
        self._journal.write("attempt", step=first, attempt=self.status.attempt)
        print(f"attempt {self.status.attempt}: going on from step {first}", flush=True)
        paths = self.run_folder.journal_paths()
        return {name: before(read(paths[name]), step) for name, step in self._resume.items()}

    def _start(self, context: Any, name: str) -> _Agent:
        from corl_core.training import process as agent_process

        path, resume = self.run_folder.journal_paths()[name], self._resume.get(name)
        written = whole_bytes(path)
        arguments = (str(self.run_folder.path), name, self._store.port, self.status.pid, self.status.pid_created, resume)
        process = context.Process(target=agent_process.main, args=arguments, name=name)
        process.start()
        return _Agent(process, Tail(path, written), steps=resume or 0)

    def _watch(self) -> str:
        """Until every agent has ended; returns what went wrong, '' when nothing did."""
        while True:
            wait([agent.process.sentinel for agent in self._agents.values()], TICK_S)
            self._read_journals()
            self._pass_on_stop()
            if time.time() - (self.status.heartbeat or 0.0) >= HEARTBEAT_S:
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
                match line["event"]:
                    case "step" | "update":  # an update of older rollouts is a step without rollouts
                        agent.steps, agent.phase = line["step"] + 1, ""
                        step_s = line["metrics"]["step_time_s"]
                        agent.longest_step_s = max(agent.longest_step_s, step_s)
                        self._mark_started(line["time"] - step_s)
                    case "phase":
                        share = f" {100 * line['done'] // line['total']}%" if "total" in line else ""
                        agent.phase = line["phase"] + share
                    case "error":
                        agent.error, agent.error_kind = line["message"], line["kind"]
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
            self._act_on(new[0])

    def _act_on(self, alarm: dict[str, Any]) -> None:
        if self.stop_requested:
            return
        if self.config.alarms.action == "checkpoint":
            for agent in self._agents.values():
                _signal(agent.process, CHECKPOINT_SIGNAL, alone=True)
        if self.config.alarms.action == "stop":
            self.stop_requested = True
            self._stop_reason = f"alarm {alarm['kind']} at step {alarm['step']}: {alarm['text']}"

    def _mark_started(self, moment: float) -> None:
        if self.status.started is None:
            self.status = replace(self.status, state="running", started=moment)

    def _pass_on_stop(self) -> None:
        if not self.stop_requested and (self.run_folder.path / "stop").exists():
            self.stop_requested = True
        if self.stop_requested and self.status.state != "stopping":
            self.status = replace(self.status, state="stopping")
            self._stop_at = time.monotonic() + self._stop_limit_s()
            for agent in self._agents.values():
                _signal(agent.process, signal.SIGTERM)
        elif self.stop_requested and time.monotonic() > self._stop_at:
            self._end_agents()

    def _stop_limit_s(self) -> float:
        """How long agents may take to end after their current step and its evaluation; slow models get longer."""
        slowest = max((agent.longest_step_s for agent in self._agents.values()), default=0.0)
        return 3 * GRACE_S + STOP_STEPS * slowest

    def _beat(self) -> None:
        agents = getattr(self, "_agents", {}).values()
        phases = sorted((agent.phase for agent in agents if agent.phase), key=lambda phase: "%" not in phase)
        self.status = replace(
            self.status,
            heartbeat=time.time(),
            step=min((agent.steps for agent in agents), default=0),
            max_steps=self.config.grpo.max_steps,
            phase=phases[0] if phases else "",  # what the others wait for, if somebody makes progress
        )
        write_status(self.run_folder.path, self.status)

    def _first_failure(self, failed: list[tuple[str, _Agent]]) -> str:
        """Tells the other agents, waits for them, and says whose failure came first and why."""
        name, agent = failed[0]
        if self.stop_requested and agent.process.exitcode in (-signal.SIGKILL, -signal.SIGTERM):
            return ""
        reason = f"agent '{name}' {self._why(name, agent)}"
        self.status = replace(self.status, cause=cause(agent.error_kind, agent.error, agent.process.exitcode))
        from corl_core.training.exchange import ABORT

        self._store.set(ABORT, f"the run was aborted: {reason}")
        return reason

    def _why(self, name: str, agent: _Agent) -> str:
        if agent.error_kind == "CohortError":  # its text names the round
            return f"failed: {agent.error}"
        where = f" in round {agent.steps}" if agent.steps or not agent.phase else f" while {agent.phase}"
        if agent.error:
            return f"failed{where}: {agent.error}"
        code = agent.process.exitcode or 0
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}{where}"
        log = self.run_folder.log_tail(name, 4096).split("\n")
        last = next((line.strip()[:200] for line in reversed(log) if line.strip()), "nothing")
        return f"ended with exit code {code}{where}; the last line of its log: {last}"

    def _end_agents(self) -> None:
        """Asks every agent that still runs to end, and kills those that do not within the grace."""
        alive = [agent.process for agent in self._agents.values() if agent.process.is_alive()]
        for process in alive:
            _signal(process, signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        for process in alive:
            process.join(max(0.0, deadline - time.monotonic()))
            if process.is_alive():
                _signal(process, signal.SIGKILL)
                process.join()
        self._read_journals()


def _signal(process: BaseProcess, number: int, alone: bool = False) -> None:
    """To the agent's whole session, which takes its helpers along; to the process itself before it has one, or when `alone`."""
    if process.pid is None or process.exitcode is not None:
        return
    try:
        if os.getpgid(process.pid) == process.pid and not alone:
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)
    except ProcessLookupError:
        pass


def _died(status: Status, error: Exception) -> Status:
    why = cause(type(error).__name__, str(error), None)
    return replace(status, state="failed", cause=why, reason=f"supervisor: {error}", ended=time.time())


def supervise(run: Run) -> Status:
    """A supervisor process's whole life; SIGTERM and Ctrl-C stop the run after the current step. A run has one at a time: a
    second one leaves it alone."""
    lock = FileLock(run.path / ".supervisor.lock")  # the system lets go of it when this process ends, however that is
    try:
        lock.acquire(timeout=0)
    except Timeout:
        print("another supervisor runs this run: leaving it alone", flush=True)
        return read_status(run.path)
    supervisor = Supervisor(run)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(supervisor, "stop_requested", True))
    try:
        return supervisor.run()
    except Exception as error:
        write_status(run.path, _died(supervisor.status, error))
        raise
