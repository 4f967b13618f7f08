"""A run held against the theory: which questions are followed, what is predicted of them, and what was measured."""

import numpy as np
import pytest

from corl_core.figures import theory as drawing
from corl_core.figures import theory_run as figure
from corl_core.rollouts.ballots import Ballots, run_ballots
from corl_core.theory import against_run
from corl_core.theory.against_run import NoTruth
from tests.made_rollouts import made_run, small_config

PAIR = {"a": "b", "b": "a"}
DRAWS = [  # K = 4; right answers first: q0 .75 and .5 → both right; q1 .5 and .25 → both wrong; q2 comes once
    {"step": 0, "id": "q0", "truth": "5", "a": ("5 5 5 7", "5"), "b": ("5 5 8 -", "5")},
    {"step": 0, "id": "q1", "truth": "3", "a": ("3 3 9 9", "9"), "b": ("9 9 9 3", "3")},
    {"step": 1, "id": "q2", "truth": "1", "a": ("1 1 1 1", "1"), "b": ("1 1 1 1", "1")},
    {"step": 2, "id": "q0", "truth": "5", "a": ("5 5 5 5", "5"), "b": ("5 5 5 8", "5")},
    {"step": 3, "id": "q0", "truth": "5", "a": ("5 5 5 5", "5"), "b": ("5 5 5 5", "5")},
    {"step": 3, "id": "q1", "truth": "3", "a": ("9 9 9 9", "9"), "b": ("9 9 9 3", "9")},
]


def ballots(folder, draws=DRAWS, config=None) -> Ballots:
    run = made_run(folder, draws, config)
    return run_ballots(run.path, [agent.name for agent in run.config.agents], run.config.num_votes)


def test_questions_are_followed_from_their_first_visit_to_their_last(tmp_path):
    found = against_run.follow(ballots(tmp_path), "ring", PAIR)
    assert found.question_ids.tolist() == ["q0", "q1"]
    assert found.start.tolist() == [[0.75, 0.5], [0.5, 0.25]]
    assert found.end.tolist() == [[1, 1], [0, 0.25]]
    visits = slice(found.first[0], found.last[0] + 1)
    assert found.accuracy[visits].tolist() == [[0.75, 0.5], [1, 0.75], [1, 1]] and found.step[visits].tolist() == [0, 2, 3]


def test_the_rule_is_the_sum_for_a_pair_and_a_half_for_own_votes(tmp_path):
    given = ballots(tmp_path)
    assert against_run.follow(given, "ring", PAIR).rule.tolist() == [[1, 1], [0, 0]]  # 1.25 and .75
    assert against_run.follow(given, "self", {}).rule.tolist() == [[1, 0.5], [0.5, 0]]  # ½ is the edge
    assert against_run.follow(given, "ground_truth", {}).rule.tolist() == [[1, 1], [1, 1]]


def test_answers_are_counted_with_the_truth_first():
    codes = np.array([[[3, 3, 9, -1], [4, 4, 4, 4]], [[7, 9, 3, 9], [4, 2, -1, -1]]])  # (A, Q, V)
    counts = against_run.counted(codes, np.array([3, 2]))
    # q0: the truth is 3; 7 and 9 are its wrong answers. q1: the truth is 2, and 4 is wrong.
    assert counts.tolist() == [[[2, 0, 1], [1, 1, 2]], [[0, 4, 0], [1, 1, 0]]]
    nobody = against_run.counted(np.full((2, 1, 3), -1), np.array([5]))
    assert nobody.tolist() == [[[0, 0], [0, 0]]]


def test_the_chance_grows_with_the_start_and_knows_how_little_was_seen(tmp_path):
    found = against_run.follow(ballots(tmp_path), "ring", PAIR)
    assert 0 < found.chance[1, 0] < 0.5 < found.chance[0, 0] <= 1
    sure = against_run.follow(ballots(tmp_path / "truth"), "ground_truth", {})
    assert sure.chance.tolist() == [[1, 1], [1, 1]] and sure.kept == 0.5  # q1 did not get there


def test_different_wrong_answers_give_a_better_chance_than_the_same_one(tmp_path):
    def chance(other: str, name: str) -> float:
        first = {"step": 0, "id": "q", "truth": "1", "a": ("1 1 1 2 2 2 2 2", "2"), "b": (f"1 1 1 {' '.join([other] * 5)}", "1")}
        again = first | {"step": 1}
        return against_run.follow(ballots(tmp_path / name, [first, again], small_config(k=8)), "ring", PAIR).chance[0, 0]

    assert chance("3", "different") > chance("2", "same") + 0.2


def test_calibration_says_how_many_stand_behind_each_point(tmp_path):
    found = against_run.follow(ballots(tmp_path), "ring", PAIR)
    rows = found.calibration([0, 1])
    assert sum(row["num"] for row in rows) == 4
    assert [row["chance"] for row in rows] == sorted(row["chance"] for row in rows)
    assert np.average([row["right"] for row in rows], weights=[row["num"] for row in rows]) == pytest.approx(found.end.mean())
    drawn = figure.calibration(rows)
    assert len(drawn["data"][1]["x"]) == len(rows) and all(value == value for value in drawn["data"][1]["error_y"]["array"])


def test_a_run_whose_questions_come_once_is_compared_as_a_whole(tmp_path):
    draws = [
        {"step": step, "id": f"q{step}", "truth": "1", "a": ("1 1 1 2" if step < 5 else "1 1 1 1", "1"), "b": ("1 1 2 2", "1")}
        for step in range(10)
    ]
    given = ballots(tmp_path, draws)
    nobody = against_run.follow(given, "ring", PAIR)
    assert len(nobody.first) == len(nobody.rule) == len(nobody.chance) == 0
    whole = against_run.stream(given, "ring", PAIR)
    assert (whole.until, whole.since) == (1, 8)  # a fifth of 0..9 is 1.8 steps
    assert whole.start.tolist() == [0.75, 0.5] and whole.end.tolist() == [1, 0.5]
    assert whole.right_side.tolist() == [1, 1]  # 1.25 > 1


def test_without_truth_or_without_an_agent_there_is_nothing_to_hold_it_against(tmp_path):
    untold = [{"step": step, "id": "q", "a": ("1 1", "1"), "b": ("1 2", "1")} for step in (0, 1)]
    with pytest.raises(NoTruth, match="no question with a known answer"):
        against_run.follow(ballots(tmp_path, untold), "ring", PAIR)
    alone = [{"step": step, "id": "q", "truth": "1", "a": ("1 1", "1")} for step in (0, 1)]
    with pytest.raises(NoTruth):
        against_run.stream(ballots(tmp_path / "alone", alone), "ring", PAIR)


def test_rings_are_read_off_the_peers():
    agents = ("a", "b", "c", "d")
    assert against_run.rings(agents, {"b": "a", "c": "b", "d": "c", "a": "d"}) == ((0, 1, 2, 3),)
    assert against_run.rings(agents, {"a": "c", "c": "a", "b": "d", "d": "b"}) == ((0, 2), (1, 3))
    assert against_run.rings(("a",), {"a": "a"}) == ((0,),)


def test_the_theory_speaks_of_votes_and_truth_only():
    assert against_run.supervision_of(["peer"]) == "ring" and against_run.supervision_of(["teacher"]) == "self"
    assert against_run.supervision_of([None]) is None and against_run.supervision_of(["peer", None]) is None


def test_a_ring_of_three_is_followed_too(tmp_path):
    config = small_config(agents=("a", "b", "c"))
    draw = {"id": "q", "truth": "1", "a": ("1 1 1 1", "1"), "b": ("1 1 1 2", "1"), "c": ("1 1 2 2", "1")}
    given = ballots(tmp_path, [draw | {"step": 0}, draw | {"step": 1}], config)
    found = against_run.follow(given, "ring", config.peers())
    assert found.cycles == ((0, 1, 2),) and found.rule.tolist() == [[1, 1, 1]] and (found.chance > 0.5).all()


def test_paths_are_coloured_by_how_they_end(tmp_path):
    found = against_run.follow(ballots(tmp_path), "ring", PAIR)
    traces = figure.question_paths(found.first, found.last, found.accuracy, found.step, found.texts)
    legend = [trace["name"] for trace in traces if trace["showlegend"]]
    assert legend == ["both right at the end (1)", "both wrong at the end (1)"]
    assert figure.outcome(np.array([[1, 1], [0.8, 0.5], [0, 0.5]])).tolist() == [0, 1, 2]
    plot = drawing.plane([*drawing.basins("ring"), drawing.field("ring", 4), *traces], "A", "B")
    assert plot["layout"]["showlegend"] and plot["layout"]["xaxis"]["title"]["text"] == "A"


def test_the_fields_arrows_point_where_the_flow_goes():
    arrows = drawing.field("ring", 11)
    x, y = np.array(arrows["x"], dtype=float).reshape(-1, 6), np.array(arrows["y"], dtype=float).reshape(-1, 6)
    tail_x, tail_y, moved_x = x[:, 0], y[:, 0], x[:, 1] - x[:, 0]
    clear = np.abs(tail_y - 0.5) > 0.1
    assert (np.sign(moved_x[clear]) == np.sign(tail_y[clear] - 0.5)).all() and len(tail_x) > 100
