"""Supervision signals: what each rewards, with numbers worked out by hand."""

import pytest

from corl_core.answers import answer
from corl_core.rewards import (
    co_rewarding_1,
    co_rewarding_2,
    corl,
    ground_truth,
    intuitor,
    rent,
    ttrl,
)
from corl_core.rewards import format as format_reward
from corl_core.rewards import random as random_reward
from corl_core.rewards.batch import Scored
from corl_core.rewards.matching import rewards
from corl_core.rewards.weighted import combine
from corl_core.votes import vote


def group(*texts: str | None):
    return [answer(text) if text is not None else None for text in texts]


def test_a_rollout_is_rewarded_for_the_target_in_any_spelling():
    assert rewards(group("1,000", "999", None, "1000.0"), "1000") == (1.0, 0.0, 0.0, 1.0)


def test_without_a_target_there_are_no_rewards_even_for_unparsed_rollouts():
    assert rewards(group("1", None), None) is None


def test_nothing_that_a_rollout_prints_matches_a_missing_label():
    assert corl.pseudo_labels([None, "", "None"]) == [None, None, "none"]
    assert rewards(group(None, None), "None") == (0.0, 0.0)


def test_corl_takes_what_the_peer_sent():
    assert corl.pseudo_labels(["85", None, "0.50"]) == ["85", None, "1/2"]


def test_ttrl_takes_its_own_vote_unless_the_share_is_too_small():
    own = [vote(group("1", "1", "2")), vote(group("1", "2", "3")), vote(group(None, None, None))]
    assert ttrl.pseudo_labels(own) == ["1", "1", None]
    assert ttrl.pseudo_labels(own, min_share=0.5) == ["1", None, None]


def test_ground_truth_takes_the_answers_and_leaves_unknown_ones_unlabelled():
    assert ground_truth.labels(["85", None, " "]) == ["85", None, None]


def test_equal_agents_with_equal_rollouts_make_corl_ttrl():
    own = [vote(group("3", "3", "4")), vote(group("9", "8", "8"))]
    sent = [cast.answer.text for cast in own]
    assert corl.pseudo_labels(sent) == ttrl.pseudo_labels(own)


def test_rent_is_minus_the_entropy_with_a_floor_for_no_answer_only_when_asked():
    entropies, answers = ((0.5, 1.25), (2.0, 0.0)), ((*group("1", None),), (*group(None, "2"),))
    assert rent.rewards(entropies, answers) == ((-0.5, -1.25), (-2.0, -0.0))
    assert rent.rewards(entropies, answers, no_answer=-7.0) == ((-0.5, -7.0), (-7.0, -0.0))


def test_intuitor_is_the_self_certainty():
    assert intuitor.rewards(((0.454459, 6.113842),)) == ((0.454459, 6.113842),)


def test_co_rewarding_1_swaps_the_votes_of_a_questions_two_wordings():
    # question 0: wording 0 votes 1, wording 1 votes 2; question 1: wording 0 votes 3, wording 1 does not parse
    own = [vote(group("1", "1", "2")), vote(group("2", "2", "1")), vote(group("3", "3")), vote(group(None, None))]
    assert co_rewarding_1.pseudo_labels(own) == ["2", "1", None, "3"]
    assert co_rewarding_1.pseudo_labels(own, min_share=0.7) == [None, None, None, "3"]


def test_co_rewarding_1_with_equal_groups_is_ttrl():
    own = [vote(group("1", "1", "2"))] * 2
    assert co_rewarding_1.pseudo_labels(own) == ttrl.pseudo_labels(own)


@pytest.mark.parametrize(("step", "expected"), [(0, 0.01), (25, 0.008536998), (50, 0.005005), (75, 0.001473002), (100, 1e-5)])
def test_the_teachers_share_falls_along_a_cosine(step, expected):
    # (.01 - 1e-5) / 2 = .004995; at T/4: 1e-5 + .004995 * (1 + .70710678) = .008536998
    assert co_rewarding_2.alpha(step, 100, 0.01, 1e-5) == pytest.approx(expected, abs=5e-10)


def test_co_rewarding_2_takes_the_teachers_vote():
    teacher = [vote(group("7", "7", "8")), vote(group(None,)), vote(group("1", "2"))]
    assert co_rewarding_2.pseudo_labels(teacher) == ["7", None, "1"]
    assert co_rewarding_2.pseudo_labels(teacher, min_share=0.6) == ["7", None, None]


def test_a_well_formed_box_is_one_that_closes_and_holds_something():
    texts = (r"so \boxed{4}", r"\boxed{}", r"\boxed{4", "4", r"\boxed{3} no, \boxed{4}", r"\boxed{\frac{1}{2}}")
    assert format_reward.rewards((texts,)) == ((1.0, 0.0, 0.0, 0.0, 0.0, 1.0),)


def test_coins_follow_their_seed_and_their_rate():
    first, again, other = (random_reward.rewards(500, 8, 0.3, seed) for seed in (1, 1, 2))
    assert first == again != other
    values = [value for group in first for value in group]
    assert set(values) == {0.0, 1.0} and len(values) == 4000
    assert sum(values) / 4000 == pytest.approx(0.3, abs=4 * (0.3 * 0.7 / 4000) ** 0.5)  # four standard errors


def test_a_weighted_sum_adds_what_each_signal_gives_a_group():
    match, shape = Scored(((1.0, 0.0), None), ("5", None)), Scored(((1.0, 1.0), (0.0, 1.0)))
    summed = combine({"corl": match, "format": shape}, {"corl": 1.0, "format": 0.25})
    assert summed.rewards == ((1.25, 0.25), (0.0, 0.25))  # the second group has no label: the match adds nothing
    assert summed.labels == ("5", None)
    assert combine({"corl": match}, {"corl": 2.0}).rewards == ((2.0, 0.0), None)
