"""Measures of pairs, pseudo-labels on edges and predicted cohorts, from answers as arrays; numbers worked out by hand."""

import json
import math
import random

import numpy as np
import pytest

from corl_core import diagnostics
from corl_core.answers import Answer
from corl_core.diversity.answers import NO_ANSWER, NOT_ASKED, Answers, Builder
from corl_core.diversity.cells import questions
from corl_core.diversity.cohorts import Cohort, Forecaster, distributions, pair_cycles, ring_cycles, why_not
from corl_core.diversity.edges import edges
from corl_core.diversity.measures import LABEL_FREE, MEASURES, Counts, count
from corl_core.diversity.pairs import compare, interval, pairs, selves
from corl_core.diversity.reference import PAPER_PAIRS
from corl_core.diversity.report import as_json, predictions, report
from corl_core.votes import vote

SHARES = [name for name, measure in MEASURES.items() if not measure.signed]


def made(samples: dict[str, list[list[str | None]]], truths: list[str | None]) -> Answers:
    """model → for each question its samples; None could not be read, [] was not asked."""
    builder = Builder()
    for number, truth in enumerate(truths):
        place = builder.question(f"q{number}")
        if truth is not None:
            builder.truth(place, builder.code(truth, truth))
    for model, groups in samples.items():
        for number, group in enumerate(groups):
            for key in group:
                builder.add(model, number, NO_ANSWER if key is None else builder.code(key, key))
    return builder.answers()


def singles(**models: str) -> dict[str, list[list[str | None]]]:
    """One sample a question: a letter each, '-' for one that could not be read, ' ' for not asked."""
    return {model: [[] if key == " " else [None if key == "-" else key] for key in text] for model, text in models.items()}


def paper_fixture() -> Answers:
    """500 questions: both right 159, only A 102, only B 54, both wrong 185, of which 12 with the same answer."""
    a = "t" * 159 + "t" * 102 + "x" * 54 + "w" * 12 + "x" * 173
    b = "t" * 159 + "y" * 102 + "t" * 54 + "w" * 12 + "y" * 173
    return made(singles(A=a, B=b), ["t"] * 500)


def test_the_checked_fixture_of_the_papers_first_pair_comes_out_exactly():
    (pair,) = pairs(paper_fixture())
    assert (pair.right_a, pair.right_b) == (0.522, 0.426)
    # observed 344/500 = .688; chance .522·.426 + .478·.574 = .496744; (.688 − .496744)/(1 − .496744) = .380037
    assert pair["kappa"] == pytest.approx((0.688 - 0.496744) / 0.503256) and round(pair["kappa"], 4) == 0.3800
    assert pair["exactly_one_right"] == 0.312 and pair["union"] == 0.63
    assert pair["same_wrong"] == 0.024 and pair["both_wrong"] == 0.37
    assert round(pair["jaccard"], 4) == 0.5425  # 185/341
    assert round(pair["b_wrong_if_a_wrong"], 4) == 0.7741  # 185/239
    assert round(pair["a_wrong_if_b_wrong"], 4) == round(185 / 287, 4)
    assert pair["excess_overlap"] == pytest.approx(0.37 - 0.478 * 0.574)
    assert pair["agreement"] == (159 + 12) / 500


def test_it_is_the_first_row_of_the_papers_table_to_its_digits():
    row, (pair,) = PAPER_PAIRS[0], pairs(paper_fixture())
    assert row.pair == "Qwen2.5-3B × Llama-3.2-3B"
    for name, digits in {"kappa": 2, "exactly_one_right": 3, "same_wrong": 3, "union": 3}.items():
        assert round(pair[name], digits) == getattr(row, name)


def test_the_papers_table_has_its_correlation_of_kappa_and_c():
    kappa, c = zip(*((row.kappa, row.exactly_one_right) for row in PAPER_PAIRS), strict=True)
    assert len(PAPER_PAIRS) == 12 and sum(row.seeds_only for row in PAPER_PAIRS) == 4
    assert round(float(np.corrcoef(kappa, c)[0, 1]), 2) == -0.98


def test_arrays_of_counts_give_what_diagnostics_gives_for_one_table():
    rng = random.Random(0)
    tables = [[rng.choice([0, 0, 1, 5, 40]) for _ in range(5)] for _ in range(300)]
    both, only_a, only_b, same, other = np.array(tables).T
    counts = Counts(both, only_a, only_b, same + other, same, same, same)
    for name, single in diagnostics.OVERLAPS.items():
        values = MEASURES[name].of(counts)
        for place in range(len(tables)):
            expected = single(diagnostics.PairCounts(*(int(x[place]) for x in (both, only_a, only_b, same + other, same))))
            assert (math.isnan(values[place]) and expected is None) or values[place] == pytest.approx(expected), (name, place)


def test_counting_agrees_with_diagnostics_where_answers_are_missing_and_truths_unknown():
    rng = random.Random(1)
    keys = [[rng.choice(["t", "u", "v", None]) for _ in range(200)] for _ in range(2)]
    truths = [rng.choice(["t", "u", None]) for _ in range(200)]
    answers = made({name: [[key] for key in column] for name, column in zip("ab", keys, strict=True)}, truths)
    counts = count(answers.codes[0, :, 0], answers.codes[1, :, 0], answers.truths)
    assert counts.table == diagnostics.count_pair(*keys, truths)
    assert MEASURES["agreement"].value(counts) == pytest.approx(diagnostics.agreement(*keys))


def test_questions_that_one_model_was_not_asked_are_left_out_of_the_pair():
    (pair,) = pairs(made(singles(a="tt  x", b="t x x"), ["t"] * 5))
    assert pair.num_labelled == 2 and pair["exactly_one_right"] == 0.0 and pair["same_wrong"] == 0.5


@pytest.mark.parametrize(
    ("answers", "kappa_reason", "jaccard_reason"),
    [("tttt", "both are right on every question", "neither makes an error"), ("xxxx", "both are wrong on every question", None)],
)
def test_degenerate_pairs_say_why_instead_of_nan(answers, kappa_reason, jaccard_reason):
    (pair,) = pairs(made(singles(a=answers, b=answers), ["t"] * 4))
    assert pair["kappa"] is None and pair.intervals["kappa"] is None and kappa_reason in pair.reasons["kappa"]
    assert pair.reasons.get("jaccard") == jaccard_reason
    assert pair["exactly_one_right"] == 0.0 and "NaN" not in json.dumps(pair.values)


def test_a_model_that_is_always_right_beside_one_that_errs_has_a_kappa_of_zero():
    (pair,) = pairs(made(singles(a="tttt", b="ttxx"), ["t"] * 4))  # observed .5, chance 1·.5: 0
    assert pair["kappa"] == 0.0 and pair.reasons["b_wrong_if_a_wrong"] == "a makes no error"


def test_without_truth_agreement_is_the_one_measure():
    (pair,) = pairs(made(singles(a="12-4", b="1344"), [None] * 4))
    assert LABEL_FREE == ["agreement"]
    assert {name for name, value in pair.values.items() if value is not None} == {"agreement"}
    assert pair["agreement"] == 2 / 3  # the third was not answered by both
    assert pair.reasons["kappa"] == "no question that both were asked has a known truth"


def test_two_models_that_never_both_answer_have_no_agreement():
    (pair,) = pairs(made(singles(a="1-", b="-1"), [None, None]))
    assert pair["agreement"] is None and pair.reasons["agreement"] == "no question was answered by both"


def test_intervals_are_those_of_a_binomial_and_equal_for_equal_seeds():
    (pair,) = pairs(paper_fixture())
    low, high = pair.intervals["exactly_one_right"]
    half = 1.96 * math.sqrt(0.312 * 0.688 / 500)  # .0406
    assert low == pytest.approx(0.312 - half, abs=0.005) and high == pytest.approx(0.312 + half, abs=0.005)
    assert pairs(paper_fixture())[0].intervals == pair.intervals
    assert pairs(paper_fixture(), seed=1)[0].intervals != pair.intervals
    for name, value in pair.values.items():
        assert pair.intervals[name][0] <= value <= pair.intervals[name][1]


def test_a_pairs_intervals_do_not_depend_on_the_other_models():
    two = made(singles(a="ttxxtt", b="txtxtx"), ["t"] * 6)
    three = made(singles(a="ttxxtt", b="txtxtx", c="xxxxxt"), ["t"] * 6)
    assert pairs(two)[0] == pairs(three)[0]


def test_resamples_without_a_value_are_left_out_and_too_many_of_them_give_no_interval():
    assert interval(np.array([0.0, 1.0, np.nan])) == pytest.approx((0.025, 0.975))
    assert interval(np.array([0.0, np.nan])) is None


def test_votes_are_those_of_the_reward_rule_ties_first_seen():
    rng = random.Random(2)
    groups = [[rng.choice(["a", "b", "c", None]) for _ in range(rng.randint(1, 8))] for _ in range(300)]
    answers = made({"m": groups}, [None] * 300)
    for place, group in enumerate(groups):
        cast = vote([None if key is None else Answer(key, key) for key in group])
        code = answers.votes[0, place]
        assert (answers.keys[code] if code >= 0 else None) == cast.key


def test_a_question_that_was_not_asked_has_no_vote_and_one_without_answers_neither():
    answers = made({"m": [[], [None, None], ["x", None]]}, [None] * 3)
    assert answers.votes[0].tolist() == [NOT_ASKED, NO_ANSWER, answers.keys.index("x")]


def test_the_first_sample_is_compared_and_votes_on_request():
    answers = made({"a": [["x", "t", "t"]] * 2, "b": [["t", "x", "x"]] * 2}, ["t"] * 2)
    assert (pairs(answers)[0].right_a, pairs(answers)[0].right_b) == (0.0, 1.0)
    assert (pairs(answers, "vote")[0].right_a, pairs(answers, "vote")[0].right_b) == (1.0, 0.0)


def test_a_model_beside_itself_is_its_first_two_samples():
    answers = made({"a": [["t", "t"], ["t", "x"], ["x", "t"], ["x", "x"]], "b": [["t", "t"]] * 4}, ["t"] * 4)
    own = selves(answers)[0]
    assert (own.a, own.b) == ("a", "a") and own["exactly_one_right"] == 0.5 and own["same_wrong"] == 0.25
    assert selves(made(singles(a="t", b="t"), ["t"])) == []
    assert report(answers, "vote").selves == []


def test_an_edge_carries_the_peers_vote_and_what_it_does_to_the_receiver():
    # votes  a: t t x -   b: t x t x; truth t
    answers = made({"a": [["t"], ["t"], ["x"], [None]], "b": [["t"], ["x"], ["t"], ["x"]]}, ["t"] * 4)
    from_a = next(edge for edge in edges(answers) if (edge.peer, edge.agent) == ("a", "b"))
    assert from_a.labelled == 0.75 and from_a.pseudo_label_accuracy == pytest.approx(2 / 3)
    assert from_a.own_vote_accuracy == 0.5 and from_a.gain == pytest.approx(1 / 6)
    assert from_a.corrects == 1.0  # b's wrong votes: q1 (label right), q3 (no label)
    assert from_a.misleads == 0.5  # b's right votes: q0 (label right), q2 (label wrong)
    assert from_a.interval[0] <= 2 / 3 <= from_a.interval[1]
    assert edges(made(singles(a="1", b="1"), [None])) == []


def test_answer_shares_put_the_truth_first_and_leave_out_what_did_not_parse():
    answers = made({"a": [["t", "x", None, "x"]], "b": [["y", "t", "t", "t"]]}, ["t"])
    assert distributions(answers).tolist() == [[[0.25, 0.5, 0.0], [0.75, 0.0, 0.25]]]  # t, x, y


def complementary() -> Answers:
    """The paper's example: .9 and .1 on one half of the questions, the other way round on the other (arXiv 2608.17253, §5)."""
    good, bad = ["t"] * 9 + ["x"], ["t"] * 2 + ["x"] * 8
    return made({"a": [good] * 4 + [bad] * 4, "b": [bad] * 4 + [good] * 4}, ["t"] * 8)


def test_complementary_models_are_predicted_to_learn_together_what_neither_learns_alone():
    (best,) = predictions(complementary()).pairs
    assert best.start == pytest.approx((0.55, 0.55)) and best.alone == pytest.approx((0.5, 0.5), abs=0.01)
    assert best.final == pytest.approx((1.0, 1.0), abs=0.01) and best.warnings == ()
    assert best.gain == pytest.approx(0.5, abs=0.01)


def test_a_weak_peer_drags_a_strong_model_down_and_both_warnings_say_so():
    strong, weak = ["t"] * 6 + ["x"] * 4, ["x"] * 9 + ["t"]
    answers = made({"strong": [strong] * 4, "weak": [weak] * 4}, ["t"] * 4)
    (pair,) = predictions(answers).pairs
    assert pair.alone[0] == pytest.approx(1.0, abs=0.01) and pair.final == pytest.approx((0, 0), abs=0.01)
    assert any("under one half" in warning for warning in pair.warnings)
    assert any("'strong' would be dragged down, from 0.60 to 0.00" in warning for warning in pair.warnings)


def test_a_model_that_is_mostly_wrong_is_named_even_where_all_are_predicted_to_gain():
    cohort = Cohort(("a", "b", "c"), 10, (0.8, 0.45, 0.7), (0.8, 0.45, 0.7), (0.95, 0.9, 0.95), None)
    (warning,) = cohort.warnings
    assert warning.startswith("'b' is right in 0.45 of its answers, under one half")


def test_a_model_that_would_do_better_alone_is_named():
    cohort = Cohort(("a", "b"), 10, (0.6, 0.6), (0.9, 0.7), (0.8, 0.8), None)
    assert cohort.warnings == ("'a' would do better alone: 0.90 instead of 0.80",)


def test_cohorts_are_ranked_by_mean_final_accuracy_and_predicted_alike_together_or_alone():
    answers = complementary()
    third = made(
        {model: [[answers.keys[code] for code in group] for group in answers.codes[place].tolist()] for place, model in
         enumerate("ab")} | {"c": [["x"] * 10] * 8}, ["t"] * 8,
    )  # fmt: skip
    ranked = Forecaster(third).ranked(pair_cycles(3))
    finals = [cohort.mean_final for cohort in ranked]
    assert ranked[0].models == ("a", "b") and finals == sorted(finals, reverse=True)
    assert ranked[0] == Forecaster(third).ranked([(0, 1)])[0]


def test_rings_of_three_go_both_ways_round():
    assert ring_cycles(3) == [(0, 1, 2), (0, 2, 1)] and len(ring_cycles(6)) == 40 and ring_cycles(2) == []


@pytest.mark.parametrize(("truths", "told"), [([None], "there is none"), (["t"], "several samples a question")])
def test_what_cannot_be_predicted_says_why(truths, told):
    answers = made(singles(a="t", b="t"), truths)
    assert told in why_not(answers) and predictions(answers).why_not == why_not(answers)


def test_cohorts_without_a_common_question_are_left_out():
    answers = made({"a": [["t", "t"], []], "b": [[], ["t", "t"]], "c": [["t", "x"], ["t", "x"]]}, ["t", "t"])
    assert {cohort.models for cohort in predictions(answers).pairs} == {("a", "c"), ("b", "c")}


def test_every_question_of_a_cell_says_who_was_right():
    table = questions(made(singles(a="ttxww-", b="txtwv1"), ["t"] * 5 + [None]), "a", "b")
    assert table.outcome.tolist() == ["both_right", "only_a", "only_b", "same_wrong", "other_wrong", "different"]
    assert table.answer_a.tolist()[:3] == ["t", "t", "x"] and table.answer_a.isna().tolist()[5]
    assert table.truth.tolist()[0] == "t" and len(questions(made(singles(a="t ", b=" t"), ["t", "t"]), "a", "b")) == 0


def test_samples_of_a_question_are_counted_the_most_common_first():
    table = questions(made({"a": [["x", "t", "t", None]], "b": [["t", "t", "t", "t"]]}, ["t"]), "a", "b")
    assert table.samples_a[0] == "t ×2, x ×1, no answer ×1" and table.samples_b[0] == "t ×4"


def test_the_report_is_json_with_every_measure_and_its_interval():
    told = json.loads(json.dumps(as_json(report(paper_fixture()), predictions(paper_fixture())), allow_nan=False))
    (pair,) = told["pairs"]
    assert (pair["a"], pair["b"]) == ("A", "B") and set(MEASURES) <= pair.keys() and set(pair["intervals"]) == set(MEASURES)
    assert told["models"][0] == {"model": "A", "sample": 0.522, "vote": 0.522, "read": 1.0}
    assert len(told["edges"]) == 2 and len(told["reference"]["pairs"]) == 12 and told["predicted"]["why_not"]
    assert all(0 <= pair[name] <= 1 for name in SHARES)


def test_compare_takes_codes_of_any_two_models():
    codes = np.array([0, 1, 0, NOT_ASKED])
    assert compare("a", "b", codes, codes, np.zeros(4, dtype=int))["same_wrong"] == pytest.approx(1 / 3)
