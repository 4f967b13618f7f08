"""An agent's process: its own session and log, and what it does when asked to stop, to save, or left alone."""

import ctypes
import os
import shutil
import signal
import sys
import threading
import time
from multiprocessing import forkserver
from pathlib import Path

from corl_core.runs.causes import EXIT_DISK_FULL, is_disk_full
from corl_core.runs.folder import Run, is_alive
from corl_core.security import masked
from corl_core.training.agent import Agent
from corl_core.training.exchange import CohortError

EXIT_ERROR = 1
LITTLE_BYTES = 2**20  # with less room than this, what failed to be written failed for that
PR_SET_PDEATHSIG = 1  # Linux: see prctl(2)
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
        full = is_disk_full(str(error)) or shutil.disk_usage(folder).free < LITTLE_BYTES
        try:
            agent.recorder.journal.write("error", kind=type(error).__name__, message=masked(str(error)) or type(error).__name__)
            agent.recorder.flush()
        except OSError:
            full = True
        if full:
            os._exit(EXIT_DISK_FULL)
        if expected:
            print(f"error: {error}", file=sys.stderr, flush=True)
            os._exit(EXIT_ERROR)
        raise


def _log_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _let_server_end() -> None:
    """The server lives as long as anybody holds the pipe to it, and each of its forks is given one, to start others; agents start
    none."""
    server = forkserver._forkserver
    if server._forkserver_alive_fd is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_alive_fd = None


def _die_with(pid: int, created: float) -> None:
    """Ends this process after the supervisor's: an agent without one would train for nobody. On Linux the system does it,
    at once and even to a suspended one, for the server that this process is a fork of ends with the supervisor."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _let_server_end()

    def watch() -> None:
        while is_alive(pid, created):
            time.sleep(1)
        print("the supervisor is gone; this agent ends", file=sys.stderr, flush=True)
        os._exit(EXIT_ERROR)

    threading.Thread(target=watch, daemon=True, name="supervisor-watch").start()
