"""Accuracy after training, predicted from the answers that models give today."""

import doctest

import numpy as np
import pytest

from corl_core.theory import meanfield, predict, replicator

A, B = (0.40, 0.50, 0.10), (0.40, 0.10, 0.50)  # both modes wrong, but different


def test_the_example_in_the_docstring():
    assert doctest.testmod(predict).failed == 0


def test_a_pair_finds_what_neither_model_would_find_alone():
    given = np.array([[A, B, A]])
    assert [predict.final_accuracy(given, (agent,), 7).tolist() for agent in (0, 1)] == [[0], [0]]
    assert predict.final_accuracy(given, (0, 1), 7).tolist() == [1, 1]
    assert predict.final_accuracy(given, (0, 2), 7).tolist() == [0, 0]  # equal models share their mistake


def test_complementary_strengths_and_a_weak_peer():
    given = np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.2, 0.8], [0.9, 0.1]]])
    assert predict.final_accuracy(given, (0,)).tolist() == [0.5] and predict.final_accuracy(given, (0, 1)).tolist() == [1, 1]
    weak = np.array([[[0.9, 0.1], [0.05, 0.95]]])
    assert predict.final_accuracy(weak, (0,)).tolist() == [1] and predict.final_accuracy(weak, (0, 1)).tolist() == [0, 0]


def test_it_is_the_flow_for_pairs_and_rings():
    starts = np.random.default_rng(4).random((150, 3))
    both = np.stack([starts, 1 - starts], axis=-1)
    pair = predict.forecast(both, (0, 1)).question_final
    clear = np.abs(starts[:, :2].sum(axis=1) - 1) > 0.01
    assert (pair[clear, 0] == (starts[clear, :2].sum(axis=1) > 1)).all()
    ring = predict.forecast(both, (0, 1, 2)).question_final
    flow = meanfield.trajectory(starts, "ring", 8, np.array([0.0, 400.0]))[-1]
    assert (ring[:, 0] == flow[:, 0].round()).mean() > 0.97  # the rest starts on the edge


def test_own_votes_in_closed_form_are_the_flow():
    given = np.random.default_rng(6).dirichlet(np.ones(4), (40, 1))
    flow = replicator.evolve(given, "self", 8, np.array([0.0, 2000.0]))[-1]
    assert predict.forecast(given, (0,)).question_final == pytest.approx(flow[..., 0].round())


def test_a_start_on_the_edge_counts_one_half():
    tied = np.array([[[0.5, 0.5], [0.5, 0.5]], [[0.75, 0.25], [0.25, 0.75]]])
    assert predict.final_accuracy(tied, (0, 1)).tolist() == [0.5, 0.5]
    assert predict.final_accuracy(tied, (0,)).tolist() == [0.75]  # ½ and 1


def test_rare_answers_that_are_left_out_do_not_change_the_outcome():
    generator = np.random.default_rng(7)
    counts = generator.multinomial(16, generator.dirichlet([2, 2, 1, 0.2, 0.2, 0.2], (30, 2))) / 16
    assert predict.merge_rare(counts, 8).shape == (30, 2, 4)
    end = replicator.evolve(counts, "ring", 8, np.array([0.0, 1000.0]))[-1, ..., 0]
    found = predict.forecast(counts, (0, 1)).question_final
    assert (np.abs(found - end) < 0.3).mean() > 0.95 and found.mean() == pytest.approx(end.mean(), abs=0.03)


def test_nobody_learns_an_answer_that_nobody_gives_and_unparsed_answers_are_wrong():
    given = np.array([[[0.0, 0.6, 0.2], [0.0, 0.1, 0.5]], [[0.3, 0.0, 0.0], [0.0, 0.2, 0.0]]])
    found = predict.forecast(given, (0, 1))
    assert found.question_final[0].tolist() == [0, 0]
    assert found.start.tolist() == pytest.approx([0.15, 0.0])
    assert found.question_final[1, 1] == 0  # B never says the truth, and is never told by a label it could learn


def test_the_order_of_the_cycle_is_the_order_of_the_result():
    given = np.array([[[1.0, 0.0], [0.0, 1.0], [0.7, 0.3]]])  # the first two never change
    assert predict.final_accuracy(given, (0, 2)).tolist() == [1, 1]
    assert predict.final_accuracy(given, (2, 1)).tolist() == [0, 0]


def test_pseudo_label_accuracy_is_the_votes():
    # V_8(.6) = .710208; a model that is never right casts no right vote
    given = np.array([[[0.6, 0.4], [0.0, 1.0]]])
    assert predict.pseudo_label_accuracy(given, 8) == pytest.approx([0.710208, 0], abs=1e-6)


def test_counts_leave_the_outcome_open_in_proportion_to_how_few_they_are():
    # 3 of 4 and 2 of 4 right is above the edge, 30 of 40 and 20 of 40 is so for certain; nothing right in 4 may still be luck
    few = predict.from_counts([[[3, 1], [2, 2]], [[0, 4], [0, 4]]], (0, 1), 4)
    many = predict.from_counts([[[30, 10], [20, 20]], [[0, 40], [0, 40]]], (0, 1), 4)
    assert 0.6 < few[0, 0] < many[0, 0] == 1 and few[1, 0] < 0.1
    assert predict.from_counts([[[3, 1]]], (0,), 4)[0, 0] == pytest.approx(0.85, abs=0.1)  # P(p > ½), p ~ Beta(3.5, 1.5): .840
    with pytest.raises(ValueError, match=r"give \(questions, agents, answers\)"):
        predict.from_counts([[3, 1]], (0,), 4)


def test_many_answers_do_not_fill_the_memory_and_rare_ones_never_win():
    # 40 wrong answers of .01 each lose to a truth of .6 in nearly every vote of 16
    given = np.full((300, 2, 41), 0.01)
    given[..., 0] = 0.6
    assert (predict.pseudo_label_accuracy(given, 16) > 0.99).all()
    assert predict.final_accuracy(given, (0, 1), 16).tolist() == [1, 1]
    with pytest.raises(ValueError, match="num_generations=300 with 3 classes has more than 20,000 outcomes"):
        predict.final_accuracy(given, (0, 1), 300)


def test_bad_input_is_named():
    good = np.array([[[0.6, 0.4], [0.3, 0.7]]])
    for cycle, words in (((0, 5), "no agent 5; the agents are 0 to 1"), ((0, 0), "once"), ((), "at least one")):
        with pytest.raises(ValueError, match=words):
            predict.final_accuracy(good, cycle)
    with pytest.raises(ValueError, match=r"shape \(1, 2\)"):
        predict.final_accuracy(good[..., 0], (0,))
    with pytest.raises(ValueError, match=r"sum to 1\.1"):
        predict.final_accuracy(good + 0.05, (0,))
    with pytest.raises(ValueError, match="at least 2 answers"):
        predict.final_accuracy(good, (0, 1), 1)
