"""Alarms on recorded runs of the demo, three seeds each: lock-in is raised in time, and a healthy ring raises nothing.

`alarm_records.py` made the records from runs of the presets, with more evaluations for TTRL: every two steps at the start.
"""

import pytest

from corl_core.alarms.record import Alarm, alarms_of
from corl_core.alarms.watch import Watch
from tests.alarm_records import lines, read

SEEDS = (0, 1, 2)
NOISE = 0.02  # two standard errors of an accuracy from 252 questions x 8 samples


def alarms(record: dict) -> list[Alarm]:
    watch = Watch(list(record["agents"]), record["num_votes"])
    return alarms_of(event for agent, line in lines(record) for event in watch.add(agent, line))


def half_lost(evaluations: dict[str, dict[str, float]], metric: str) -> tuple[float, int]:
    """What an agent loses from its highest value to its last, and the first evaluation by which half of that is gone."""
    curve = sorted((int(step), metrics[metric]) for step, metrics in evaluations.items())
    top_step, top = max(curve, key=lambda point: (point[1], -point[0]))
    loss = top - curve[-1][1]
    return loss, next(step for step, value in curve if step > top_step and value <= top - loss / 2) if loss else curve[-1][0]


def test_half_a_loss_is_counted_from_the_highest_value():
    curve = {"0": {"x": 0.6}, "10": {"x": 0.8}, "20": {"x": 0.75}, "30": {"x": 0.69}, "40": {"x": 0.6}}
    assert half_lost(curve, "x") == (pytest.approx(0.2), 30)  # 0.7 is half-way


@pytest.mark.parametrize("seed", SEEDS)
def test_ttrl_raises_lock_in_of_every_agent_before_half_of_the_accuracy_is_lost(seed):
    record = read(f"demo-ttrl-{seed}")
    raised = [alarm for alarm in alarms(record) if alarm.kind == "label_lock_in"]
    assert sorted(alarm.agent for alarm in raised) == sorted(record["agents"])
    losing = 0
    for alarm in raised:
        loss, step = half_lost(record["agents"][alarm.agent]["evaluations"], "eval/accuracy")
        losing += loss > NOISE
        assert loss <= NOISE or alarm.step + 1 < step  # an alarm of step s comes after s + 1 updates
        assert alarm.evidence["proved_error"] > alarm.evidence["doubt"]
    assert losing == 2  # one agent of each seed ends where it was, or above


@pytest.mark.parametrize("seed", SEEDS)
def test_lock_in_is_raised_long_before_an_evaluation_of_the_preset_shows_it(seed):
    """The preset evaluates every 50 steps, when the majority has lost more than half of what it will."""
    record = read(f"demo-ttrl-{seed}")
    first = min(alarm.step for alarm in alarms(record))
    assert first <= 10
    majority = [half_lost(agent["evaluations"], "eval/majority_accuracy") for agent in record["agents"].values()]
    assert all(step < 50 for loss, step in majority if loss > NOISE)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_healthy_ring_raises_no_alarm_of_any_kind(seed):
    record = read(f"demo-{seed}")
    assert record["num_steps"] == 600 and alarms(record) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_pair_raises_none_either(seed):
    assert alarms(read(f"demo-pair-{seed}")) == []


def test_agents_of_one_school_lock_in_together_which_only_ground_truth_tells():
    """They agree on the slip that they share, so their votes prove nothing of each other; the held-out majority falls."""
    record = read("demo-same-family-0")
    raised = alarms(record)
    assert [(alarm.kind, alarm.step) for alarm in raised] == [("label_lock_in", 100)] * 3
    assert all(alarm.evidence["majority_accuracy"] < alarm.evidence["majority_accuracy_best"] for alarm in raised)
    for agent in record["agents"].values():
        agent["evaluations"] = {}
    assert alarms(record) == []


def test_lock_in_needs_no_ground_truth():
    record = read("demo-ttrl-0")
    with_truth = alarms(record)
    for agent in record["agents"].values():
        agent["evaluations"] = {}
    assert alarms(record) == with_truth
