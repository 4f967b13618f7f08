"""What-if replay: every rule with numbers worked out by hand, coverage, fewer rollouts, thresholds, and bad settings."""

import math

import pytest

from corl_core.rollouts.ballots import run_ballots
from corl_core.rollouts.whatif import rates, replay
from tests.made_rollouts import made_run, small_config

AGENTS = ("a", "b", "c")
DRAWS = [
    # votes 1 (3/4), 2 (2/3), 2 (1/1). Pooled: 1 has 3, 2 has 1 + 2 + 1 = 4 of 4 + 3 + 1 = 8. Weighted: 1 has 0.75, 2 has 1.667
    {"step": 0, "id": "p", "truth": "1", "a": ("1 1 1 2", "2"), "b": ("2 2 5 -", "1"), "c": ("2 - - -", "2")},
    # votes 3 (1/4, first of four), 4 (4/4), none. Pooled: 4 has 1 + 4 = 5 of 8. Weighted: 4 has 1 of 1.25
    {"step": 0, "id": "q", "truth": "4", "a": ("3 4 5 6", ""), "b": ("4 4 4 4", "3"), "c": ("- - - -", "4")},
    # truth unknown: counts for coverage only
    {"step": 1, "id": "r", "a": ("7 7 7 7", "7"), "b": ("7 7 - -", "7"), "c": ("8 8 8 9", "7")},
]


@pytest.fixture
def ballots(tmp_path):
    run = made_run(tmp_path, DRAWS, small_config(agents=AGENTS))
    return run_ballots(run.path, AGENTS, 4)


def table(ballots, *setting):
    """(rule, agent) → accuracy, coverage over all steps."""
    rows = rates(replay(ballots, *setting)).set_index(["rule", "agent"])
    return {key: (row["accuracy"], row["coverage"]) for key, row in rows.iterrows()}


def test_each_rule_labels_as_worked_out(ballots):
    found = table(ballots)
    assert found["vote", "a"] == (1 / 2, 1)  # p right, q wrong
    assert found["vote", "b"] == (1 / 2, 1)  # p wrong, q right
    assert found["vote", "c"] == (0, 2 / 3)  # p wrong, q none
    assert found["pooled", ""] == (1 / 2, 1)  # p: 2, wrong; q: 4, right
    assert found["weighted", ""] == (1 / 2, 1)
    assert found["received", "a"] == (0, 2 / 3)  # p: 2, wrong; q: none
    assert found["received", "b"] == (1 / 2, 1)  # p: 1, right; q: 3, wrong
    assert found["received", "c"] == (1 / 2, 1)


def test_a_threshold_takes_labels_away_and_leaves_the_received_as_they_were(ballots):
    found = table(ballots, None, 0.7)
    assert found["vote", "a"] == (1, 2 / 3)  # 3/4 counts and is right, 1/4 does not, 4/4 has no truth
    assert found["vote", "b"] == (1, 2 / 3)  # 2/3 does not count
    assert found["pooled", ""] == (pytest.approx(math.nan, nan_ok=True), 0)  # 4/8, 5/8 and 6/10
    # weighted: p 1.667/2.417 = 0.69 no; q 1/1.25 = 0.8 yes; r 2/2.75 = 0.73 yes
    assert found["weighted", ""] == (1, 2 / 3)
    assert found["received", "a"] == (0, 2 / 3)


def test_a_share_at_the_threshold_counts(ballots):
    assert table(ballots, None, 0.75)["vote", "a"] == (1, 2 / 3)


def test_fewer_rollouts_are_the_first_of_each_group(ballots):
    # b's first: 2, 4, 7; c's first: 2, none, 8; a's first: 1, 3, 7
    found = table(ballots, 1)
    assert found["vote", "a"] == (1 / 2, 1) and found["vote", "b"] == (1 / 2, 1) and found["vote", "c"] == (0, 2 / 3)
    # pooled of one each: p 1 2 2 → 2; q 3 4 → tie, a's 3 first, wrong
    assert found["pooled", ""] == (0, 1)
    assert found["weighted", ""] == (0, 1)  # every share is 1: the same plurality and the same tie


def test_all_rollouts_or_more_are_the_run_itself(ballots):
    assert table(ballots, 4) == table(ballots, 99) == table(ballots)


def test_a_sure_agent_outweighs_a_divided_one_that_pooling_would_follow(tmp_path):
    # a: 1 1 of two parsed (share 1); b: 2 2 2 3 (0.75); c: 2 4 5 6 (0.25): pooled 2 has 4 of 10; weighted 1 and 2 have 1 each
    # and the first in cohort order wins
    draw = {"step": 0, "id": "p", "truth": "1", "a": ("1 1 - -", "1"), "b": ("2 2 2 3", "1"), "c": ("2 4 5 6", "1")}
    run = made_run(tmp_path, [draw], small_config(agents=AGENTS))
    found = table(run_ballots(run.path, AGENTS, 4))
    assert found["pooled", ""][0] == 0 and found["weighted", ""][0] == 1


def test_where_ties_abstain_they_label_nothing(tmp_path):
    run = made_run(tmp_path, [{"step": 0, "id": "p", "truth": "1", "a": ("1 2", ""), "b": ("1 2", "")}])
    found = table(run_ballots(run.path, ("a", "b"), 4, "abstain"))
    assert {key: coverage for key, (_, coverage) in found.items() if coverage} == {}


def test_counts_are_kept_by_step_and_add_up_in_blocks(ballots):
    counts = replay(ballots)
    own = counts[(counts["rule"] == "vote") & (counts["agent"] == "c")]
    assert own[["step", "questions", "labelled", "judged", "right"]].to_numpy().tolist() == [[0, 2, 1, 1, 0], [1, 1, 1, 0, 0]]
    points = rates(counts, 1)
    curve = points[(points["rule"] == "vote") & (points["agent"] == "a")]
    assert curve["step"].tolist() == [0, 1] and curve["coverage"].tolist() == [1, 1]
    assert curve["accuracy"].iloc[0] == 0.5 and math.isnan(curve["accuracy"].iloc[1])
    assert len(rates(counts, 2)) == len(rates(counts))


def test_a_replay_of_the_peers_vote_is_what_the_ring_received(tmp_path):
    draws = [{"step": 0, "id": "p", "truth": "1", "a": ("1 1 2 2", "3"), "b": ("3 3 1 1", "1")}]
    run = made_run(tmp_path, draws)
    found = table(run_ballots(run.path, ("a", "b"), 4))
    assert found["received", "a"] == found["vote", "b"] and found["received", "b"] == found["vote", "a"]


def test_settings_that_are_none_are_refused_with_their_value(ballots):
    with pytest.raises(ValueError, match="num_votes=0 must be at least 1"):
        replay(ballots, 0)
    with pytest.raises(ValueError, match=r"min_share=1\.5 must lie between 0 and 1"):
        replay(ballots, None, 1.5)


def test_a_run_without_rollouts_replays_to_nothing(tmp_path):
    run = made_run(tmp_path, [])
    assert rates(replay(run_ballots(run.path, ("a", "b"), 4))).empty
