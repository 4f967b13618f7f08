"""A run's folder: what it holds, and the honest state of the run in it.

    run.yaml        the resolved configuration
    status.json     written by the supervisor alone: state, reason, pid with its start time, heartbeat, step
    stop            present once somebody asked the run to stop
    queue.json      present while the run waits: its place in the queue (see queue.py)
    gpu.json        of a run that the queue has put on GPUs: which agent on which (see placement.py)
    grid.json       of a cell of an ablation grid: the grid's name and the values of this cell
    supervisor.log, journal.jsonl (cohort metrics), tracking.json (what MLflow has already)
    agents/NAME/    journal.jsonl, log.txt, rollouts/*.parquet, votes.parquet (an index of the rollouts, made when needed),
                    checkpoints/ (see checkpoints.py), model/; while it trains also .alive (its sign of life) and
                    rollouts/.open.jsonl (those of the newest steps: see open_shard.py)

A stored state is a claim; `Run.status` checks it against the process: a supervisor that is gone has not finished. Nothing in that
goes by the clock on the wall, which people and time servers set. `settle.py` writes down what has been found out.
"""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import psutil

from corl_core.alarms.record import Alarm
from corl_core.config import ConfigError, RunConfig
from corl_core.runs.inside import leads_out
from corl_core.security import masked

FINAL = ("finished", "stopped", "failed")
QUEUED = "queued"  # waits for free slots; nobody watches over it yet
STALLED_AFTER_S = 60.0  # without a heartbeat; the supervisor beats every second
STARTED_WITHIN_S = 120.0  # a supervisor that has not written its pid by then never came up


class RunNotFound(ValueError):
    """No run is called that; the text says which there are."""


@dataclass(frozen=True)
class Status:
    """Where a run stands. Times are Unix seconds."""

    state: str
    created: float
    reason: str = ""
    phase: str = ""  # what a starting run is busy with, e.g. 'base model 40%'
    pid: int | None = None  # the supervisor's
    pid_created: float | None = None  # when that process began, by `start_of`
    step: int = 0  # updates that every agent has finished
    max_steps: int = 0
    started: float | None = None  # when this attempt's first step began
    first_started: float | None = None  # when that of an earlier attempt began, in a run that was resumed
    ended: float | None = None
    heartbeat: float | None = None
    beat: float | None = None  # the heartbeat by `time.monotonic`, the same clock in all processes since the machine started
    cause: str = ""  # of a failure, in a word or two: see `runs/causes.py`
    attempt: int = 1  # how often the run has been started, by a launch or a resume
    attempt_step: int = 0  # updates that were done when this attempt began
    untold: bool = False  # of a run that has ended: MLflow has not been told
    placement: str = ""  # where the agents are, in words; '' on this machine's processors
    alarms: list[dict[str, Any]] = field(default_factory=list)  # the fields of each `Alarm` raised so far, oldest first

    @property
    def final(self) -> bool:
        return self.state in FINAL

    @property
    def raised(self) -> list[Alarm]:
        return [Alarm(**alarm) for alarm in self.alarms]

    @property
    def seconds_left(self) -> float | None:
        """Time left at the pace so far; None when unknown."""
        done = self.step - self.attempt_step
        if self.final or done <= 0 or self.started is None or self.heartbeat is None or self.heartbeat < self.started:
            return None
        return (self.heartbeat - self.started) / done * (self.max_steps - self.step)


@dataclass(frozen=True)
class Run:
    path: Path

    @property
    def id(self) -> str:
        return self.path.name

    @cached_property
    def config(self) -> RunConfig:
        if leads_out(self.path, self.path / "run.yaml"):
            raise ConfigError(f"{self.path / 'run.yaml'} is a link that leads out of the run's folder, and is not read")
        return RunConfig.from_yaml((self.path / "run.yaml").read_text(encoding="utf-8"), source=str(self.path / "run.yaml"))

    @property
    def problem(self) -> str:
        """Why run.yaml cannot be read, as one line; '' when it can."""
        try:
            _ = self.config
        except (ConfigError, OSError) as error:
            return str(error)
        return ""

    @property
    def places(self) -> dict[str, tuple[str, ...]] | None:
        """agent → the GPUs that the queue has put it on; None when the run may use any."""
        try:
            told = json.loads((self.path / "gpu.json").read_text(encoding="utf-8"))
            return {agent.name: tuple(map(str, told[agent.name])) for agent in self.config.agents}
        except (OSError, ValueError, KeyError, TypeError):
            return None

    @property
    def gpu(self) -> str | None:
        """The GPUs that the run alone may see, as CUDA_VISIBLE_DEVICES names them; None when it may use any."""
        return None if (places := self.places) is None else ",".join(dict.fromkeys(gpu for own in places.values() for gpu in own))

    def status(self) -> Status:
        """The state as it is now, whatever the file claims."""
        return _reconciled(read_status(self.path), (self.path / "stop").exists())

    @property
    def is_there(self) -> bool:
        """Whether nobody has deleted it, or its folder is one that a file written too late has made again."""
        return (self.path / "run.yaml").exists()

    def agent_path(self, agent: str) -> Path:
        """Raises KeyError for a name that the cohort does not have, so a name never becomes a path."""
        if agent not in [known.name for known in self.config.agents]:
            raise KeyError(agent)
        return self.path / "agents" / agent

    def journal_paths(self) -> dict[str, Path]:
        """agent → its journal; '' is the cohort's."""
        agents = {agent.name: self.agent_path(agent.name) / "journal.jsonl" for agent in self.config.agents}
        return {"": self.path / "journal.jsonl"} | agents

    def log_tail(self, agent: str | None = None, max_bytes: int = 65_536) -> str:
        """The end of an agent's log, or of the supervisor's for None; '' when there is none yet, or only a link elsewhere."""
        path = self.path / "supervisor.log" if agent is None else self.agent_path(agent) / "log.txt"
        if not path.exists() or leads_out(self.path, path):
            return ""
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - max_bytes))
            return file.read().decode("utf-8", errors="replace")

    def rollout_files(self, agent: str) -> list[Path]:
        """The Parquet shards of an agent's rollouts, in step order; links that lead out of the run's folder are none."""
        found = sorted((self.agent_path(agent) / "rollouts").glob("*.parquet"))
        return [path for path in found if not leads_out(self.path, path)]


def default_runs_dir() -> Path:
    """`CORL_RUNS`, or runs/ in the current folder."""
    return Path(os.environ.get("CORL_RUNS") or "runs").resolve()


def all_runs(runs_dir: Path) -> list[Run]:
    """Every folder with a run.yaml, newest first; see `Run.problem` for one that cannot be read."""
    runs = [Run(path.parent) for path in Path(runs_dir).glob("*/run.yaml")]
    return sorted(runs, key=lambda run: run.id, reverse=True)


def find_run(runs_dir: Path, ref: str) -> Run:
    """A run by id, by an unambiguous start of its id, or the newest with that name. Raises RunNotFound."""
    return find_runs(runs_dir, ref)[0]


def find_runs(runs_dir: Path, ref: str) -> list[Run]:
    """Every run that `ref` means, newest first: several where several have that name, else one. Raises RunNotFound."""
    from corl_core.runs.labels import shown_name  # which is about runs, too

    runs = all_runs(runs_dir)
    if exact := [run for run in runs if run.id == ref]:
        return exact
    if named := [run for run in runs if not run.problem and ref in (run.config.name, shown_name(run))]:
        return named
    starting = [run for run in runs if ref and run.id.startswith(ref)]
    if len(starting) == 1:
        return starting
    known = ", ".join(run.id for run in (starting or runs)[:5]) or "none"
    what = f"{len(starting)} runs start with '{ref}'" if starting else f"no run '{ref}'"
    raise RunNotFound(f"{what} in {runs_dir}; give one id (newest: {known})")


def read_status(path: Path) -> Status:
    try:
        claim = json.loads((path / "status.json").read_text())
        known = {each.name for each in fields(Status)}  # a newer version may have written more
        return Status(**{key: value for key, value in claim.items() if key in known})
    except FileNotFoundError:
        return Status(state="starting", created=(path / "run.yaml").stat().st_mtime)
    except (json.JSONDecodeError, TypeError, AttributeError) as error:
        return Status(state="failed", created=(path / "run.yaml").stat().st_mtime, reason=f"status.json is damaged: {error}")


def write_status(path: Path, status: Status) -> None:
    """The reason may quote an agent's log, and is masked: secrets stay out of the folder, and of MLflow and pages with it."""
    write_atomically(path / "status.json", json.dumps(asdict(status) | {"reason": masked(status.reason)}))


def update_status(path: Path, status: Status) -> bool:
    """`write_status`, but never over the end of the same attempt or of a later one; False when that stands there. Raises
    FileNotFoundError for a run that somebody has deleted, also where a late file has made its folder again."""
    with locked(path):
        (path / "run.yaml").stat()
        try:
            stored = Status(**json.loads((path / "status.json").read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            stored = None
        if stored is not None and stored.final and stored.attempt >= status.attempt:
            return False
        write_status(path, status)
        return True


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Alone with a folder's status, or with a file that exists for this. Leaves no file behind in a folder, and makes none of one
    that somebody deletes meanwhile (FileNotFoundError)."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def write_atomically(path: Path, text: str) -> None:
    """Readers see the old text or the new, never half of one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)


def start_of(process: psutil.Process) -> float:
    """When a process began: seconds since the machine did, plus a number of this start of the machine. Tells apart two processes
    of one pid, and unlike `create_time` does not move when the clock is set. Where there is no /proc, `create_time`."""
    try:
        ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[19]  # field 22: see proc(5)
        boot = Path("/proc/sys/kernel/random/boot_id").read_text()
    except FileNotFoundError:
        return process.create_time()
    return 1e10 + int(boot[:8], 16) + int(ticks) / os.sysconf("SC_CLK_TCK")


def is_alive(pid: int, created: float) -> bool:
    """Whether that very process runs; a pid used again by another program does not count. `created`: by `start_of`, or psutil's
    `create_time`."""
    try:
        process = psutil.Process(pid)
        same = min(abs(start_of(process) - created), abs(process.create_time() - created)) < 1.0
        return same and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def is_suspended(pid: int) -> bool:
    """Whether a process was halted (SIGSTOP) and waits to be continued."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_STOPPED
    except psutil.NoSuchProcess:
        return False


def _reconciled(claim: Status, stop_requested: bool) -> Status:
    if claim.final or claim.state == QUEUED:
        return claim
    if claim.pid is None:
        if time.time() - max(claim.created, claim.heartbeat or 0.0) < STARTED_WITHIN_S:
            return claim
        return replace(claim, state="failed", cause="unknown", reason="the supervisor never started; see supervisor.log")
    if not is_alive(claim.pid, claim.pid_created or 0.0):
        known = claim.state == "stopping" and claim.cause  # it had written down what failed before
        why = {} if known else {"cause": "killed", "reason": "the supervisor was killed"}
        return replace(claim, state="failed", ended=claim.heartbeat, **why)
    if is_suspended(claim.pid):
        return replace(claim, state="stalled", reason=f"the supervisor is suspended; kill -CONT {claim.pid} lets it go on")
    if (silent_s := _silence_s(claim)) > STALLED_AFTER_S:
        return replace(claim, state="stalled", reason=f"no sign of life for {silent_s:.0f} s")
    if stop_requested and claim.state != "stopping":
        return replace(claim, state="stopping", reason="")
    return claim


def _silence_s(claim: Status) -> float:
    """Seconds since the supervisor's last sign of life; 0 before its first."""
    if claim.beat is not None:
        return time.monotonic() - claim.beat
    return time.time() - claim.heartbeat if claim.heartbeat is not None else 0.0
