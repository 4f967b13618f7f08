"""Votes: the plurality of the parsed answers, worked out by hand."""

import random

from corl_core.answers import answer
from corl_core.votes import passes, vote


def group(*texts: str | None):
    return [answer(text) if text is not None else None for text in texts]


def test_the_most_common_answer_wins_with_its_share_of_the_parsed():
    cast = vote(group("85", "75", "85", None, "85", "9"))
    assert (cast.key, cast.count, cast.num_parsed, cast.num_rollouts) == ("85", 3, 5, 6)
    assert cast.share == 3 / 5
    assert not cast.tied


def test_spellings_of_one_number_are_one_answer():
    assert vote(group("3", "1,000", "1000.0", "3", "1{,}000")).key == "1000"


def test_a_tie_goes_to_the_answer_sampled_first_and_is_counted():
    cast = vote(group("2", "7", "7", "2"))
    assert (cast.key, cast.tied, cast.share) == ("2", True, 0.5)
    assert vote(group("7", "2", "2", "7")).key == "7"


def test_a_tie_can_abstain_and_still_tells_its_share():
    cast = vote(group("2", "7", "7", "2"), tie="abstain")
    assert (cast.key, cast.tied, cast.share) == (None, True, 0.5)


def test_nothing_parsed_casts_no_vote():
    cast = vote(group(None, None))
    assert (cast.key, cast.share, cast.tied) == (None, 0.0, False)
    assert not passes(cast, 0.0)


def test_a_share_equal_to_the_threshold_passes():
    cast = vote(group("1", "1", "1", "2"))
    assert passes(cast, 0.75) and not passes(cast, 0.76)


def test_order_changes_nothing_but_ties():
    rng, answers = random.Random(0), group("4", "5", "4", None, "6", "4", "5")
    for _ in range(50):
        rng.shuffle(answers)
        assert vote(answers).key == "4"
