"""One agent on another node, seen from here: what it takes along, what comes back, and how it ends. Without a cluster."""

import errno
import signal
import sys
import time
from dataclasses import replace

import pytest

from corl_core.config import load_config
from corl_core.runs import launch, supervisor
from corl_core.runs.folder import Run
from corl_core.runs.journal import Tail
from corl_core.runs.launchers import ray_agent
from corl_core.runs.launchers.mirror import Part
from corl_core.runs.launchers.ray import RayLauncher
from corl_core.runs.launchers.ray_agent import AHEAD, RayAgent
from corl_core.runs.launchers.ray_node import News
from corl_core.runs.watched import Watched
from tests.fake_ray import Actor, RayTaskError, Reference, fake


class Node:
    """A node's actor that has these news to tell, and then no more."""

    def __init__(self, *news: News, words: str = ""):
        self.told, self.words, self.signals, self.puts = list(news), words, [], []

    def put(self, parts) -> None:
        self.puts.append(parts)

    def news(self) -> News:
        if not self.told:
            return News([], None)
        if isinstance(self.told[0], Exception):
            raise self.told[0]
        return self.told.pop(0)

    def last_words(self) -> str:
        return self.words

    def signal(self, number, alone) -> None:
        self.signals.append(number)

    def close(self) -> None:
        self.told = [RayTaskError("closed")]


@pytest.fixture
def killed(monkeypatch):
    actors = []
    monkeypatch.setitem(sys.modules, "ray", fake(actors))
    return actors


@pytest.fixture
def agent_of(killed, tmp_path):
    def make(node: Node, luggage=(), is_placed: bool = True) -> RayAgent:
        agent = RayAgent("a", Actor(node), tmp_path / "a", iter(luggage), lambda: Reference("10.0.0.1 (there)"))
        if is_placed:
            agent.take()
        return agent

    return make


def part(number: int) -> Part:
    return Part(f"rollouts/{number}", b"r")


def test_an_agent_that_has_ended_is_waited_for_as_long_as_what_it_left_keeps_coming(agent_of):
    class Slow(Node):
        def news(self) -> News:
            time.sleep(0.05)
            return super().news()

    agent = agent_of(Slow(*(News([part(number)], 0) for number in range(4)), News([], 0)))
    agent.join(0.06)  # five answers take 0.25 s
    assert agent.exitcode == 0 and len(list((agent._folder / "rollouts").iterdir())) == 4


def test_one_that_still_works_is_waited_for_no_longer_than_was_said(agent_of):
    agent = agent_of(Node(*(News([part(number)], None) for number in range(10_000))))
    begun = time.monotonic()
    agent.join(0.1)
    assert agent.exitcode is None and not agent.leaving and time.monotonic() - begun < 5.0


def test_one_that_has_ended_and_says_no_more_is_not_waited_for_for_ever(agent_of, monkeypatch):
    agent = agent_of(Node(News([part(0)], 0)))
    agent.take()
    assert agent.leaving
    monkeypatch.setattr(ray_agent, "SILENT_S", 0.0)
    assert not agent.leaving


def test_the_exit_code_counts_once_everything_has_come(agent_of):
    agent = agent_of(Node(News([part(0)], 3), News([], 3)))
    assert agent.take() and agent.exitcode is None and agent.leaving
    agent.take()
    assert agent.exitcode == 3 and not agent.leaving


def test_after_a_part_that_found_no_room_none_is_taken_and_only_the_end_counts(agent_of, monkeypatch):
    mark = Part("checkpoints/checkpoint-4/complete.json", b"{}")
    agent = agent_of(Node(News([part(0)], None), News([mark], None), News([mark], 1)))

    def full(folder, parts):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(ray_agent, "repeat", full)
        with pytest.raises(OSError, match="No space left"):
            agent.take()
    agent.join(5.0)  # there is room again, too late
    assert agent.exitcode == 1 and not (agent._folder / "checkpoints").exists()


def test_a_part_that_finds_no_room_while_an_agent_ends_hides_nothing(agent_of, monkeypatch):
    agent = agent_of(Node(News([part(0)], None), News([part(1)], 0)))
    monkeypatch.setattr(ray_agent, "repeat", lambda *_: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
    agent.join(5.0)
    assert agent.exitcode == 0


def test_what_is_closed_has_ended_and_closing_again_does_nothing(agent_of, killed, monkeypatch):
    agent = agent_of(Node(News([part(0)], None)))
    launcher = RayLauncher.__new__(RayLauncher)  # without a cluster to connect to
    launcher._agents, launcher._is_open = [agent], True
    ends = []
    monkeypatch.setattr(sys.modules["ray"], "shutdown", lambda: ends.append(len(killed)), raising=False)
    launcher.close()
    launcher.close()
    assert agent.exitcode == -signal.SIGKILL and ends == [1]
    launcher.wait([agent], 60.0)  # nobody is left to wait for, so no cluster is asked
    agent.signal(signal.SIGTERM)


def test_a_cohort_that_does_not_stop_in_time_is_closed_once_and_the_run_ends(agent_of, monkeypatch, tmp_path):
    run = launch.create(load_config("demo-pair"), tmp_path / "runs")
    monkeypatch.setattr(supervisor, "GRACE_S", 0.0)
    agent = agent_of(Node())
    watching = supervisor.Supervisor(Run(run.path))
    launcher = RayLauncher.__new__(RayLauncher)
    launcher._run, launcher._agents, launcher._is_open = run, [agent], True
    monkeypatch.setattr(sys.modules["ray"], "shutdown", lambda: None, raising=False)
    watching._launcher, watching._agents = launcher, {"llama": Watched(agent, Tail(tmp_path / "none"))}
    watching.status, watching.stop_requested = replace(watching.status, state="stopping"), True
    watching._stop_at = time.monotonic() - 1.0
    assert watching._watch() == "" and agent.exitcode == -signal.SIGKILL


def test_a_stop_does_not_run_out_for_one_whose_last_words_are_on_their_way(agent_of, tmp_path):
    agent = agent_of(Node(News([part(0)], 0)))
    watched = Watched(agent, Tail(tmp_path / "none"))
    assert watched.is_late
    agent.take()
    assert not watched.is_late and watched.stalled(tmp_path, 0.0) == ""


def test_a_checkpoint_is_sent_a_few_parts_at_a_time_and_the_agent_starts_after_the_last(agent_of):
    taken = []

    def luggage():
        for number in range(AHEAD + 2):
            taken.append(number)
            yield [part(number)]

    node = Node()
    agent = agent_of(node, luggage(), is_placed=False)
    assert len(taken) == AHEAD and agent.node == ""
    for arrived in range(1, AHEAD + 3):
        agent.take()
        assert len(node.puts) == min(AHEAD + arrived, AHEAD + 2) and agent.node == ""
    agent.take()
    assert agent.node == "10.0.0.1 (there)"


def test_no_secret_gets_into_a_log_with_what_ray_says(agent_of, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", "hf_verysecretvalue")
    failing = agent_of(Node(RayTaskError("cannot read https://me:pass@host/x with hf_verysecretvalue")))
    failing.take()
    said = (failing._folder / "log.txt").read_text()
    assert failing.exitcode == ray_agent.EXIT_LOST and "cannot read https://***@host/x with ***" in said
    (failing._folder / "log.txt").unlink()
    early = agent_of(Node(News([], 1), words="hf_verysecretvalue is no module"))
    early.take()
    assert early.exitcode == 1 and (early._folder / "log.txt").read_text() == "*** is no module"


def test_the_end_is_told_of_a_run_that_somebody_has_deleted(agent_of):
    agent = agent_of(Node(News([part(0)], 0)))
    agent._folder.rmdir()
    agent.take()
    assert agent.exitcode == 0 and not agent._folder.exists()
