"""Metrics against numbers worked out by hand; the fixtures of the paper's diversity table among them."""

from dataclasses import replace
from math import sqrt

import pytest

from corl_core import diagnostics as d
from corl_core.answers import answer
from corl_core.diagnostics import PairCounts, Step
from corl_core.metrics import METRICS, describe
from corl_core.rewards.matching import rewards
from corl_core.votes import vote


def step(groups: list[list[str | None]], labels: list[str | None], truths: list[str | None],
         min_share: float = 0.0) -> Step:  # fmt: skip
    answers = [[answer(text) if text else None for text in group] for group in groups]
    return Step(
        keys=tuple(tuple(a.key if a else None for a in group) for group in answers),
        votes=tuple(vote(group) for group in answers),
        labels=tuple(labels),
        rewards=tuple(rewards(group, label) for group, label in zip(answers, labels, strict=True)),
        truths=tuple(truths),
        min_share=min_share,
        outcomes=tuple("parsed" if text else "no_box" for group in groups for text in group),
    )


def test_a_step_by_hand():
    # Group 1: label 8 (wrong), truth 7; answers 8 8 7 -. Group 2: label 5 (right); answers 5 6 5 5. Group 3: no label.
    record = step(
        [["8", "8", "7", None], ["5", "6", "5", "5"], ["1", "2", "3", "4"]], ["8", "5", None], ["7", "5", "4"]
    )
    assert d.reward(record) == 5 / 8  # rewards 1 1 0 0 · 1 0 1 1
    assert d.reward_std(record) == pytest.approx((sqrt(2 * 2) / 4 + sqrt(3 * 1) / 4) / 2)
    assert d.frac_reward_zero_std(record) == 1 / 3  # the unlabelled group
    assert d.labeled_frac(record) == 2 / 3
    assert d.parse_rate(record) == 11 / 12
    assert d.vote_share(record) == pytest.approx((2 / 3 + 3 / 4 + 1 / 4) / 3)
    assert d.tie_rate(record) == 1 / 3
    assert d.pseudo_label_accuracy(record) == 1 / 2
    assert d.vote_accuracy(record) == 1 / 3  # votes 8, 5 and (first of a tie) 1
    assert d.reward_accuracy(record) == (1 + 4) / 8  # group 1: only the unparsed rollout has the reward it deserves
    assert d.false_reward_rate(record) == 2 / 4  # wrong rollouts of labelled groups: 8 8 - and 6; two rewarded


def test_votes_that_do_not_count_are_told_apart_by_the_reason():
    groups = [["1", "1", "1", "2"], ["1", "1", "2", "3"], ["4", "5", "6", "7"], [None, None, None, None]]
    record = step(groups, ["1", None, None, None], [None] * 4, min_share=0.6)
    assert d.below_share_rate(record) == 2 / 4  # shares .5 and .25
    assert d.tie_rate(record) == 1 / 4
    assert d.unparsed_vote_rate(record) == 1 / 4
    assert d.labeled_frac(record) == 1 / 4


def test_grading_that_timed_out_or_failed_is_counted_apart_from_wrong():
    record = replace(step([["1", "2"], ["3", None]], ["1", "3"], ["1", "3"]), outcomes=("parsed", "timeout", "error", "no_box"))
    assert (d.grade_timeout_rate(record), d.grade_error_rate(record), d.parse_rate(record)) == (1 / 4, 1 / 4, 3 / 4)


def test_more_votes_than_training_samples():
    """Eight completions vote, the first two of them train: votes and parse rate are over eight, rewards over two."""
    answers = [answer(text) if text else None for text in ("9", "8", "8", "8", "7", None, "8", None)]
    record = Step(keys=(("9", "8"),), votes=(vote(answers),), labels=("8",), rewards=((0.0, 1.0),), truths=("8",))
    assert (d.vote_share(record), d.parse_rate(record), d.reward(record)) == (4 / 6, 6 / 8, 1 / 2)


def test_a_lucky_hit_is_told_apart_by_the_false_reward_rate():
    """Eight different wrong answers and a wrong label: seven of eight rewards are 'right' all the same."""
    record = step([[str(n) for n in range(1, 9)]], ["1"], ["9"])
    assert d.reward_accuracy(record) == 7 / 8
    assert d.false_reward_rate(record) == 1 / 8
    assert d.pseudo_label_accuracy(record) == 0


def test_rewards_of_a_sum_are_not_compared_with_those_of_the_truth_even_where_they_are_0_or_1():
    record = replace(step([["1", "1", "2"]], ["1"], ["1"]), is_sum=True)
    assert d.reward_accuracy(record) is None and d.false_reward_rate(record) is None


def test_without_truth_the_metrics_that_need_it_are_absent():
    names = set(d.agent_metrics(step([["1", "1"]], ["1"], [None])))
    assert names == {name for name in d.AGENT_METRICS if not METRICS[name].needs_truth}


def test_a_step_without_any_label_has_no_reward():
    names = d.agent_metrics(step([["1", "2"]], [None], ["1"]))
    assert "reward" not in names and "reward_std" not in names and "pseudo_label_accuracy" not in names
    assert names["frac_reward_zero_std"] == 1 and names["labeled_frac"] == 0


@pytest.mark.parametrize("hits", range(9))
def test_reward_std_of_a_group_is_the_binary_formula(hits):
    record = step([["1"] * hits + ["2"] * (8 - hits)], ["1"], [None])
    assert d.reward_std(record) == pytest.approx(sqrt(hits * (8 - hits)) / 8)


def test_agreement_counts_questions_on_which_both_voted():
    assert d.agreement(["1", "2", None, "4"], ["1", "3", "3", None]) == 1 / 2
    assert d.agreement([None], ["1"]) is None


def test_error_overlap_of_the_papers_first_pair():
    """arXiv 2608.17253, Table 5, Qwen2.5-3B × Llama-3.2-3B: kappa .38, u 63.0% of 500 problems."""
    pair = PairCounts(both=159, only_a=102, only_b=54, neither=185, same_wrong=12)
    assert d.kappa(pair) == pytest.approx(0.3800, abs=5e-5)
    assert d.jaccard(pair) == pytest.approx(0.5425, abs=5e-5)
    assert d.both_wrong(pair) == pytest.approx(1 - 0.630)
    assert d.same_wrong(pair) == pytest.approx(0.024)


def test_pair_counts_by_hand_and_a_missing_vote_is_wrong():
    a, b = ["1", "1", "3", "9", None, "5"], ["1", "2", "2", "9", "7", None]
    assert d.count_pair(a, b, ["1", "1", "2", "4", "7", "6"]) == PairCounts(1, 1, 2, 2, 1)
    assert d.count_pair(["1"], ["1"], [None]).total == 0


def test_overlap_is_undefined_where_nothing_varies():
    all_right, all_wrong = PairCounts(5, 0, 0, 0, 0), PairCounts(0, 0, 0, 5, 5)
    assert d.kappa(all_right) is None and d.kappa(all_wrong) is None
    assert d.jaccard(all_right) is None and d.jaccard(all_wrong) == 1
    assert d.both_wrong(PairCounts(0, 0, 0, 0, 0)) is None


def test_cohort_metrics_are_means_over_pairs_with_each_pair_beside_them():
    votes = {"a": ["1", "2"], "b": ["1", "3"], "c": ["1", "2"]}
    values = d.cohort_agreement(votes)
    assert values == {"agreement": pytest.approx(2 / 3), "agreement/a.b": 0.5, "agreement/a.c": 1.0, "agreement/b.c": 0.5}
    overlap = d.cohort_overlap(votes, ["1", "3"])
    assert overlap["error_overlap/same_wrong/a.c"] == 0.5 and overlap["error_overlap/same_wrong/a.b"] == 0
    assert "error_overlap/kappa/a.c" in overlap


def test_every_metric_says_what_it_is():
    for metric in METRICS.values():
        assert len(metric.doc) > 20 and metric.label and metric.scope in ("agent", "cohort")


def test_logged_variants_are_described_too():
    assert describe("eval/accuracy/add").label == "Accuracy (add)"
    assert describe("agreement/a.b").scope == "pair"
    assert describe("eval/error_overlap/kappa/a.b").doc.endswith("held-out questions.")
    with pytest.raises(KeyError):
        describe("acuracy")
