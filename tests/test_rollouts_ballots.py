"""Aligned ballots: who voted what, who was right, which questions a filter finds, and agreement held against the truth."""

import numpy as np
import pytest

from corl_core.diagnostics import agreement, count_pair
from corl_core.rollouts import filters
from corl_core.rollouts.agreement import CASES, blocks, cases, decomposed, through, usual_block
from corl_core.rollouts.ballots import run_ballots
from tests.made_rollouts import made_run, small_config

# five draws of a pair, one for each case; r: only an unparsed group; s: a tie
DRAWS = [
    {"step": 0, "id": "p", "truth": "1", "a": ("1 1 1 2", "1"), "b": ("1 1 - -", "1")},  # agree, right
    {"step": 0, "id": "q", "truth": "1", "a": ("2 2 2 1", "2"), "b": ("2 2 2 2", "2")},  # agree, wrong; a's minority is right
    {"step": 1, "id": "r", "truth": "1", "a": ("1 1 1 1", ""), "b": ("- - - -", "1")},  # only a right; b does not parse
    {"step": 1, "id": "s", "truth": "1", "a": ("3 1 1 3", "1"), "b": ("1 1 2 2", "3")},  # a 3 (tie, first), b 1 (tie): only b
    {"step": 2, "id": "p", "truth": "1", "a": ("4 4 4 4", "5"), "b": ("5 5 5 1", "4")},  # both wrong, differently
    {"step": 2, "id": "t", "a": ("4 4 4 4", "4"), "b": ("4 4 4 4", "4")},  # truth unknown
]


@pytest.fixture
def ballots(tmp_path):
    run = made_run(tmp_path, DRAWS)
    return run_ballots(run.path, ("a", "b"), 4)


def test_votes_shares_and_what_is_right(ballots):
    assert ballots.num_draws == 6 and ballots.num_rollouts == 48 and ballots.step.tolist() == [0, 0, 1, 1, 2, 2]
    table = ballots.table()
    first = table[(table["step"] == 0) & (table["question_id"] == "p") & (table["agent"] == "b")].iloc[0]
    assert (first["vote"], first["count"], first["parsed"], first["size"], first["share"]) == ("1", 2, 2, 4, 1.0)
    assert bool(first["right"])
    by_agent = {agent: own[["vote", "pseudo_label"]].fillna("none") for agent, own in table.groupby("agent")}
    assert by_agent["a"]["vote"].tolist() == ["1", "2", "1", "3", "4", "4"]
    assert by_agent["b"]["vote"].tolist() == ["1", "2", "none", "1", "5", "4"]
    assert by_agent["a"]["pseudo_label"].tolist() == ["1", "2", "none", "1", "5", "4"]
    assert table["right"].isna().sum() == 2 and list(table[table["tied"]]["question_id"]) == ["s", "s"]


def found(ballots, name, *agents, since=0):
    mask = filters.matching(ballots, name, [ballots.place(agent) for agent in agents] or None, since)
    return [(int(ballots.step[place]), ballots.question_ids[ballots.question[place]]) for place in np.flatnonzero(mask)]


def test_each_filter_finds_its_questions(ballots):
    assert found(ballots, "same_wrong") == [(0, "q")]
    assert found(ballots, "minority_right") == [(0, "q"), (1, "s"), (2, "p")]
    assert found(ballots, "minority_right", "b") == [(2, "p")]
    assert found(ballots, "unparsed") == [(1, "r")] and found(ballots, "unparsed", "a") == []
    assert found(ballots, "tied") == [(1, "s")]
    assert len(found(ballots, "everything")) == 6
    assert found(ballots, "same_wrong", "a") == []  # one agent has nobody to be wrong with


def test_a_label_flips_when_it_differs_from_the_last_one_up_to_the_step(ballots):
    # p: a receives 1, then 5; b receives 1, then 4
    assert found(ballots, "flipped", since=0) == [(2, "p")]
    assert found(ballots, "flipped", since=2) == []  # nothing comes after step 2


def test_a_label_that_comes_back_has_not_flipped_and_a_missing_one_is_no_label(tmp_path):
    labels = ["1", "2", "", "1", "2"]
    run = made_run(tmp_path, [{"step": step, "id": "p", "a": ("1 1", label)} for step, label in enumerate(labels)])
    one = run_ballots(run.path, ("a", "b"), 4)
    assert found(one, "flipped", since=0) == [(1, "p"), (4, "p")]  # against 1
    assert found(one, "flipped", since=1) == [(3, "p")]  # against 2
    assert found(one, "flipped", since=2) == [(3, "p")]  # step 2 had none: still against 2


def test_search_wants_every_word_in_the_question_or_its_id(tmp_path):
    asked = [("p", "How many apples?"), ("q", "How many (red) pears?")]
    run = made_run(tmp_path, [{"step": 0, "id": name, "question": text, "a": ("1", "1")} for name, text in asked])
    one = run_ballots(run.path, ("a", "b"), 4)
    for text, hits in {"many": [0, 1], "MANY pears": [1], "(red": [1], "p apples": [0], "plums": [], " ": [0, 1]}.items():
        assert np.flatnonzero(filters.searched(one, text)).tolist() == hits, text


def test_an_agent_whose_shard_is_missing_is_absent_there(tmp_path):
    run = made_run(tmp_path, [*DRAWS, {"step": 3, "id": "late", "truth": "1", "a": ("1 1", "1")}])
    one = run_ballots(run.path, ("a", "b"), 4)
    assert one.present[:, -1].tolist() == [True, False] and not one.wrong[1, -1] and not one.right[1, -1]
    assert cases(one, "a", "b")[-1] == -1 and found(one, "unparsed") == [(1, "r")]
    assert list(one.table(np.array([6]))["agent"]) == ["a"]


def test_abstaining_ties_are_no_votes(tmp_path):
    run = made_run(tmp_path, DRAWS, small_config(vote={"tie": "abstain"}))
    one = run_ballots(run.path, ("a", "b"), 4, "abstain")
    assert [one.text(code) for code in one.votes[0]] == ["1", "2", "1", None, "4", "4"] and found(one, "tied") == [(1, "s")]


def test_five_cases_of_agreement_and_truth(ballots):
    names = [CASES[case] if case >= 0 else None for case in cases(ballots, "a", "b")]
    assert names == ["agree_right", "agree_wrong", "only_a_right", "only_b_right", "both_wrong_differently", None]
    assert [CASES[case] for case in cases(ballots, "b", "a")[2:4]] == ["only_b_right", "only_a_right"]


def test_the_cases_are_those_that_the_metrics_count(ballots):
    a, b = ([ballots.text(code) for code in row] for row in ballots.votes)
    truths = [ballots.text(code) for code in ballots.truth]
    pair, case = count_pair(a, b, truths), cases(ballots, "a", "b")
    assert (pair.both, pair.only_a, pair.only_b, pair.neither) == (1, 1, 1, 2)
    assert [int((case == place).sum()) for place in (0, 2, 3)] == [pair.both, pair.only_a, pair.only_b]
    assert int((case == 1).sum()) == pair.same_wrong and agreement(a, b) == pytest.approx(3 / 5)  # p, q and t of five


def test_shares_by_block_sum_to_one_and_count_known_truths_only(ballots):
    each = decomposed(ballots, "a", "b")
    assert each["num_draws"].tolist() == [2, 2, 1] and each[list(CASES)].sum(axis=1).tolist() == [1, 1, 1]
    assert each.iloc[0][["agree_right", "agree_wrong"]].tolist() == [0.5, 0.5]
    wide = decomposed(ballots, "a", "b", block_steps=2)
    assert wide[["first", "last", "num_draws"]].to_numpy().tolist() == [[0, 1, 4], [2, 2, 1]]
    assert wide.iloc[0][list(CASES)].tolist() == [0.25, 0.25, 0.25, 0.25, 0]


def test_without_truth_there_is_nothing_to_hold_agreement_against(tmp_path):
    run = made_run(tmp_path, [DRAWS[-1]])
    assert decomposed(run_ballots(run.path, ("a", "b"), 4), "a", "b").empty


def test_blocks_count_the_steps_that_occur():
    assert blocks(np.array([0, 0, 5, 7, 9]), 2).tolist() == [0, 0, 0, 1, 1]


def test_a_few_steps_left_at_the_end_are_no_point_of_their_own():
    # 120 steps by 13: nine blocks and 3 steps, fewer than half of 13, which join the ninth
    assert np.bincount(blocks(np.arange(120), 13)).tolist() == [13] * 8 + [16]
    assert np.bincount(blocks(np.arange(7), 4)).tolist() == [4, 3]  # half a block or more stands by itself
    assert blocks(np.arange(2), 13).tolist() == [0, 0]


def test_the_usual_block_has_a_hundred_questions_but_leaves_eight_points(tmp_path):
    few = made_run(tmp_path, [{"step": step, "id": "q", "a": ("1", "1")} for step in range(40)])
    assert usual_block(run_ballots(few.path, ("a", "b"), 4)) == 5  # 1 question a step: 100 steps would be one point; 40 / 8


def test_one_question_through_training(ballots):
    rows = through(ballots, "p")
    assert rows[["step", "agent", "vote", "share"]].to_numpy().tolist() == [
        [0, "a", "1", 0.75], [0, "b", "1", 1.0], [2, "a", "4", 1.0], [2, "b", "5", 0.75]
    ]  # fmt: skip
    assert rows["right"].tolist() == [True, True, False, False] and through(ballots, "nobody").empty
