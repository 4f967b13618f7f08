"""One run's supervisor: starts the agents, watches them, works out the cohort's metrics, and alone writes to MLflow.

It hosts the vote store, so that no agent's death takes the store along. An agent that fails ends the run with its name
and the round it was in; on every way out no agent is left behind.
"""

import multiprocessing
import os
import signal
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

import psutil

from corl_core.runs.cohort import CohortMetrics
from corl_core.runs.folder import Run, Status, read_status, write_status
from corl_core.runs.journal import Journal, Tail
from corl_core.tracking.log import Tracker

TICK_S = 0.2
HEARTBEAT_S = 1.0
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
        self._beat()

    def run(self) -> Status:
        # A forkserver that has imported the training code once: each agent then starts at once and shares its memory.
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["corl_core.training.agent"])
        from corl_core.training.exchange import host_store

        self._store = host_store()
        self._journal = Journal(self.run_folder.path / "journal.jsonl")
        self._cohort = CohortMetrics(self.config)
        self._agents = {agent.name: self._start(context, agent.name) for agent in self.config.agents}
        tracker = Tracker(self.run_folder)
        tracker.start()
        try:
            reason = self._watch()
        finally:
            self._end_agents()
        self._beat()
        state = "failed" if reason else "stopped" if self.stop_requested else "finished"
        self.status = replace(self.status, state=state, reason=reason, phase="", ended=time.time(), heartbeat=time.time())
        tracker.finish(self.status, MLFLOW_GRACE_S)
        write_status(self.run_folder.path, self.status)
        return self.status

    def _start(self, context: Any, name: str) -> _Agent:
        from corl_core.training import agent

        arguments = (str(self.run_folder.path), name, self._store.port, self.status.pid, self.status.pid_created)
        process = context.Process(target=agent.main, args=arguments, name=name)
        process.start()
        return _Agent(process, Tail(self.run_folder.agent_path(name) / "journal.jsonl"))

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
                for event in self._cohort.add(name, line):
                    self._journal.write(**event)

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
        reason = f"agent '{name}' {self._why(agent)}"
        from corl_core.training.exchange import ABORT

        self._store.set(ABORT, f"the run was aborted: {reason}")
        return reason

    @staticmethod
    def _why(agent: _Agent) -> str:
        if agent.error_kind == "CohortError":  # its text names the round
            return f"failed: {agent.error}"
        where = f" in round {agent.steps}" if agent.steps or not agent.phase else f" while {agent.phase}"
        if agent.error:
            return f"failed{where}: {agent.error}"
        code = agent.process.exitcode or 0
        if code < 0:
            return f"was killed by {signal.Signals(-code).name}{where}"
        return f"ended with exit code {code}{where}; see its log"

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


def _signal(process: BaseProcess, number: int) -> None:
    """To the agent's whole session, which takes its helpers along; to the process itself before it has one."""
    if process.pid is None or process.exitcode is not None:
        return
    try:
        if os.getpgid(process.pid) == process.pid:
            os.killpg(process.pid, number)
        else:
            os.kill(process.pid, number)
    except ProcessLookupError:
        pass


def supervise(run: Run) -> Status:
    """A supervisor process's whole life; SIGTERM and Ctrl-C stop the run after the current step."""
    supervisor = Supervisor(run)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: setattr(supervisor, "stop_requested", True))
    try:
        return supervisor.run()
    except Exception as error:
        write_status(run.path, replace(supervisor.status, state="failed", reason=f"supervisor: {error}", ended=time.time()))
        raise
