"""Votes of many groups at once: the same as one by one, with ties, weights and groups without an answer."""

import numpy as np
import pytest

from corl_core.answers import Answer
from corl_core.rollouts.tally import NONE, tally
from corl_core.votes import vote


def test_a_group_votes_for_its_most_common_answer_and_unparsed_ones_do_not_count():
    cast = tally(np.array([[5, 7, 7, NONE]]))
    assert (cast.vote[0], cast.count[0], cast.parsed[0], bool(cast.tied[0])) == (7, 2, 3, False)
    assert cast.share[0] == pytest.approx(2 / 3)


def test_a_tie_goes_to_the_first_sampled_or_to_nobody():
    codes = np.array([[3, 9, 9, 3], [1, 2, 3, 4]])
    assert tally(codes).vote.tolist() == [3, 1] and tally(codes).tied.all()
    abstained = tally(codes, tie="abstain")
    assert abstained.vote.tolist() == [NONE, NONE] and abstained.count.tolist() == [2, 1]


def test_a_group_in_which_nothing_parses_casts_no_vote():
    cast = tally(np.array([[NONE, NONE]]))
    assert (cast.vote[0], cast.count[0], cast.share[0], bool(cast.tied[0])) == (NONE, 0, 0, False)


def test_no_group_and_no_ballot_are_no_error():
    assert len(tally(np.zeros((0, 4), dtype=int)).vote) == 0
    assert tally(np.zeros((2, 0), dtype=int)).vote.tolist() == [NONE, NONE]


def test_weights_are_summed_for_each_answer():
    # 1 has 0.9, 2 has 0.5 + 0.5 = 1.0 of 1.9
    cast = tally(np.array([[1, 2, 2]]), np.array([[0.9, 0.5, 0.5]]))
    assert cast.vote[0] == 2 and cast.share[0] == pytest.approx(1.0 / 1.9)


def test_sums_that_differ_by_rounding_alone_are_a_tie_and_the_first_wins():
    # 0.1 + 0.2 = 0.30000000000000004 in binary
    cast = tally(np.array([[1, 2, 2]]), np.array([[0.3, 0.1, 0.2]]))
    assert cast.vote[0] == 1 and cast.tied[0]


@pytest.mark.parametrize("tie", ["first", "abstain"])
def test_many_groups_vote_as_each_does_alone(tie, monkeypatch):
    monkeypatch.setattr("corl_core.rollouts.tally._CELLS", 500)  # so that several portions are joined
    codes = np.random.default_rng(0).integers(NONE, 4, (300, 8))
    cast = tally(codes, tie=tie)
    for row, group in enumerate(codes.tolist()):
        alone = vote([None if code == NONE else Answer(str(code), str(code)) for code in group], tie)
        assert (str(cast.vote[row]) if cast.vote[row] != NONE else None) == alone.key
        assert (cast.count[row], cast.parsed[row], bool(cast.tied[row])) == (alone.count, alone.num_parsed, alone.tied)
        assert cast.share[row] == pytest.approx(alone.share)
