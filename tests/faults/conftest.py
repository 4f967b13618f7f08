"""The harness: real runs in folders of their own, held at a place, harmed there, and looked at afterwards."""

import json
import os
import socket
import sqlite3
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd
import psutil
import pytest
from filelock import FileLock
from safetensors.torch import load_file

from corl_core.runs import launch, queue_dispatch
from corl_core.runs.folder import FINAL, Run, Status, read_status
from corl_core.runs.journal import Tail, read
from corl_core.runs.settle import settle
from corl_core.tracking.closing import close_later
from tests.test_resume import measured, rollouts

HOOKS = Path(__file__).parent / "hooks"
BEATS = 2  # after which a state is right: the one that may be under way, and the next, which has seen all
STEPS = 20
FIELDS = {
    "grpo__max_steps": STEPS, "grpo__questions_per_step": 2, "grpo__num_generations": 4, "checkpoints__every_steps": 4,
    "eval__every_steps": 10, "eval__num_questions": 6,
}  # fmt: skip


def slowness() -> float:
    """How much longer things take than on an idle machine: processes that want a core, for each core there is."""
    return min(20.0, max(1.0, os.getloadavg()[0] / len(os.sched_getaffinity(0))))


def patience() -> dict[str, dict[str, float]]:
    """Constants of modules under the harness: a server that is started again has an idle machine's half minute to answer."""
    return {"corl_core.runs.supervisor": {"MLFLOW_GRACE_S": 30.0 * slowness()}}


@dataclass
class Fault:
    """A run under the harness. `mark` is in the environment of every process of it."""

    run: Run
    folder: Path
    mark: str
    listened: set[int] = field(default_factory=set)  # ports of its processes that it was seen to listen on

    def wait(self, condition, what: str, timeout_s: float = 60.0):
        """`timeout_s` are seconds of an idle machine: on a busy one time passes more slowly."""
        last, left_s = time.monotonic(), timeout_s
        while left_s > 0:
            if value := condition():
                return value
            time.sleep(0.05)
            now = time.monotonic()
            last, left_s = now, left_s - (now - last) / slowness()
        return self._fail(f"waited {timeout_s:g} s for {what}")

    def within_a_heartbeat(self, condition, what: str):
        """Waits for what the supervisor tells, for as many heartbeats as it may take, however long they take it."""
        before, beats = read_status(self.run.path).beat, 0
        while True:
            beat = read_status(self.run.path).beat
            before, beats = beat, beats + (beat != before)
            if value := condition():
                return value
            if beats > BEATS or self.run.status().final:
                return self._fail(f"after {beats} heartbeats still not: {what}")
            time.sleep(0.02)

    def is_told_to_end(self) -> None:
        """Within a heartbeat of what befell it, the run says that it ends or has ended, to whoever reads it."""
        self.within_a_heartbeat(lambda: self.run.status().state in ("stopping", *FINAL), "it is stopping, or has ended")

    def _fail(self, why: str):
        told = f"{self.run.status()}\n{self.run.log_tail()[-2000:]}" if self.run.path.exists() else ""
        pytest.fail(f"{why}\n{told}")

    def reached(self, agent: str, place: str) -> int:
        """Waits until the agent is held there; the step that it is in."""
        here = self.folder / f"{agent}.{place}.here"
        step = int(self.wait(lambda: here.exists() and here.read_text(), f"{agent} at {place}"))
        ports = self.ports()
        assert ports, "the vote store listens as long as an agent lives"
        self.listened |= ports
        return step

    def let_go(self, agent: str, place: str) -> None:
        (self.folder / f"{agent}.{place}").unlink(missing_ok=True)

    def processes(self) -> list[psutil.Process]:
        """Whatever the run has started and still lives: supervisor, fork server, agents, and their helpers."""
        return marked(self.mark)

    def taken(self) -> int:
        """The slots of the queue that are taken: cores, and places on GPUs."""
        free = queue_dispatch.free(self.run.path.parent)
        return free.cores_used + sum(free.agents_on.values())

    def supervisor(self) -> psutil.Process:
        return psutil.Process(self.run.status().pid)

    def agent(self, name: str) -> psutil.Process:
        """By the log that it writes to, as its process says nothing else of it."""
        log = str(self.run.agent_path(name) / "log.txt")
        return next(one for one in self.processes() if os.path.realpath(f"/proc/{one.pid}/fd/1") == log)

    def ports(self) -> set[int]:
        found = set()
        for process in self.processes():
            with suppress(psutil.Error):  # it has just ended
                found |= {one.laddr.port for one in process.net_connections("tcp") if one.status == psutil.CONN_LISTEN}
        return found

    def ended(self, state: str, cause: str = "", within_s: float = 60.0) -> Status:
        """Waits until the run says that it is over; what it says then must be this, at once and for good."""
        self.wait(lambda: settle(self.run).final, "a final state", within_s)
        status = settle(self.run)
        assert (status.state, status.cause) == (state, cause), f"{status}\n{self.run.log_tail()[-2000:]}"
        return status

    def gone(self, within_s: float = 30.0) -> None:
        """Waits until no process is left, and none that listens, and no slot is taken; the run still says what it said."""
        before = settle(self.run)
        assert before.final and self.taken() == 0, "a run that has ended takes no slot, whoever of it still lives"
        self.wait(lambda: not self.processes(), f"the last process to end: {self.processes()}", within_s)
        assert replace(settle(self.run), untold=before.untold) == before
        self.no_port_is_left()

    def no_port_is_left(self) -> None:
        """None of those that the run was seen to listen on at the places that it `reached`."""
        for port in self.listened:
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", port)) != 0, f"port {port} is still open"
        self.listened.clear()

    def told(self) -> None:
        """What any reader does that has seen the run, until MLflow knows how it ended."""
        close_later([(self.run, settle(self.run))])
        self.wait(lambda: not settle(self.run).untold, "MLflow to be told")

    def go_on(self, hold: dict[str, int]) -> None:
        """Resumes, with agents held at other places than before."""
        for path in self.folder.glob("[a-z].*"):
            path.unlink()
        for place, step in hold.items():
            (self.folder / place).write_text(str(step))
        launch.resume(self.run)

    def resumed(self) -> None:
        """Goes on to the end, undisturbed."""
        self.go_on({})
        self.ended("finished")
        self.gone()


def marked(mark: str) -> list[psutil.Process]:
    """The living processes that carry a mark in their environment. Read as bytes: this is asked twenty times a second."""
    found, wanted = [], f"CORL_MARK={mark}".encode()
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if wanted in Path(f"/proc/{pid}/environ").read_bytes():
                process = psutil.Process(pid)
                found += [process] if process.status() != psutil.STATUS_ZOMBIE else []
    return found


@pytest.fixture
def faulty_environment(tmp_path, monkeypatch):
    """A function that prepares what is started next: the folder of its faults, and the mark that its processes carry."""
    marks: list[str] = []

    def prepare(hold=None, settings=None) -> tuple[Path, str]:
        folder, mark = tmp_path / f"faults-{len(marks)}", uuid.uuid4().hex
        marks.append(mark)
        folder.mkdir()
        for place, step in (hold or {}).items():
            (folder / place).write_text(str(step))
        (folder / "settings.json").write_text(json.dumps(patience() | (settings or {})))
        others = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path not in ("", str(HOOKS))]
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HOOKS), *others]))
        monkeypatch.setenv("CORL_FAULTS", str(folder))
        monkeypatch.setenv("CORL_MARK", mark)
        return folder, mark

    yield prepare
    for mark in marks:
        for process in marked(mark):
            with suppress(psutil.NoSuchProcess):
                process.kill()


@pytest.fixture
def faulty(faulty_environment, small_run, tmp_path):
    """A function that starts a run and holds agents where asked: faulty(hold={"b.update": 9}, **fields)."""

    def start(hold=None, runs_dir=None, settings=None, method="corl", **fields) -> Fault:
        folder, mark = faulty_environment(hold, settings)
        return Fault(launch.launch(small_run(method, **(FIELDS | fields)), runs_dir or tmp_path / "runs"), folder, mark)

    return start


@pytest.fixture
def undisturbed(faulty, tmp_path_factory):
    """A function: the run that nobody disturbs, trained when the first test of any worker asks for it."""
    shared = tmp_path_factory.getbasetemp()
    shared = shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared
    told = shared / "undisturbed.txt"

    def get() -> Run:
        with FileLock(shared / "undisturbed.lock"):
            if not told.exists():
                fault = faulty(runs_dir=shared / "undisturbed")
                fault.ended("finished")
                fault.gone()
                told.write_text(str(fault.run.path))
        return Run(Path(told.read_text()))

    return get


def journaled(run: Run) -> dict[str, Counter]:
    """agent → how often each (metric, step, value) stands in its journal, whole lines of all attempts."""
    return {
        agent: Counter(
            (name, line["step"], repr(float(value)))
            for line in Tail(path).read() for name, value in line.get("metrics", {}).items()
        )
        for agent, path in run.journal_paths().items()
    }  # fmt: skip


def logged(run: Run, store: Path | None = None) -> dict[str, Counter]:
    """The same out of MLflow's own tables; alarms, which the cohort's journal tells of agents, left out."""
    file = store or run.path.parent / "mlflow.db"
    query = """select tag.value, m.key, m.step, m.value, m.is_nan from metrics m join tags mine on mine.run_uuid = m.run_uuid
               and mine.key = 'corl.run_id' and mine.value = ? left join tags tag on tag.run_uuid = m.run_uuid
               and tag.key = 'corl.agent' where m.key not like 'alarm/%'"""
    found: dict[str, Counter] = {agent: Counter() for agent in run.journal_paths()}
    with sqlite3.connect(file) as connection:
        for agent, key, step, value, is_nan in connection.execute(query, [run.id]):
            found[agent or ""][key, step, repr(float("nan") if is_nan else float(value))] += 1
    return found


def mlflow_states(run: Run, store: Path | None = None) -> list[str]:
    """One for each MLflow run of this run: the cohort's and every agent's."""
    query = """select status from runs r join tags t on t.run_uuid = r.run_uuid and t.key = 'corl.run_id' and t.value = ?
               where r.lifecycle_stage = 'active'"""
    with sqlite3.connect(store or run.path.parent / "mlflow.db") as connection:
        return [state for (state,) in connection.execute(query, [run.id])]


def assert_mirrored(run: Run, state: str) -> None:
    """MLflow has each journaled value once, and knows how the run ended."""
    assert logged(run) == journaled(run)
    assert mlflow_states(run) == [state] * (1 + len(run.config.agents))


def assert_same_training(undisturbed: Run, harmed: Run) -> None:
    """Weights, rollouts and every measured value are those of the run that nobody disturbed. A run that was stopped has been
    evaluated once more, where it stopped."""
    for agent in "ab":
        ours, theirs = (load_file(run.agent_path(agent) / "model" / "model.safetensors") for run in (undisturbed, harmed))
        assert all(bool((ours[key] == theirs[key]).all()) for key in ours)
        pd.testing.assert_frame_equal(rollouts(undisturbed, agent), rollouts(harmed, agent))
    for agent in ("a", "b", ""):
        expected, found = measured(undisturbed, agent), measured(harmed, agent)
        asked = {(line["event"], line["step"]) for line in expected}
        assert expected == [line for line in found if (line["event"], line["step"]) in asked]


def assert_rollouts_kept(run: Run) -> None:
    """Every step that an agent has journaled has its rollouts, each once."""
    per_step = run.config.grpo.questions_per_step * run.config.num_samples
    for agent in (agent.name for agent in run.config.agents):
        steps = [line["step"] for line in read(run.journal_paths()[agent]) if line["event"] == "step"]
        files = run.rollout_files(agent)
        counts = pd.concat([pd.read_parquet(path) for path in files])["step"].value_counts() if files else {}
        assert {step: counts.get(step, 0) for step in steps} == dict.fromkeys(steps, per_step)
