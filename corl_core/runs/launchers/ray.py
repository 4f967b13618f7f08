"""Agents on the nodes of a Ray cluster. Ray places them and says which node is gone; training, votes and journals are as on one
machine.

Each agent's process is held by an actor (`ray_node.py`), which asks for `ray.resources` and, with `placement.node`, for that
node. What the agent writes on its node is brought into the run folder here, so nothing else need know of Ray, no file system has
to be shared, and a run whose node is lost can go on elsewhere, from the checkpoints that had come in. The project travels to the
nodes; they need its packages. Nodes reach the vote store at this machine's address in the cluster: that network is trusted, as
Ray itself trusts it.
"""

import os
import signal
import socket
import time
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any

from corl_core import extras
from corl_core.config import AgentConfig, ConfigError, RunConfig
from corl_core.runs.folder import Run
from corl_core.runs.launchers.luggage import data_files, goes_on_from, prune
from corl_core.runs.launchers.ray_agent import POLL_S, RayAgent
from corl_core.runs.launchers.ray_node import Node
from corl_core.security import masked

PROBE_S = 10.0
PROJECT = Path(__file__).resolve().parents[2]  # the package corl_core


class RayError(ConfigError):
    """The cluster cannot be reached, or has no place for an agent; the text says what there is."""


class RayLauncher:
    """Connects to the cluster; raises RayError where it cannot, or where an agent could never be placed."""

    def __init__(self, run: Run):
        self._run, self._agents, self._is_open = run, [], True
        address = run.config.ray.address
        ray = _connect(address)
        self._nodes = {node["NodeID"]: node for node in ray.nodes() if node["Alive"]}
        check_places(run.config, list(self._nodes.values()))
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
        begin = partial(actor.start.remote, self.host, port, resume_step)
        self._agents.append(RayAgent(name, actor, folder, goes_on_from(folder, resume_step), begin))
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
            if any(handle.has_new_checkpoint for handle in running):
                prune(self._run)
                for handle in running:
                    handle.has_new_checkpoint = False

    def close(self) -> None:
        import ray

        if self._is_open:
            self._is_open = False
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
        raise RayError(f"launcher='ray' {extras.need('ray')}") from error
    _probe(address)
    try:
        project = {"py_modules": [str(PROJECT)], "excludes": ["**/__pycache__"]}
        ray.init(address, namespace="corl-lab", log_to_driver=False, logging_level="warning", runtime_env=project)
    except Exception as error:  # of many kinds
        reason = masked(" ".join(str(error).split()))[:300]
        remedy = "start a cluster with 'ray start --head', or give its address"
        raise RayError(f"ray.address='{masked(address)}': {reason}; {remedy}") from error
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
        raise RayError(f"ray.address='{masked(address)}': nobody answers there ({error}); {remedy}") from error


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


def check_places(config: RunConfig, nodes: list[dict[str, Any]]) -> None:
    """Raises RayError for a cohort that the cluster could not hold at once: its agents wait for each other, so all must have a
    place. The largest are placed first, those that name a node before them, each on the first node that has room."""
    for agent in config.agents:
        check_place(config, agent, nodes)
    left = [(node["NodeManagerAddress"], dict(node["Resources"])) for node in nodes]
    asked = [(agent, resources(config, agent)) for agent in config.agents]
    for agent, wanted in sorted(asked, key=lambda each: (not each[0].placement.node, -sum(each[1].values()))):
        allowed = [has for address, has in left if not agent.placement.node or agent.placement.node == address]
        room = next((has for has in allowed if _fits(wanted, has)), None)
        if room is None:
            have = [{name: has.get(name, 0) for name in wanted} for has in allowed]
            raise RayError(
                f"agent '{agent.name}' asks Ray for {wanted}, which no node has left beside the cohort's other agents ({have}); "
                "change ray.resources, or add nodes"
            )
        for name, number in wanted.items():
            room[name] = room.get(name, 0) - number


def _fits(wanted: dict[str, float], has: dict[str, float]) -> bool:
    return all(has.get(name, 0) >= number - 1e-6 for name, number in wanted.items())


def check_place(config: RunConfig, agent: AgentConfig, nodes: list[dict[str, Any]]) -> None:
    """Raises RayError for an agent that no node could ever take."""
    wanted, node = resources(config, agent), agent.placement.node
    there = {each["NodeManagerAddress"]: each["Resources"] for each in nodes}
    if node and node not in there:
        raise RayError(f"agent '{agent.name}': placement.node='{node}' is no node of the cluster, which has {', '.join(there)}")
    allowed = [each["Resources"] for each in nodes if not node or each["NodeManagerAddress"] == node]
    if not any(_fits(wanted, has) for has in allowed):
        have = [{name: has.get(name, 0) for name in wanted} for has in allowed]
        raise RayError(f"agent '{agent.name}' asks Ray for {wanted}, which no node has ({have}); change ray.resources")
