"""Who starts a run's agents and carries signals to them: this machine (`local.py`), or a Ray cluster (`ray.py`).

ray.py       connects to the cluster, and says whether it has a place for each agent
ray_agent.py one agent on a node: asks its actor, and keeps the run folder here up to date
ray_node.py  the actor on a node: it holds the agent's process
mirror.py    what has changed in a folder, in parts that another machine can repeat
luggage.py   what an agent takes along to a node, and which checkpoints stay here

An agent is the same process either way (`training/process.py`), and everything else that the supervisor knows of it, it reads in
the run folder.
"""

from collections.abc import Iterable
from typing import Protocol

from corl_core.runs.folder import Run, Status


class Handle(Protocol):
    """An agent's process, wherever it is."""

    exitcode: int | None  # None while it runs; negative: the signal that ended it
    node: str  # where it is, in words; '' on this machine
    lost: bool  # its node is gone, and the process with it
    leaving: bool  # the process has ended, but what it has left is still coming in

    def signal(self, number: int, alone: bool = False) -> None:
        """To everything that the agent has started, or to its main process `alone`. One that has ended hears nothing."""

    def join(self, timeout_s: float) -> None:
        """Waits for its end, at most so long, and longer while it is `leaving`."""

    @property
    def hint(self) -> str:
        """Why it shows no sign of life and what to do, to be read after its name, where that is known; else ''."""


class Launcher(Protocol):
    """What the supervisor asks."""

    host: str  # address on which the vote store is to listen

    @property
    def placement(self) -> str:
        """Where the agents are, in words; '' on this machine's processors."""

    def start(self, name: str, port: int, resume_step: int | None) -> Handle:
        """Starts an agent; returns at once. `port`: the vote store's."""

    def wait(self, handles: Iterable[Handle], timeout_s: float) -> None:
        """Until an agent ends or something else happens, at most so long. Raises OSError where what comes in has no room."""

    def close(self) -> None:
        """Once every agent has ended; one that has not is killed. A second time does nothing."""


def launcher(run: Run, status: Status) -> Launcher:
    """The run's; `status`: the supervisor's own, with its pid. Raises ConfigError where it cannot start these agents."""
    if run.config.launcher == "ray":
        from corl_core.runs.launchers.ray import RayLauncher

        return RayLauncher(run)
    from corl_core.runs.launchers.local import LocalLauncher

    return LocalLauncher(run, status)
