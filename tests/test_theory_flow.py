"""The mean-field flow of right and wrong answers: fixed points, basins, what is conserved, and where Co-RL hurts."""

import numpy as np
import pytest

from corl_core.theory import binomial, meanfield, phase

K = 11
GRID = np.linspace(0.02, 0.98, 49)
PLANE = np.stack(np.meshgrid(GRID, GRID, indexing="ij"), axis=-1)  # (49, 49, 2)
LATE = np.array([0.0, 300.0])


def end(start, supervision="ring", size=K, **settings) -> np.ndarray:
    return meanfield.trajectory(np.array(start), supervision, size, LATE, **settings)[-1]


def test_speeds_to_six_digits():
    found = [binomial.reward_std(0.6, 11), binomial.own_pull(0.6, 11), binomial.reward_std(0.6, 12), binomial.own_pull(0.6, 12)]
    assert found == pytest.approx([0.464094, 0.224933, 0.466573, 0.226342], abs=6e-7)


def test_own_votes_move_away_from_a_half():
    for size in (5, 8, 11):
        v = meanfield.velocity(GRID[:, None], "self", size)[:, 0]
        away = np.abs(GRID - 0.5) > 1e-9
        assert (np.sign(v[away]) == np.sign(GRID[away] - 0.5)).all()
        assert meanfield.velocity(np.array([[0.0], [0.5], [1.0]]), "self", size) == pytest.approx(np.zeros((3, 1)), abs=1e-15)
        assert binomial.own_pull(GRID, size) == pytest.approx(-binomial.own_pull(1 - GRID, size))
        cap = binomial.reward_std(GRID, size) * np.abs(binomial.vote_margin(GRID, size))
        assert (np.abs(binomial.own_pull(GRID, size)) <= cap + 1e-12).all()


def test_a_pair_follows_the_peers_side_and_is_symmetric():
    v = meanfield.velocity(PLANE, "ring", K)
    off = np.abs(GRID - 0.5) > 1e-9
    assert (np.sign(v[:, off, 0]) == np.sign(GRID[off] - 0.5)).all()
    assert meanfield.velocity(1 - PLANE, "ring", K) == pytest.approx(-v, abs=1e-12)
    assert meanfield.velocity(np.array([0.5, 0.5]), "ring", K) == pytest.approx([0, 0], abs=1e-15)
    line = np.stack([GRID, 1 - GRID], axis=-1)  # p_A + p_B = 1 is never left
    assert meanfield.velocity(line, "ring", K).sum(axis=-1) == pytest.approx(np.zeros(len(GRID)), abs=1e-15)


@pytest.mark.parametrize(
    ("start", "wanted"), [((0.9, 0.2), 1), ((0.6, 0.45), 1), ((0.2, 0.81), 1), ((0.2, 0.79), 0), ((0.9, 0.05), 0)]
)
def test_trajectories_of_a_pair(start, wanted):
    assert end(start) == pytest.approx([wanted, wanted], abs=0.01)


@pytest.mark.parametrize("size", [3, 8, 11, 32])
def test_the_separatrix_is_the_antidiagonal_whatever_the_group(size):
    sums = PLANE[::4, ::4].sum(axis=-1)
    clear = np.abs(sums - 1) > 0.02
    ends = phase.consensus(PLANE[::4, ::4][clear], size)
    assert (ends == (sums[clear] > 1)).all()


def step(p, dt, order):
    """One step of Runge-Kutta (4) or Euler (1) in log-odds, to see what the flow itself keeps."""
    def f(ell):
        return meanfield.logit_rates(1 / (1 + np.exp(-ell)), "ring", K)

    ell = np.log(p / (1 - p))
    k1 = f(ell)
    if order == 1:
        return 1 / (1 + np.exp(-(ell + dt * k1)))
    k2 = f(ell + dt / 2 * k1)
    k3 = f(ell + dt / 2 * k2)
    k4 = f(ell + dt * k3)
    return 1 / (1 + np.exp(-(ell + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4))))


def drift(dt, order, time=8.0) -> float:
    path = [np.array([0.9, 0.2])]
    for _ in range(round(time / dt)):
        path.append(step(path[-1], dt, order))
    kept = phase.potential(np.array(path[:: len(path) // 40]), K) @ [1, -1]
    return np.abs(kept - kept[0]).max()


def test_a_pair_keeps_its_difference_of_potentials():
    assert drift(0.05, order=4) < 1e-9
    assert 1e-3 < drift(0.01, order=1) < 1e-1
    path = meanfield.trajectory(np.array([0.9, 0.2]), "ring", K, np.linspace(0, 8, 30), tolerance=1e-12)
    assert np.ptp(phase.potential(path, K) @ [1, -1]) < 1e-9


def test_the_potential_is_even_and_grows_from_a_half():
    f = phase.potential(GRID, K)
    assert f == pytest.approx(phase.potential(1 - GRID, K)) and (np.diff(f[GRID >= 0.5]) > 0).all()
    slope = (phase.potential(0.7 + 1e-6, K) - phase.potential(0.7 - 1e-6, K)) / 2e-6
    assert slope == pytest.approx(binomial.vote_margin(0.7, K) / (0.7 * 0.3 * binomial.reward_std(0.7, K)), rel=1e-6)


def test_the_saddles_rates():
    rate = 0.25 * binomial.reward_std(0.5, K) * 5.4140625
    assert np.sort(phase.saddle_rates(2, K).real) == pytest.approx([-rate, rate])
    assert np.sort(phase.saddle_rates(3, K).real) == pytest.approx([-rate / 2, -rate / 2, rate])
    assert np.sort(phase.saddle_rates(4, K).real) == pytest.approx([-rate, 0, 0, rate], abs=1e-12)
    assert (phase.saddle_rates(5, K).real > 1e-3).sum() == 3
    nudge = 1e-6  # p̈ along (1, 1) from the saddle
    assert meanfield.velocity(np.array([0.5 + nudge] * 2), "ring", K)[0] / nudge == pytest.approx(rate, rel=1e-4)


def test_equal_agents_stay_equal_and_go_where_own_votes_go_not_slower():
    times = np.linspace(0, 10, 20)
    path = meanfield.trajectory(np.array([0.6, 0.6]), "ring", K, times)
    assert path[:, 0] == pytest.approx(path[:, 1])
    alone = meanfield.trajectory(np.array([0.6]), "self", K, times)[:, 0]
    assert (path[1:, 0] > alone[1:]).all() and (np.diff(alone) > 0).all()


def test_a_ring_of_two_is_the_mutual_pair_and_a_ring_of_one_an_independent_own_vote():
    a, b = 0.3, 0.8
    wanted = [binomial.reward_std(x, K) * binomial.vote_margin(y, K) for x, y in ((a, b), (b, a))]
    assert meanfield.logit_rates(np.array([a, b]), "ring", K) == pytest.approx(wanted)
    alone = meanfield.logit_rates(np.array([0.6]), "ring", K)[0]
    assert alone == pytest.approx(binomial.reward_std(0.6, K) * binomial.vote_margin(0.6, K))
    assert alone > 1.04 * meanfield.logit_rates(np.array([0.6]), "self", K)[0]


def test_consensus_is_fixed_and_turning_a_ring_turns_its_path():
    for ring in (3, 5):
        for value in (0.0, 1.0):
            assert (end([value] * ring) == value).all()
        start = np.linspace(0.3, 0.8, ring)
        turned = end(np.roll(start, 1), size=8)
        assert turned == pytest.approx(np.roll(end(start, size=8), 1), abs=1e-6)


def test_the_truth_never_hurts_and_an_ema_teacher_goes_where_own_votes_go():
    assert (meanfield.velocity(PLANE, "ground_truth", K) >= 0).all()
    assert end([0.02], "ground_truth")[0] > 0.99
    starts = np.array([0.3, 0.45, 0.55, 0.7])
    assert (end(starts, "ema", teacher_rate=0.1) > 0.5).tolist() == (end(starts, "self") > 0.5).tolist()


def test_longer_rings_agree_but_the_sum_does_not_say_on_what():
    generator = np.random.default_rng(1)
    for ring, share in ((3, 0.94), (4, 0.93)):
        starts = generator.random((600, ring))
        ends = phase.consensus(starts, K)
        assert np.isfinite(ends).all()
        assert np.mean(ends == (starts.sum(axis=1) > ring / 2)) == pytest.approx(share, abs=0.03)
    assert np.isfinite(phase.consensus(generator.random((400, 5)), K)).mean() >= 0.99
    assert phase.consensus(np.array([[0.886, 0.021, 0.898], [0.214, 0.033, 0.971]]), K).tolist() == [0, 1]
    with pytest.raises(ValueError, match="ring of 3"):
        phase.right_side(np.array([0.2, 0.3, 0.4]), "ring")


def test_complementary_strengths():
    questions = np.array([[0.9, 0.2], [0.2, 0.9]])
    assert end(questions, "self").mean(axis=0) == pytest.approx([0.5, 0.5], abs=0.01)
    assert end(questions).mean(axis=0) == pytest.approx([1, 1], abs=0.01)


def test_co_rl_hurts_where_the_pairs_mean_is_below_a_half():
    # P(p > ½) is 11/16 under Beta(3, 2) and 5/16 under Beta(2, 3), each within 3 standard errors of 20,000 draws
    generator = np.random.default_rng(3)
    wanted = {(1, 1): (0.5, 0.5), (2, 2): (0.5, 0.5), (3, 2): (11 / 16, 0.757), (2, 3): (5 / 16, 0.243)}
    for shape, (alone, pair) in wanted.items():
        starts = generator.beta(*shape, (20_000, 2))
        assert phase.right_side(starts, "self")[:, 0].mean() == pytest.approx(alone, abs=0.011)
        assert phase.right_side(starts, "ring")[:, 0].mean() == pytest.approx(pair, abs=0.011)
        exact = phase.population(*shape)
        assert exact[0] == pytest.approx(alone, abs=1e-9) and exact[1] == pytest.approx(pair, abs=0.006)
    assert phase.right_side(np.array([0.9, 0.05]), "self").tolist() == [True, False]
    assert phase.right_side(np.array([0.9, 0.05]), "ring").tolist() == [False, False]


def test_the_rules_for_the_outcome_are_what_the_flow_does():
    starts = np.random.default_rng(5).random((300, 2))
    starts = starts[np.abs(starts.sum(axis=1) - 1) > 0.02]
    assert ((end(starts) > 0.5) == phase.right_side(starts, "ring")).all()
    clear = starts[np.abs(starts - 0.5).min(axis=1) > 0.02]
    assert ((end(clear, "self") > 0.5) == phase.right_side(clear, "self")).all()


def test_nonsense_is_refused():
    with pytest.raises(ValueError, match="supervision='both' is not known; choose one of self"):
        meanfield.velocity(np.array([0.5]), "both", K)
    with pytest.raises(ValueError, match="outside 0 to 1"):
        meanfield.trajectory(np.array([1.5]), "self", K, LATE)
