"""Several answers: the replicator flow, the noisy process beside it, and Co-RL recovering a truth that both modes miss."""

import numpy as np
import pytest

from corl_core.theory import binomial, meanfield, plurality, replicator, simulate
from corl_core.theory.expected import own_vote, peer_vote

A, B = np.array([0.35, 0.45, 0.20]), np.array([0.50, 0.20, 0.30])
K = 7
LATE = np.array([0.0, 200.0])
TABLE = [  # p_A, p_B (first is the truth), whether A and B end right on own votes, and as a pair
    ((0.35, 0.45, 0.20), (0.50, 0.20, 0.30), (0, 1), (1, 1)),
    ((0.40, 0.50, 0.10), (0.40, 0.10, 0.50), (0, 0), (1, 1)),
    ((0.40, 0.50, 0.10), (0.40, 0.50, 0.10), (0, 0), (0, 0)),
    ((0.40, 0.45, 0.15), (0.36, 0.10, 0.54), (0, 0), (1, 1)),
]


def test_one_step_in_closed_form():
    pair = replicator.logit_rates(np.stack([A, B]), "ring", K)
    assert pair[0] == pytest.approx([0.22061, -0.19438, -0.02623], abs=6e-6)
    own = replicator.logit_rates(A[None], "self", K)
    assert own[0] == pytest.approx([-0.02151, 0.13150, -0.10999], abs=6e-6)


@pytest.mark.parametrize("supervision", ["self", "ring", "ground_truth", "random", "ema"])
@pytest.mark.parametrize("silent", [False, True])
def test_one_simulated_step_has_the_flows_mean(supervision, silent):
    start = np.stack([A, B]) * (0.9 if silent else 1)
    copies = 60_000
    made = simulate.simulate(np.tile(start, (copies, 1, 1)), supervision, K, steps=1, eta=1e-6, seed=1)
    full, rest = plurality.with_silent(start)
    wanted = replicator.logit_rates(full, supervision, K, rest, teacher=full)
    drift = np.log(made.p[1] / made.p[0]) / 1e-6  # logits up to a constant
    error = drift.std(axis=0) / copies**0.5
    free = wanted - (full * wanted).sum(axis=-1, keepdims=True)  # the log of the softmax takes the mean off
    assert (np.abs(drift.mean(axis=0) - free[..., :3]) < 4 * error + 1e-6).all()


@pytest.mark.parametrize(("a", "b", "alone", "pair"), TABLE)
def test_own_votes_lock_on_the_mode_and_a_pair_can_leave_two_wrong_modes(a, b, alone, pair):
    start = np.array([a, b])
    for supervision, wanted in (("self", alone), ("ring", pair)):
        last = replicator.evolve(start, supervision, K, LATE)[-1]
        assert last[:, 0] == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("supervision", replicator.SUPERVISIONS)
def test_probabilities_stay_probabilities_and_what_was_never_said_never_is(supervision):
    start = np.array([[0.3, 0.5, 0.2, 0.0], [0.0, 0.6, 0.3, 0.1]])
    if supervision != "ema":
        assert replicator.velocity(start, supervision, K).sum(axis=-1) == pytest.approx([0, 0], abs=1e-12)
    path = replicator.evolve(start, supervision, K, np.linspace(0, 20, 5), teacher_rate=0.1)
    assert path.sum(axis=-1) == pytest.approx(np.ones((5, 2)))
    assert (path >= 0).all() and (path[:, start == 0] == 0).all()
    walk = simulate.simulate(start[None], supervision, K, 50, eta=0.5).p
    assert walk.sum(axis=-1) == pytest.approx(np.ones((51, 1, 2))) and (walk[:, 0, start == 0] == 0).all()


def test_two_classes_are_the_binary_flow_at_twice_the_speed():
    p = np.array([0.7, 0.35])
    both = np.stack([p, 1 - p], axis=-1)
    for supervision in ("self", "ring", "ground_truth"):
        rates = replicator.logit_rates(both, supervision, K)
        assert rates[:, 0] - rates[:, 1] == pytest.approx(2 * meanfield.logit_rates(p, supervision, K))


def test_consensus_is_fixed_and_the_truth_only_helps():
    sure = np.eye(3)[[1, 1]]
    for supervision in ("self", "ring", "ground_truth"):
        assert replicator.velocity(sure, supervision, K) == pytest.approx(np.zeros((2, 3)), abs=1e-12)
    spread = np.random.default_rng(0).dirichlet(np.ones(4), (50, 2))
    assert (replicator.velocity(spread, "ground_truth", K)[..., 0] >= 0).all()


def test_turning_a_ring_turns_its_path():
    start = np.random.default_rng(2).dirichlet(np.ones(3), 3)
    end = replicator.evolve(start, "ring", K, LATE)[-1]
    assert replicator.evolve(np.roll(start, 1, axis=0), "ring", K, LATE)[-1] == pytest.approx(np.roll(end, 1, axis=0), abs=1e-4)


def test_the_noisy_process_follows_the_flow_at_a_small_rate():
    start = np.array([[[0.9, 0.1], [0.3, 0.7]]])
    eta, steps = 0.02, 400
    walk = simulate.simulate(np.tile(start, (400, 1, 1)), "ring", K, steps, eta).accuracy.mean(axis=1)  # (S+1, N)
    flow = replicator.evolve(start, "ring", K, np.arange(steps + 1) * eta)[:, 0, :, 0]
    assert np.abs(walk - flow).max() < 0.02 and flow[-1].min() > flow[0].min() + 0.1


def test_simulated_rewards_are_the_expected_ones():
    # 20,000 questions at .6 and .7, frozen by η = 0; a group's mean reward has a standard deviation below ½
    start = np.tile([[0.6, 0.4], [0.7, 0.3]], (20_000, 1, 1))
    three_errors = 3 * 0.5 / 20_000**0.5
    own = simulate.simulate(start, "self", 8, 1, eta=0).reward[0].mean(axis=0)
    assert own == pytest.approx([float(own_vote(0.6, 8)), float(own_vote(0.7, 8))], abs=three_errors)
    ring = simulate.simulate(start, "ring", 8, 1, eta=0).reward[0].mean(axis=0)
    assert ring == pytest.approx([float(peer_vote(0.6, 0.7, 8)), float(peer_vote(0.7, 0.6, 8))], abs=three_errors)


def test_a_seed_repeats_a_walk_and_a_full_leak_moves_all_questions_alike():
    start = np.random.default_rng(0).dirichlet(np.ones(3), (5, 2))
    first, again, other = (simulate.simulate(start, "ring", K, 5, seed=seed).p for seed in (1, 1, 2))
    assert (first == again).all() and (first != other).any()
    leaky = simulate.simulate(start, "ring", K, 1, eta=0.5, leak=1.0)
    moved = np.log(leaky.p[1]) - np.log(leaky.p[0])
    moved -= moved[..., :1]
    assert moved == pytest.approx(np.broadcast_to(moved[:1], moved.shape))


def test_a_vote_that_nobody_casts_moves_nobody():
    silent = np.zeros((1, 2, 2))
    assert (simulate.simulate(silent, "ring", K, 3).p == 0).all()
    assert (replicator.evolve(silent, "ring", K, LATE) == 0).all()


def test_too_large_an_enumeration_says_what_to_do():
    with pytest.raises(ValueError, match="num_generations=64 with 6 classes has more than 20,000 outcomes; merge rare"):
        replicator.logit_rates(np.full((1, 6), 1 / 6), "self", 64)
    with pytest.raises(ValueError, match="supervision='peer' is not known"):
        replicator.logit_rates(A[None], "peer", K)
    assert binomial.reward_std(0.0, 8) == 0
