"""Agents as processes of this machine, each on the GPUs that it was given."""

import multiprocessing
import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from corl_core.runs.folder import Run, Status, is_suspended
from corl_core.runs.placement import fill, in_words, visible_gpus, wishes


class LocalAgent:
    """One agent's main process."""

    node, lost, leaving = "", False, False

    def __init__(self, process: BaseProcess):
        self.process = process

    @property
    def exitcode(self) -> int | None:
        return self.process.exitcode

    def signal(self, number: int, alone: bool = False) -> None:
        """To the agent's whole session, which takes its other processes along; to the process itself before it has one."""
        pid = self.process.pid
        if pid is None or self.process.exitcode is not None:
            return
        with suppress(ProcessLookupError):
            if os.getpgid(pid) == pid and not alone:
                os.killpg(pid, number)
            else:
                os.kill(pid, number)
        if number == signal.SIGTERM:  # one that is suspended hears nothing until it goes on
            self.signal(signal.SIGCONT, alone)

    def join(self, timeout_s: float) -> None:
        self.process.join(timeout_s)

    @property
    def hint(self) -> str:
        pid = self.process.pid
        return f"kill -CONT {pid} lets it go on" if pid is not None and is_suspended(pid) else ""


class LocalLauncher:
    """Agents are forks of a server that has imported the training code once: each starts at once, and shares its memory. Nothing
    in the server touches a GPU, so each agent chooses its own."""

    host = "127.0.0.1"

    def __init__(self, run: Run, status: Status):
        self._run, self._supervisor = run, (status.pid, status.pid_created)
        gpus = visible_gpus()
        self.places = {} if run.config.device == "cpu" else run.places or fill(wishes(run.config, gpus), dict.fromkeys(gpus, 0))
        self.placement = in_words(self.places)
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"  # to ask whether there is a GPU must not start CUDA in the server
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(["corl_core.training.process"])

    def start(self, name: str, port: int, resume_step: int | None) -> LocalAgent:
        from corl_core.training import process as agent_process

        own = agent_process.Start(
            str(self._run.path), name, self.host, port, *self._supervisor, resume_step, gpus=self.places.get(name)
        )
        process = self._context.Process(target=agent_process.main, args=(own,), name=name)
        process.start()
        return LocalAgent(process)

    def wait(self, handles: Iterable[LocalAgent], timeout_s: float) -> None:
        wait([handle.process.sentinel for handle in handles], timeout_s)

    def close(self) -> None:
        pass
