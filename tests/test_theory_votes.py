"""Votes, rewards and advantages in closed form, against hand-worked numbers and direct sums."""

from itertools import pairwise
from math import comb

import numpy as np
import pytest

from corl_core.theory import advantages, binomial, expected, plurality

GRID = np.linspace(0.01, 0.99, 99)


def direct_vote(p: float, size: int) -> float:
    """The definition, term by term."""
    terms = [comb(size, c) * p**c * (1 - p) ** (size - c) for c in range(size + 1)]
    return sum(terms[c] for c in range(size + 1) if 2 * c > size) + (0.5 * terms[size // 2] if size % 2 == 0 else 0)


def close(value, wanted, digits: int = 6) -> None:
    assert np.asarray(value) == pytest.approx(wanted, abs=0.6 * 10**-digits)


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8, 11, 12, 31, 64])
def test_the_closed_form_is_the_sum_over_majorities_with_a_fair_tie(size):
    assert binomial.vote_accuracy(GRID, size) == pytest.approx([direct_vote(p, size) for p in GRID], abs=1e-12)


@pytest.mark.parametrize(
    ("size", "p", "wanted"),
    [(5, 0.6, 0.68256), (7, 0.6, 0.710208), (8, 0.6, 0.710208), (11, 0.6, 0.753498), (12, 0.6, 0.753498),
     (16, 0.6, 0.786897), (31, 0.6, 0.871618), (32, 0.6, 0.871618), (63, 0.6, 0.946309), (64, 0.6, 0.946309),
     (11, 0.55, 0.633123), (11, 0.7, 0.921775)],
)  # fmt: skip
def test_vote_accuracy_to_six_digits(size, p, wanted):
    close(binomial.vote_accuracy(p, size), wanted)


def test_vote_accuracy_is_odd_about_a_half_grows_with_p_and_an_even_group_wastes_an_answer():
    for size in (1, 3, 8, 11, 32):
        v = binomial.vote_accuracy(GRID, size)
        assert binomial.vote_accuracy(0.5, size) == pytest.approx(0.5) and (np.diff(v)[10:-10] > 0).all()
        assert v + binomial.vote_accuracy(1 - GRID, size) == pytest.approx(np.ones(99))
        odd = [direct_vote(p, 2 * size - 1) for p in GRID]
        assert binomial.vote_accuracy(GRID, 2 * size) == pytest.approx(odd) == binomial.vote_accuracy(GRID, 2 * size - 1)


def test_a_larger_odd_group_helps_the_better_answer_and_only_that():
    sizes = [binomial.vote_accuracy(GRID, size) for size in (1, 3, 5, 11, 31)]
    for smaller, larger in pairwise(sizes):
        assert (larger[GRID > 0.51] >= smaller[GRID > 0.51]).all() and (larger[GRID < 0.49] <= smaller[GRID < 0.49]).all()


def test_the_margins_slope_at_a_half():
    step = 1e-5
    for size in (1, 5, 11):
        found = (binomial.vote_margin(0.5 + step, size) - binomial.vote_margin(0.5 - step, size)) / (2 * step)
        assert found == pytest.approx(binomial.margin_slope(size), rel=1e-6)
    assert binomial.margin_slope(11) == 5.4140625 == binomial.margin_slope(12)


def test_several_answers_exactly_and_by_sampling(monkeypatch):
    p = np.array([0.5, 0.2, 0.3])
    close(plurality.vote_distribution(p, 7), [0.66275, 0.099704, 0.237546])
    monkeypatch.setattr(plurality, "MAX_OUTCOMES", 10)  # C(9,2) = 36 compositions are now too many
    assert plurality.vote_distribution(p, 7) == pytest.approx([0.66275, 0.099704, 0.237546], abs=0.015)
    assert (plurality.vote_distribution(p, 7) == plurality.vote_distribution(p, 7)).all()  # the same seed


def test_two_answers_are_the_binary_case():
    both = np.stack([GRID, 1 - GRID], axis=-1)
    for size in (4, 7):
        assert plurality.vote_distribution(both, size)[:, 0] == pytest.approx(binomial.vote_accuracy(GRID, size))


def test_answers_that_do_not_parse_never_vote():
    # K = 2, p = (.5, .2) and .3 unparsed. Class 0 wins outright: .25 + 2·.5·.3 = .55; tied with class 1: 2·.5·.2/2 = .1.
    # Class 1: .04 + 2·.2·.3 + .1 = .26. Nothing parses: .09 = 1 − .65 − .26.
    close(plurality.vote_distribution(np.array([0.5, 0.2]), 2), [0.65, 0.26])
    close(plurality.vote_distribution(np.array([0.0, 0.0]), 5), [0, 0])


def test_probabilities_that_are_none_are_refused_by_name():
    with pytest.raises(ValueError, match=r"probability 1\.2 is outside 0 to 1"):
        plurality.vote_distribution(np.array([1.2, 0.0]), 5)
    with pytest.raises(ValueError, match=r"sum to 1\.3; they may sum to 1"):
        plurality.vote_distribution(np.array([0.7, 0.6]), 5)
    with pytest.raises(ValueError, match="num_generations=0"):
        binomial.vote_accuracy(0.5, 0)


@pytest.mark.parametrize(
    ("size", "wanted"),
    [(8, 0.658163), (11, 0.647016), (12, 0.638989), (16, 0.628213), (32, 0.610739), (64, 0.602714)],
)
def test_own_votes_flatter(size, wanted):
    close(expected.own_vote(0.6, size), wanted)
    assert (expected.own_vote(GRID, size) >= np.maximum(GRID, 1 - GRID) - 1e-12).all()


@pytest.mark.parametrize(("size", "wanted"), [(8, 0.574793), (11, 0.584355), (12, 0.584355), (32, 0.598092)])
def test_a_peers_vote_does_not(size, wanted):
    close(expected.peer_vote(0.6, 0.7, size), wanted)
    v = binomial.vote_accuracy(0.7, size)
    assert expected.label_match(np.array([0.6, 0.4]), np.array([v, 1 - v])) == pytest.approx(float(wanted), abs=1e-6)
    assert expected.label_match(np.array([0.6, 0.4]), np.array([1, 0])) == 0.6  # ground truth


def test_groups_without_a_signal():
    close(expected.zero_signal(np.array([0.6, 0.9]), 8), [0.017452, 0.430467])
    close(expected.zero_signal(0.18, 2), 0.7048)
    assert expected.zero_signal(np.array([0, 1.0]), 8).tolist() == [1, 1]
    mixed = np.array([0.1, 0.9])  # at the mean, .5: 2/256
    assert expected.zero_signal(mixed, 8).mean() > 0.4 > expected.zero_signal(mixed.mean(), 8)


def test_reward_accuracy_under_a_wrong_label():
    # label .5, truth .3: a fifth is neither and rightly gets 0
    close(expected.reward_accuracy(0.5, 0.3), 0.2)


@pytest.mark.parametrize(
    ("hits", "population", "sample"),
    [(1, (2.645751, -0.377964), (2.474874, -0.353553)), (2, (1.732051, -0.577350), (1.620185, -0.540062)),
     (4, (1, -1), (0.935414, -0.935414)), (7, (0.377964, -2.645751), (0.353553, -2.474874))],
)  # fmt: skip
def test_advantages_of_eight(hits, population, sample):
    close(advantages.of_hits(hits, 8), population)
    close(advantages.of_hits(hits, 8, ddof=1), sample)
    rewards = np.array([1.0] * hits + [0.0] * (8 - hits))
    close(advantages.advantages(rewards, ddof=0, epsilon=0)[[0, -1]], population)


def test_trls_epsilon_moves_the_fourth_digit():
    # std(C = 1, K = 8, ddof 1) = .3535534; .875/.3536534 = 2.474174, against 2.474874 without it
    close(advantages.of_hits(1, 8, ddof=1, epsilon=1e-4)[0], 2.474174)
    close(advantages.advantages(np.eye(8)[0])[0], 2.474174)


def test_advantages_sum_to_zero_vanish_without_contrast_and_ignore_scale():
    generator = np.random.default_rng(0)
    rewards = generator.integers(0, 2, (200, 8)).astype(float)
    found = advantages.advantages(rewards)
    assert np.abs(found.sum(axis=1)).max() < 1e-12
    assert (advantages.advantages(np.array([[1.0] * 8, [0.0] * 8])) == 0).all()
    assert np.array(advantages.of_hits(np.array([0, 8]), 8)).tolist() == [[0, 0], [0, 0]]
    exact = advantages.advantages(rewards, epsilon=0)
    assert advantages.advantages(3 * rewards - 7, epsilon=0) == pytest.approx(exact)
    assert advantages.advantages(3 * rewards - 7) == pytest.approx(found, abs=1e-3)
    with pytest.raises(ValueError, match="num_hits=9"):
        advantages.of_hits(9, 8)


def test_labels_of_another_question_match_by_chance_only():
    # 5 questions with different right answers, both agents right at .8 and else spread over the other 4 answers (.05 each)
    p = np.full((5, 5), 0.05) + 0.75 * np.eye(5)
    labels = plurality.vote_distribution(p, 8)
    assert expected.label_match(p, labels).min() > 0.79
    # shifted by one question the label is right with V ≈ 1 for a question whose answer here has .05
    stale = expected.label_match(p, np.roll(labels, 1, axis=0))
    assert stale == pytest.approx(np.full(5, 0.05), abs=0.001)
    # over all misalignments at once: the mean over questions of the mean label times the mean answer, 1/5
    assert expected.label_match(p.mean(axis=0), labels.mean(axis=0)) == pytest.approx(0.2)
