"""Supervision signals: who names the target, and what a rollout gets for meeting it."""

from corl_core.answers import answer
from corl_core.rewards import corl, ground_truth, ttrl
from corl_core.rewards.matching import rewards
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
