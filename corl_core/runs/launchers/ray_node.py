"""The actor that holds one agent's process on a node of a Ray cluster.

The process is the one that a supervisor forks on one machine (`training/process.py`), with a run folder of its own on the node:
the configuration, and for a run that goes on, what the agent needs for that. Ray only carries parts of that folder back and forth
(`mirror.py`), signals, and the exit code. The actor ends with the supervisor, and the agent with the actor.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from corl_core.config import from_values, parse_yaml
from corl_core.runs.folder import Run, start_of
from corl_core.runs.launchers.mirror import Part, Source, repeat
from corl_core.security import masked

CACHE = Path.home() / ".cache" / "corl-lab" / "base_models"  # of tiny models, where CORL_CACHE does not say otherwise
PREFIX, LOCK = "corl-lab-", ".lock"  # of a node's folders, in CORL_NODE_DIR or where temporary files are


@dataclass(frozen=True)
class News:
    """What a node tells when it is asked. `exitcode` is there once the process has ended; with no more parts, that is all."""

    parts: list[Part]
    exitcode: int | None


class Node:
    """One agent on this node."""

    def __init__(self, run_id: str, config: str, name: str, files: dict[str, tuple[str, bytes]]):
        """`config`: the run's, as YAML. `files`: field of `data` → name and content of a file that takes its place."""
        self._top, self._lock = own_folder(Path(os.environ.get("CORL_NODE_DIR") or tempfile.gettempdir()))
        self._run, self._name = Run(self._top / run_id), name
        self._run.path.mkdir()
        values = parse_yaml(config, "the run's configuration")
        for field, (file, content) in files.items():
            path = self._run.path / field / Path(file).name
            path.parent.mkdir()
            path.write_bytes(content)
            values["data"][field] = str(path)
        (self._run.path / "run.yaml").write_text(from_values(values, [], "run.yaml").to_yaml(), encoding="utf-8")
        self._folder.mkdir(parents=True)
        self._process: subprocess.Popen | None = None
        self._source: Source | None = None

    @property
    def _folder(self) -> Path:
        return self._run.agent_path(self._name)

    def put(self, parts: list[Part]) -> None:
        """Before `start`: what the agent goes on from."""
        repeat(self._folder, parts)

    def start(self, host: str, port: int, resume_step: int | None) -> str:
        """The agent's process, which sees the GPUs that Ray has given this actor; returns the node, in words. Called in the
        actor's main thread, whose end it does not survive."""
        me = psutil.Process()
        told = {
            "run_path": str(self._run.path), "name": self._name, "host": host, "port": port, "parent_pid": me.pid,
            "parent_created": start_of(me), "resume_step": resume_step,
        }  # fmt: skip
        self._source = Source(self._folder)
        self._process = subprocess.Popen(
            [sys.executable, "-m", "corl_core.training.process", json.dumps(told)], stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=(self._run.path / "start.log").open("ab"),
            env={"CORL_CACHE": str(CACHE)} | os.environ | {"PYTHONPATH": _python_path()},
        )  # fmt: skip
        import ray

        return f"{ray.util.get_node_ip_address()} ({socket.gethostname()})"

    def news(self) -> News:
        exitcode = self._process.poll()  # before the look: nothing is written after it
        return News(self._source.next(), exitcode)

    def last_words(self) -> str:
        """What a process said that ended before it had a log."""
        return masked((self._run.path / "start.log").read_text(encoding="utf-8", errors="replace"))[-2000:]

    def signal(self, number: int, alone: bool) -> None:
        """As `LocalAgent.signal`."""
        if self._process is None or self._process.poll() is not None:
            return
        with suppress(ProcessLookupError):
            whole = os.getpgid(self._process.pid) == self._process.pid and not alone
            for each in (number, signal.SIGCONT) if number == signal.SIGTERM else (number,):
                os.killpg(self._process.pid, each) if whole else os.kill(self._process.pid, each)

    def close(self) -> None:
        shutil.rmtree(self._top, ignore_errors=True)
        self._lock.release()


def own_folder(base: Path) -> tuple[Path, FileLock]:
    """A new folder under `base`, with the lock that tells that its owner lives: the system lets go of it when this process ends,
    however that is. Folders of owners that have ended are removed. Locks, unlike pids, also tell of other containers and
    machines."""
    base.mkdir(parents=True, exist_ok=True)
    for left in base.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(Timeout, OSError), FileLock(left, timeout=0):
            shutil.rmtree(left.parent, ignore_errors=True)
    new = Path(tempfile.mkdtemp(prefix=f".{PREFIX}", dir=base))  # nobody looks there before it is locked
    folder = new.with_name(new.name.removeprefix("."))
    lock = FileLock(new / LOCK)
    lock.acquire()
    new.rename(folder)
    return folder, lock


def _python_path() -> str:
    """That of the project as it came along, first."""
    return os.pathsep.join(filter(None, [str(Path(__file__).resolve().parents[3]), os.environ.get("PYTHONPATH")]))
