"""Agents on the nodes of a Ray cluster. Ray places them and says which node is gone; training, votes and journals are as on one
machine.

Each agent's process is held by an actor (`ray_node.py`), which asks for `ray.resources` and, with `placement.node`, for that
node. What the agent writes on its node is brought into the run folder here, so nothing else need know of Ray, no file system has
to be shared, and a run whose node is lost can go on elsewhere, from the checkpoints that had come in. The project travels to the
nodes; they need its packages. Nodes reach the vote store at this machine's address in the cluster: that network is trusted, as
Ray itself trusts it.
"""

import os
import shutil
import signal
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from corl_core.config import AgentConfig, ConfigError, RunConfig
from corl_core.runs import checkpoints
from corl_core.runs.folder import Run
from corl_core.runs.journal import whole_bytes
from corl_core.runs.launchers.mirror import Part, Source, repeat
from corl_core.runs.launchers.ray_node import Node

EXIT_LOST = 70  # of an agent whose node is gone, or whose actor failed
POLL_S = 0.1
PROBE_S = 10.0
PROJECT = Path(__file__).resolve().parents[2]  # the package corl_core


class RayError(ConfigError):
    """The cluster cannot be reached, or has no place for an agent; the text says what there is."""


class RayAgent:
    """One agent on a node: what has been asked of its actor, and what came back."""

    hint = ""  # a suspended process on another machine is seen by its silence alone

    def __init__(self, name: str, actor: Any, folder: Path, placed: Any):
        """`placed`: what the actor's `start` will return."""
        self.name, self._actor, self._folder = name, actor, folder
        folder.mkdir(parents=True, exist_ok=True)
        self._placed, self._asked = placed, None
        self.exitcode: int | None = None
        self.lost, self.node = False, ""

    @property
    def pending(self) -> Any:
        """What is being waited for: its place on the cluster, then news."""
        if self._placed is None and self._asked is None:
            self._asked = self._actor.news.remote()
        return self._asked if self._placed is None else self._placed

    def take(self) -> bool:
        """Takes in what was waited for, and has come; False when it was nothing new."""
        import ray

        try:
            got = ray.get(self.pending)
        except ray.exceptions.RayError as error:
            self.exitcode = EXIT_LOST
            self.lost = self._placed is None and not isinstance(error, ray.exceptions.RayTaskError)
            if not self.lost:  # it never came up, or the actor has an error: what Ray says is all there is
                with (self._folder / "log.txt").open("a", encoding="utf-8") as log:
                    log.write(f"\n{error}\n")
            return True
        if self._placed is not None:
            self._placed, self.node = None, got
            return True
        self._asked = None
        if self._folder.exists():  # else somebody has deleted the run
            repeat(self._folder, got.parts)
        if got.exitcode is not None:
            self._tell_start(got.exitcode)
            self.exitcode = got.exitcode
        return bool(got.parts)

    def _tell_start(self, code: int) -> None:
        """A process that failed before it had a log has said why elsewhere."""
        import ray

        if code and self._folder.exists() and not (self._folder / "log.txt").exists():
            with suppress(ray.exceptions.RayError):
                (self._folder / "log.txt").write_text(ray.get(self._actor.last_words.remote(), timeout=5.0), encoding="utf-8")

    def signal(self, number: int, alone: bool = False) -> None:
        import ray

        if self.exitcode is not None:
            return
        if self._placed is not None and number in (signal.SIGTERM, signal.SIGKILL):  # it has no place yet
            ray.kill(self._actor)
            self.exitcode = -number
        else:
            self._actor.signal.remote(number, alone)

    def join(self, timeout_s: float) -> None:
        import ray

        deadline = time.monotonic() + timeout_s
        while self.exitcode is None and (left := deadline - time.monotonic()) > 0:
            if ray.wait([self.pending], timeout=min(left, 0.5))[0] and not self.take():
                time.sleep(POLL_S)

    def close(self) -> None:
        import ray

        with suppress(ray.exceptions.RayError):
            ray.get(self._actor.close.remote(), timeout=5.0)
        with suppress(ray.exceptions.RayError):
            ray.kill(self._actor)


class RayLauncher:
    """Connects to the cluster; raises RayError where it cannot, or where an agent could never be placed."""

    def __init__(self, run: Run):
        self._run, self._agents = run, []
        address = run.config.ray.address
        ray = _connect(address)
        self._nodes = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        for agent in run.config.agents:
            check_place(run.config, agent, list(self._nodes.values()))
        self.host = _own_address(address)

    @property
    def placement(self) -> str:
        return ", ".join(f"{agent.name} on node {agent.node}" if agent.node else f"{agent.name} waits" for agent in self._agents)

    def start(self, name: str, port: int, resume_step: int | None) -> RayAgent:
        import ray

        config, folder = self._run.config, self._run.agent_path(name)
        agent = config.agent(name)
        wanted = resources(config, agent)
        options: dict[str, Any] = {"num_cpus": wanted.pop("CPU", 0), "num_gpus": wanted.pop("GPU", 0), "resources": wanted}
        if agent.placement.node:
            wanted[f"node:{agent.placement.node}"] = 0.001  # which every node has one of
        actor = ray.remote(Node).options(**options).remote(self._run.id, config.to_yaml(), name, data_files(config))
        for parts in goes_on_from(folder, resume_step):
            actor.put.remote(parts)
        placed = actor.start.remote(self.host, port, resume_step)
        self._agents.append(RayAgent(name, actor, folder, placed))
        return self._agents[-1]

    def wait(self, handles: Iterable[RayAgent], timeout_s: float) -> None:
        import ray

        deadline = time.monotonic() + timeout_s
        running = [handle for handle in handles if handle.exitcode is None]
        while running and (left := deadline - time.monotonic()) > 0 and all(handle.exitcode is None for handle in running):
            asked = {handle.pending: handle for handle in running}
            came = ray.wait(list(asked), num_returns=len(asked), timeout=min(left, POLL_S))[0]
            if not any([asked[reference].take() for reference in came]):
                time.sleep(min(POLL_S, left))

    def close(self) -> None:
        import ray

        for agent in self._agents:
            agent.close()
        ray.shutdown()


def _connect(address: str) -> Any:
    """Joins the cluster as the run's driver: what it has started there ends when it does. The project goes along."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise RayError("launcher 'ray' needs the package ray: pip install 'ray==2.60.0'") from error
    _probe(address)
    try:
        project = {"py_modules": [str(PROJECT)], "excludes": ["**/__pycache__"]}
        ray.init(address, namespace="corl-lab", log_to_driver=False, logging_level="warning", runtime_env=project)
    except Exception as error:  # of many kinds
        reason = " ".join(str(error).split())[:300]
        remedy = "start a cluster with 'ray start --head', or give its address"
        raise RayError(f"ray.address='{address}': {reason}; {remedy}") from error
    finally:
        for number, handler in handlers.items():  # ray puts its own in their place
            signal.signal(number, handler)
    return ray


def _probe(address: str) -> None:
    """Raises RayError where nobody listens: Ray would try for many minutes."""
    host, _, port = address.split("://")[-1].rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), timeout=PROBE_S).close()
    except OSError as error:
        remedy = "start a cluster with 'ray start --head'"
        raise RayError(f"ray.address='{address}': nobody answers there ({error}); {remedy}") from error


def _own_address(address: str) -> str:
    """This machine's, as nodes of the cluster reach it."""
    import ray

    if "://" not in address:
        return ray.util.get_node_ip_address()
    host = address.split("://")[1].split(":")[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:  # nothing is sent
        probe.connect((host, 1))
        return probe.getsockname()[0]


def resources(config: RunConfig, agent: AgentConfig) -> dict[str, float]:
    """What an agent's actor asks Ray for."""
    return dict(config.ray.resources) or {"CPU": float(config.threads_per_agent * agent.placement.num_processes)}


def check_place(config: RunConfig, agent: AgentConfig, nodes: list[dict[str, Any]]) -> None:
    """Raises RayError for an agent that no node could ever take."""
    wanted, node = resources(config, agent), agent.placement.node
    there = {each["NodeManagerAddress"]: each["Resources"] for each in nodes}
    if node and node not in there:
        raise RayError(f"agent '{agent.name}': placement.node='{node}' is no node of the cluster, which has {', '.join(there)}")
    allowed = [each["Resources"] for each in nodes if not node or each["NodeManagerAddress"] == node]
    if not any(all(has.get(name, 0) >= number for name, number in wanted.items()) for has in allowed):
        have = [{name: has.get(name, 0) for name in wanted} for has in allowed]
        raise RayError(f"agent '{agent.name}' asks Ray for {wanted}, which no node has ({have}); change ray.resources")


def data_files(config: RunConfig) -> dict[str, tuple[str, bytes]]:
    """Field → name and content of a data file that is on this machine; the nodes get a copy."""
    named = {"data.train": config.data.train, "data.eval": config.data.eval}
    paths = {field: Path(name) for field, name in named.items() if name}
    return {field: (path.name, path.read_bytes()) for field, path in paths.items() if path.is_file()}


def goes_on_from(folder: Path, resume_step: int | None) -> Iterator[list[Part]]:
    """What an agent that is resumed needs on its node: what it has told, and its checkpoint. Its others are of no more use."""
    if resume_step is None or not folder.exists():
        return
    for step in checkpoints.complete(folder):
        if step != resume_step:
            shutil.rmtree(checkpoints.path(folder, step))
    if (journal := folder / "journal.jsonl").exists():
        os.truncate(journal, whole_bytes(journal))
    source = Source(folder, known=False)
    while parts := source.next():
        yield [part for part in parts if part.path.split("/")[0] not in ("model", "weights")]
