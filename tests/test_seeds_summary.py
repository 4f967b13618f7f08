"""One value and its band out of several seeds, worked out by hand."""

import math

import numpy as np
import pytest

from corl_core.figures.seeds import _drawn_weights, summarise, weights

FOUR = np.array([[1.0, 2.0, 3.0, 10.0]])


def test_mean_median_and_interquartile_mean_of_four():
    # (1+2+3+10)/4 = 4; (2+3)/2 = 2.5; a quarter of four is one value at either end: (2+3)/2
    assert summarise(FOUR, "mean").center.tolist() == [4.0]
    assert summarise(FOUR, "median").center.tolist() == [2.5]
    assert summarise(FOUR, "iqm").center.tolist() == [2.5]
    assert weights("iqm", 8).tolist() == [0, 0, 0.25, 0.25, 0.25, 0.25, 0, 0]
    assert weights("iqm", 3).tolist() == pytest.approx([1 / 3] * 3)  # nothing to leave out
    assert weights("median", 3).tolist() == [0, 1, 0]


def test_std_and_stderr_of_two():
    # mean 0.3, sample std sqrt(0.02) = 0.1414, stderr 0.1
    std, err = (summarise(np.array([[0.2, 0.4]]), "mean", spread) for spread in ("std", "stderr"))
    assert std.high[0] - 0.3 == pytest.approx(math.sqrt(0.02)) and err.high[0] - 0.3 == pytest.approx(0.1)


def test_a_seed_that_is_missing_or_infinite_is_left_out_and_counted_out():
    found = summarise(np.array([[0.2, 0.4, np.nan], [0.5, np.nan, np.inf], [np.nan] * 3]))
    assert found.n.tolist() == [2, 1, 0]
    assert found.center[:2].tolist() == pytest.approx([0.3, 0.5]) and math.isnan(found.center[2])
    assert math.isnan(found.low[1])  # one seed has no band


def test_the_bootstrap_of_two_seeds_is_from_the_one_to_the_other():
    # samples of {0, 1}: mean 0 with probability 1/4, 1/2 with 1/2, 1 with 1/4: the 2.5th percentile is 0, the 97.5th is 1
    found = summarise(np.array([[0.0, 1.0]]), "mean", "bootstrap")
    assert (found.low[0], found.center[0], found.high[0]) == (0.0, 0.5, 1.0)


@pytest.mark.parametrize("center", ["mean", "median", "iqm"])
def test_drawn_weights_give_the_centre_of_each_sample(center):
    values = np.sort(np.random.default_rng(3).normal(size=5))
    often = np.random.default_rng(0).multinomial(5, np.full(5, 0.2), size=1000)  # the same draws
    for count, drawn in zip(often[:50], _drawn_weights(center, 5)[:50], strict=True):
        sample = np.repeat(values, count)
        assert drawn @ values == pytest.approx(sample @ weights(center, 5))


def test_the_bootstrap_band_holds_the_mean_about_as_often_as_it_says():
    values = np.random.default_rng(1).normal(size=(400, 20))
    found = summarise(values, "mean", "bootstrap")
    assert 0.88 < np.mean((found.low < 0) & (found.high > 0)) < 0.97  # Efron's interval is a little narrow for 20 values
