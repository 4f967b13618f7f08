"""An agent's process: its own session and log, and what it does when asked to stop, to save, or left alone.

    python -m corl_core.training.process START      (internal: where no supervisor can fork it; START is JSON, see `Start`)
"""

import ctypes
import json
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path

from corl_core.runs.causes import EXIT_DISK_FULL, no_room
from corl_core.runs.folder import Run, is_alive
from corl_core.runs.inside import make_folder
from corl_core.runs.placement import VISIBLE
from corl_core.security import masked
from corl_core.training.agent import Agent
from corl_core.training.exchange import CohortError
from corl_core.training.group import PR_SET_PDEATHSIG, Group, RankError
from corl_core.training.ranks import FirstFailed

EXIT_ERROR = 1
NICENESS = 5  # agents take every core they can get; the supervisor and the dashboard must still answer at once


@dataclass(frozen=True)
class Start:
    """What an agent's process is told."""

    run_path: str
    name: str
    host: str  # of the vote store
    port: int
    parent_pid: int  # who watches over it: it ends after that process
    parent_created: float  # by `start_of`
    resume_step: int | None
    gpus: Sequence[str] | None = None  # those that it may see, as CUDA names them; None: any

    def agent(self, rank: int = 0) -> Agent:
        return Agent(Run(Path(self.run_path)), self.name, self.port, self.resume_step, self.host, rank)


def main(start: Start) -> None:
    """An agent's process: its own session, its own log, an exit code of 0 only when it did what it was asked."""
    signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # until there are weights to save: by default it would end this process
    os.setsid()
    os.nice(NICENESS)
    run = Run(Path(start.run_path))
    folder = run.agent_path(start.name)
    make_folder(folder, within=run.path)
    _log_to(folder / "log.txt")
    _die_with_parent()
    _see_only(start.gpus)
    group = Group(run.config.agent(start.name), run.config.threads_per_agent)
    agent: Agent | None = None
    try:
        group.start(partial(_rank, start))
        _watch(start.parent_pid, start.parent_created)
        agent = start.agent()
        group.watch(lambda error: _fail(agent, error, group.kind()))
        signal.signal(signal.SIGTERM, lambda *_: setattr(agent, "stop_requested", True))
        signal.signal(signal.SIGUSR1, lambda *_: setattr(agent, "save_requested", True))  # an alarm's action
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the supervisor, which asks the agents to stop
        agent.run()
        group.end()
    except Exception as error:  # the process boundary: the reason goes to the journal, the traceback to the log
        in_step = isinstance(error, RuntimeError) and not isinstance(error, CohortError)  # such as a collective without a peer
        lost = group.failed(within_s=1.0) if in_step else None
        group.end(leave_s=0.0)
        if lost is None and not isinstance(error, (CohortError, ValueError)):
            _tell(agent or start.agent(), error, type(error).__name__)
            raise
        _fail(agent or start.agent(), lost or error, group.kind() if lost else type(error).__name__)


def _rank(start: Start, rank: int, tell: Connection) -> None:
    """Another process of the agent, which trains along. Why it failed it tells rank 0, unless that has failed before."""
    try:
        start.agent(rank).run()
    except FirstFailed:
        pass
    except Exception as error:
        tell.send((type(error).__name__, masked(str(error)) or type(error).__name__))
        raise


def _fail(agent: Agent, error: Exception, kind: str) -> None:
    _tell(agent, error, kind)
    print(f"error: {error}", file=sys.stderr, flush=True)
    os._exit(EXIT_ERROR)


def _tell(agent: Agent, error: Exception, kind: str) -> None:
    """The last word in the journal; where there is no room for it, the exit code says so."""
    full = no_room(str(error), agent.folder)
    try:
        agent.recorder.journal.write("error", kind=kind, message=masked(str(error)) or kind)
        if not isinstance(error, RankError):  # which may come from another thread; the rollouts are on disk anyway
            agent.recorder.flush()
    except OSError as lost:
        full = full or no_room(str(lost), agent.folder) or EXIT_DISK_FULL
    if full:
        os._exit(full)


def _log_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _see_only(gpus: Sequence[str] | None) -> None:
    """Before CUDA starts, which reads this once. The server that this process may be a fork of has not started it."""
    if gpus is not None:
        os.environ[VISIBLE] = ",".join(gpus)


def _let_server_end() -> None:
    """The server lives as long as anybody holds the pipe to it, and each of its forks is given one, to start others; agents start
    none."""
    server = forkserver._forkserver
    if server._forkserver_alive_fd is not None:
        os.close(server._forkserver_alive_fd)
        server._forkserver_alive_fd = None


def _die_with_parent() -> None:
    """On Linux the system ends this process, at once and even a suspended one, when the process that made it ends: the fork
    server, which ends with the supervisor, or the one that holds it on another node."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        _let_server_end()


def _watch(pid: int, created: float) -> None:
    """Ends this process after the one that watches over it: an agent without one would train for nobody."""

    def watch() -> None:
        while is_alive(pid, created):
            time.sleep(1)
        print("the supervisor is gone; this agent ends", file=sys.stderr, flush=True)
        os._exit(EXIT_ERROR)

    threading.Thread(target=watch, daemon=True, name="supervisor-watch").start()


if __name__ == "__main__":
    main(Start(**json.loads(sys.argv[1])))
