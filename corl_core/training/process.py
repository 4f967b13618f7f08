"""An agent's process: its own session and log, and what it does when asked to stop, to save, or left alone."""

import os
import signal
import sys
import threading
import time
from pathlib import Path

from corl_core.runs.folder import Run, is_alive
from corl_core.training.agent import Agent
from corl_core.training.exchange import CohortError

EXIT_ERROR = 1
NICENESS = 5  # agents take every core they can get; the supervisor and the dashboard must still answer at once


def main(
    run_path: str, name: str, port: int, supervisor_pid: int, supervisor_created: float, resume_step: int | None
) -> None:  # fmt: skip
    """An agent's process: its own session, its own log, an exit code of 0 only when it did what it was asked."""
    os.setsid()
    os.nice(NICENESS)
    run = Run(Path(run_path))
    folder = run.agent_path(name)
    folder.mkdir(parents=True, exist_ok=True)
    _log_to(folder / "log.txt")
    _die_with(supervisor_pid, supervisor_created)
    agent = Agent(run, name, port, resume_step)
    signal.signal(signal.SIGTERM, lambda *_: setattr(agent, "stop_requested", True))
    signal.signal(signal.SIGUSR1, lambda *_: setattr(agent, "save_requested", True))  # an alarm's action
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the supervisor, which asks the agents to stop
    try:
        agent.run()
    except Exception as error:  # the process boundary: the reason goes to the journal, the traceback to the log
        expected = isinstance(error, (CohortError, ValueError))
        agent.recorder.journal.write("error", kind=type(error).__name__, message=str(error) or type(error).__name__)
        agent.recorder.flush()
        if expected:
            print(f"error: {error}", file=sys.stderr, flush=True)
            os._exit(EXIT_ERROR)
        raise


def _log_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _die_with(pid: int, created: float) -> None:
    """Ends this process soon after the supervisor's: an agent without a supervisor would train for nobody."""

    def watch() -> None:
        while is_alive(pid, created):
            time.sleep(1)
        print("the supervisor is gone; this agent ends", file=sys.stderr, flush=True)
        os._exit(EXIT_ERROR)

    threading.Thread(target=watch, daemon=True, name="supervisor-watch").start()
