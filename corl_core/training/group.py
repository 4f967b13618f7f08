"""The processes that train one agent together, as its main process starts, watches and ends them.

The main process is rank 0; the others are forks of it, made before anything has touched a GPU: so they start at once, are in its
session (a signal to the agent reaches them), and are ended by the system when it dies, however that is. Their environment is what
`accelerate launch` would give them, with a store that rank 0 already hosts in place of a port that might be taken.

A rank that dies ends the agent, which says whose end it was: the others would wait for it in some collective for ever.
"""

import ctypes
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

from corl_core import extras
from corl_core.config import AgentConfig, ConfigError
from corl_core.training.exchange import LOOPBACK, host_store

PR_SET_PDEATHSIG = 1  # Linux: see prctl(2)
LOOPBACK_INTERFACE = "lo"  # Linux's name of it
NOTICE_S = 5.0  # how long the main thread may take to see by itself that a rank is gone
LEAVE_S = 20.0  # how long ranks may take to end once the agent has
FLAGS = {
    "ddp": [],
    "fsdp": ["--use_fsdp", "--fsdp_version", "2", "--fsdp_auto_wrap_policy", "TRANSFORMER_BASED_WRAP",
             "--fsdp_reshard_after_forward", "true", "--fsdp_cpu_ram_efficient_loading", "false",
             "--fsdp_state_dict_type", "FULL_STATE_DICT"],
    "deepspeed": ["--use_deepspeed", "--zero_stage", "3", "--zero3_init_flag", "false", "--zero3_save_16bit_model", "true"],
}  # fmt: skip
Target = Callable[[int, Connection], None]  # rank, and where to tell why it failed


class RankError(RuntimeError):
    """One of an agent's processes has failed; the text names its rank."""


def accelerate_environment(agent: AgentConfig) -> dict[str, str]:
    """What `accelerate launch` adds to the environment for this placement. Raises ConfigError for a file that it cannot use, and
    for what is not installed."""
    from accelerate.commands import launch
    from accelerate.utils.launch import prepare_deepspeed_cmd_env, prepare_multi_gpu_env

    placement, where = agent.placement, f"agent '{agent.name}': placement"
    file, flags = placement.accelerate_config, FLAGS[placement.parallel]
    if file and not Path(file).is_file():
        raise ConfigError(f"{where}.accelerate_config='{file}' is no file; make one with: accelerate config --config_file FILE")
    launch.default_config_file = ""  # a run's placement is its configuration's, not the user's own `accelerate config`
    size = ["--num_processes", str(placement.num_processes), "--gpu_ids", "all"]  # of those that this agent was given
    chosen = ["--config_file", file, *size] if file else [*size, "--mixed_precision", "no", "--dynamo_backend", "no", *flags]
    try:
        given, defaults, _ = launch._validate_launch_command(launch.launch_command_parser().parse_args([*chosen, "agent"]))
    except (ValueError, TypeError, SystemExit) as error:
        raise ConfigError(f"{where}: accelerate refuses {file or placement.parallel}: {error}") from error
    if given.num_machines is not None and given.num_machines > 1:
        raise ConfigError(
            f"{where}.accelerate_config='{file}' has num_machines={given.num_machines}, but all processes of an agent are on one "
            "machine; set num_machines: 1"
        )
    if given.use_deepspeed:
        extras.require("deepspeed", where)
    given.main_process_port = 0  # any that is free: it is replaced
    given.deepspeed_fields_from_accelerate_config = ",".join(getattr(defaults, "deepspeed_config", None) or {})
    made = prepare_deepspeed_cmd_env(given)[1] if given.use_deepspeed else prepare_multi_gpu_env(given)
    return {name: value for name, value in made.items() if os.environ.get(name) != value}


OF_LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")
"""What torchrun and its like leave in the environment of whatever runs under them; an agent is no rank of theirs."""


class Group:
    """The other ranks of this process's agent; none for an agent of one process."""

    def __init__(self, agent: AgentConfig, num_threads: int):
        self.size = agent.placement.num_processes
        self._agent, self._num_threads = agent, num_threads
        self._others: dict[int, tuple[Any, Connection]] = {}  # rank → its process, and what it tells
        self._told: dict[int, tuple[str, str]] = {}  # rank → kind and text of its error
        self._store: Any = None
        self._ending = threading.Event()  # whoever fails from now on was ended by `end`

    def start(self, target: Target) -> None:
        """Forks the other ranks, and makes this process rank 0. Call it before threads, and before CUDA. Raises ConfigError."""
        for name in [name for name in os.environ if name in OF_LAUNCHERS or name.startswith("ACCELERATE_USE_")]:
            del os.environ[name]
        if self.size == 1:
            return
        os.environ.update(accelerate_environment(self._agent))
        os.environ.update(WORLD_SIZE=str(self.size), LOCAL_WORLD_SIZE=str(self.size), MASTER_ADDR=LOOPBACK)
        os.environ.update(OMP_NUM_THREADS=str(self._num_threads), TORCHELASTIC_USE_AGENT_STORE="True")
        _talk_inside()
        context = get_context("fork")
        for rank in range(1, self.size):
            here, there = context.Pipe()
            process = context.Process(target=_become, args=(rank, os.getpid(), there, target), name=f"rank {rank}")
            process.start()
            there.close()
            self._others[rank] = (process, here)
        self._store = host_store()
        for _, connection in self._others.values():
            connection.send(self._store.port)
        _take_rank(0, self._store.port)

    def watch(self, lost: Callable[[RankError], None]) -> None:
        """Calls `lost`, from a thread, once a rank has failed and the main thread has not said so by itself."""

        def look() -> None:
            while not self._ending.is_set():
                wait([process.sentinel for process, _ in self._others.values() if process.exitcode is None], 1.0)
                if error := self.failed():
                    if not self._ending.wait(NOTICE_S):
                        lost(error)
                    return
                if all(process.exitcode == 0 for process, _ in self._others.values()):
                    return

        if self._others:
            threading.Thread(target=look, daemon=True, name="rank-watch").start()

    def failed(self, within_s: float = 0.0) -> RankError | None:
        """Whose failure ends the agent, if it is another rank's; waits a moment for one that is about to show."""
        deadline = time.monotonic() + within_s
        while self._others:
            for rank, (process, connection) in self._others.items():
                if process.exitcode:
                    return RankError(f"rank {rank} of {self.size} {self._why(rank, process.exitcode, connection)}")
            if time.monotonic() >= deadline:
                break
            time.sleep(0.05)
        return None

    def kind(self) -> str:
        """The class of the error that a rank has told, for whoever sorts failures; 'RankError' where it told none."""
        return next((kind for kind, _ in self._told.values()), RankError.__name__)

    def _why(self, rank: int, code: int, connection: Connection) -> str:
        try:
            if rank not in self._told and connection.poll():
                self._told[rank] = connection.recv()
        except (EOFError, OSError):
            pass
        if rank in self._told:
            return f"failed: {self._told[rank][1]}"
        return f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"

    def end(self, leave_s: float = LEAVE_S) -> None:
        """Waits for the other ranks, and kills those that stay; `watch` says nothing any more."""
        self._ending.set()
        deadline = time.monotonic() + leave_s
        for process, _ in self._others.values():
            process.join(max(0.0, deadline - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()


def _take_rank(rank: int, port: int) -> None:
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), MASTER_PORT=str(port))


def _talk_inside() -> None:
    """Lets the ranks listen on the loopback interface alone, where nobody else on the network can reach what they send each other
    (pickles among it); they would take the host's address otherwise. What the environment says already stays."""
    if LOOPBACK_INTERFACE in (name for _, name in socket.if_nameindex()):
        for variable in ("GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"):
            os.environ.setdefault(variable, LOOPBACK_INTERFACE)


def _become(rank: int, first_pid: int, connection: Connection, target: Target) -> None:
    """In a new fork: it dies with rank 0, leaves signals to it, and says nothing on the log but its errors."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != first_pid:
        os._exit(1)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    _take_rank(rank, connection.recv())
    target(rank, connection)
