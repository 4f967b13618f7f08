"""Which weights are kept: by a rule, also over a stop and a resume."""

from pathlib import Path

import pytest

from corl_core.runs.journal import Journal, read
from corl_core.training.selection import Selection


class Weights:
    """What an agent has learned so far, as one number."""

    now = 0.0

    def save(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "weights").write_text(str(self.now))


@pytest.fixture
def agent(tmp_path):
    weights = Weights()

    def selection(rule: str) -> Selection:
        return Selection(rule, tmp_path, Journal(tmp_path / "journal.jsonl"), weights.save)

    return weights, selection, lambda: float((tmp_path / "model" / "weights").read_text()), tmp_path


def see(weights: Weights, selection: Selection, values: dict[int, float | None]) -> None:
    for step, value in values.items():
        weights.now = float(step)
        selection.consider(step, value)


def test_the_last_weights_are_kept_whatever_was_measured(agent):
    weights, selection, kept, _ = agent
    see(weights, chosen := selection("last"), {0: 0.9, 10: 0.1})
    chosen.finish(10, may_go_on=False)
    assert kept() == 10.0


def test_the_best_weights_are_kept_and_of_equal_ones_the_latest(agent):
    weights, selection, kept, folder = agent
    see(weights, chosen := selection("peer_agreement"), {0: 0.2, 10: 0.8, 20: 0.8, 30: 0.5, 40: None})
    chosen.finish(40, may_go_on=False)
    assert kept() == 20.0 and not (folder / "best").exists()
    (line,) = read(folder / "journal.jsonl")
    assert (line["step"], line["value"], line["rule"], line["uses_truth"]) == (20, 0.8, "peer_agreement", False)


def test_where_nothing_could_be_compared_the_last_weights_are_kept_and_that_is_what_is_said(agent):
    weights, selection, kept, folder = agent
    see(weights, chosen := selection("ground_truth"), {0: None, 10: None})
    chosen.finish(10, may_go_on=False)
    assert kept() == 10.0
    (line,) = read(folder / "journal.jsonl")
    assert (line["step"], line["value"], line["rule"], line["uses_truth"]) == (10, None, "last", False)


def test_after_a_stop_the_best_so_far_still_has_to_be_beaten(agent):
    weights, selection, kept, _ = agent
    see(weights, first := selection("ground_truth"), {0: 0.2, 10: 0.8})
    first.finish(10, may_go_on=True)
    assert kept() == 10.0
    see(weights, second := selection("ground_truth"), {20: 0.5})
    second.finish(20, may_go_on=False)
    assert kept() == 10.0


def test_a_rule_that_never_measured_anything_keeps_the_last_weights(agent):
    weights, selection, kept, _ = agent
    see(weights, chosen := selection("ground_truth"), {0: None, 10: None})
    chosen.finish(10, may_go_on=False)
    assert kept() == 10.0


class Trained:
    """Weights that `finish` need not save again."""


def test_an_agent_that_stops_because_its_peer_was_asked_keeps_its_best_to_go_on_with(small_run, tmp_path):
    from corl_core.runs.folder import Run
    from corl_core.training.agent import Agent
    from corl_core.training.exchange import RunStopped

    (tmp_path / "run.yaml").write_text(small_run(eval__checkpoint="peer_agreement").to_yaml())
    folder = tmp_path / "agents" / "a"
    folder.mkdir(parents=True)
    agent, weights = Agent(Run(tmp_path), "a", port=0), Weights()

    def stopped_by_the_peer() -> None:
        agent.model = agent.whole = Trained()
        see(weights, agent.selection, {0: 0.2, 10: 0.8})
        raise RunStopped

    agent.selection = Selection("peer_agreement", folder, agent.recorder.journal, weights.save)
    agent._learn = stopped_by_the_peer
    agent.run()
    assert not agent.stop_requested and agent.is_stopped
    assert (folder / "best" / "weights").read_text() == "10.0" == (folder / "model" / "weights").read_text()
