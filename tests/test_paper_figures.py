"""The paper's figures from one's own runs: lines worked out by hand, who diverged, and the table of results."""

import math

import numpy as np
import pandas as pd
import pytest

from corl_core.config import RunConfig
from corl_core.figures import palette
from corl_core.figures.errors import FigureError
from corl_core.figures.paper import diverged, dynamics, groups, table
from corl_core.figures.paper.dynamics import Choice
from corl_core.figures.paper.overlap import error_overlap
from corl_core.figures.spec import Figure, Series

RAW = Choice(smoothing=0.0)


def rows(*entries: tuple) -> pd.DataFrame:
    frame = pd.DataFrame(entries, columns=["run_id", "agent", "metric", "step", "value"])
    return frame.assign(time=0.0, attempt=0)


def config(name: str = "demo", seed: int = 0, models: tuple[str, ...] = ("tiny:llama", "tiny:qwen2"), **more) -> RunConfig:
    agents = [{"name": "abcdef"[place], "model": model, "seed": place if len(set(models)) < len(models) else 0}
              for place, model in enumerate(models)]  # fmt: skip
    return RunConfig.model_validate({"name": name, "seed": seed, "agents": agents} | more)


def grouped(*names: str) -> list[groups.Group]:
    return [groups.Group(name, (name,), palette.style(place)) for place, name in enumerate(names)]


def lines(*values: list[float]) -> Figure:
    drawn = [Series("abc"[place], np.arange(len(y)), np.array(y, float), palette.style(place)) for place, y in enumerate(values)]
    return Figure("length", "Length", "Step", "Tokens", tuple(drawn))


# ---- 2a–c, 4a–c


def test_figure_2b_is_the_mean_over_agents_then_over_seeds_with_one_std():
    # run r: (0.2 + 0.4) / 2 = 0.3; run s: 0.5. Mean 0.4, sample std sqrt(2 · 0.01 / 1) = 0.1414
    history = rows(("r", "a", "pseudo_label_accuracy", 0, 0.2), ("r", "b", "pseudo_label_accuracy", 0, 0.4),
                   ("s", "a", "pseudo_label_accuracy", 0, 0.5))  # fmt: skip
    both = [groups.Group("corl", ("r", "s"), palette.style(0))]
    (line,) = dynamics.pseudo_labels(history, both, RAW).series
    assert line.y.tolist() == pytest.approx([0.4]) and line.label == "corl (N=2)"
    assert line.high[0] - line.y[0] == pytest.approx(math.sqrt(0.02))


def test_one_agent_alone_can_be_drawn():
    history = rows(("r", "a", "eval/accuracy", 0, 0.2), ("r", "b", "eval/accuracy", 0, 0.4))
    (line,) = dynamics.evaluation(history, grouped("r"), Choice(agent="b")).series
    assert line.y.tolist() == [0.4]


def test_evaluations_are_never_smoothed_and_training_curves_are():
    history = rows(*((("r", "a", metric, step, value)) for metric in ("eval/accuracy", "pseudo_label_accuracy")
                     for step, value in enumerate([1.0, 0.0])))  # fmt: skip
    smoothed = Choice(smoothing=0.5)
    assert dynamics.evaluation(history, grouped("r"), smoothed).series[0].y.tolist() == [1.0, 0.0]
    # weight 1/2: (1/2 · 1 + 0) / (3/2) = 1/3
    assert dynamics.pseudo_labels(history, grouped("r"), smoothed).series[0].y.tolist() == pytest.approx([1.0, 1 / 3])


def test_figure_4b_divides_by_each_agents_first_std_above_zero():
    # a: 0, 0.4, 0.2 over 0.4; b: 0.5, 0.25, 0 over 0.5. Means: (0 + 1)/2, (1 + 0.5)/2, (0.5 + 0)/2
    values = {"a": [0.0, 0.4, 0.2], "b": [0.5, 0.25, 0.0]}
    history = rows(*(("r", agent, "reward_std", step, y) for agent, ys in values.items() for step, y in enumerate(ys)))
    (line,) = dynamics.reward_std(history, grouped("r"), RAW).series
    assert line.y.tolist() == pytest.approx([0.5, 0.75, 0.25])


def test_an_agent_whose_rewards_never_vary_is_left_out_of_figure_4b():
    history = rows(("r", "a", "reward_std", 0, 0.0), ("r", "a", "reward_std", 1, 0.0))
    assert dynamics.reward_std(history, grouped("r"), RAW).empty


# ---- 5a–c


def test_figure_5_has_one_line_an_agent_in_the_order_of_the_cohort():
    history = rows(("r", "b", "eval/accuracy", 0, 0.4), ("r", "a", "eval/accuracy", 0, 0.2))
    drawn = dynamics.agents_accuracy(history, grouped("r"), Choice(agents=("b", "a")))
    assert [(line.label, line.style.color) for line in drawn.series] == [("b", palette.COLORS[0]), ("a", palette.COLORS[1])]


def test_groups_share_an_agents_colour_and_differ_in_dash():
    history = rows(*((run, agent, "eval/accuracy", 0, 0.5) for run in "rs" for agent in "ab"))
    drawn = dynamics.agents_accuracy(history, grouped("r", "s"), Choice(agents=("a", "b"))).series
    assert [line.label for line in drawn] == ["a, r", "b, r", "a, s", "b, s"]
    assert drawn[0].style.color == drawn[2].style.color and drawn[0].style.dash != drawn[2].style.dash


def test_figure_5b_has_one_line_a_pair():
    history = rows(("r", "", "agreement", 0, 0.5), ("r", "", "agreement/a.b", 0, 0.25), ("r", "", "agreement/b.c", 0, 0.75))
    drawn = dynamics.agents_agreement(history, grouped("r"), Choice(smoothing=0.0, agents=("a", "b", "c"))).series
    assert [(line.label, line.y[0]) for line in drawn] == [("a and b", 0.25), ("b and c", 0.75)]


def test_the_tables_of_the_reader_are_categories_and_draw_the_same():
    history = rows(("r", "", "agreement/a.b", 0, 0.25), ("r", "a", "eval/accuracy", 0, 0.5))
    packed = history.astype(dict.fromkeys(["run_id", "agent", "metric"], "category"))
    assert dynamics.agents_agreement(packed, grouped("r"), RAW).series[0].y.tolist() == [0.25]
    assert dynamics.agents_accuracy(packed, grouped("r"), RAW).series[0].label == "a"


# ---- diverged


def test_a_line_diverges_at_the_step_from_which_it_stays_outside():
    # points: nine 100s of one line; 100, 100, 900, 100, 900, 900 of the other. median 100, MAD 0: top = 2.5 · 100 = 250
    drawn = diverged.ranged(lines([100] * 9, [100, 100, 900, 100, 900, 900]), automatic=True)
    assert drawn.bounds == (0, 100)
    assert [(mark.x, mark.up, mark.for_good) for mark in drawn.marks] == [(2, True, False), (4, True, True)]
    assert [line.label for line in drawn.series] == ["a", "b, diverged at step 4"]


def test_the_band_and_the_raw_line_of_a_diverged_line_end_where_it_leaves():
    y = np.array([1.0, 9.0, 9.0])
    line = Series("a", np.arange(3), y, palette.style(0), low=y - 1, high=y + 1, raw=y)
    (drawn,) = diverged.ranged(Figure("x", "t", "Step", "y", (line,)), (0.0, 2.0)).series
    for behind, first in ((drawn.low, 0.0), (drawn.high, 2.0), (drawn.raw, 1.0)):
        assert behind[0] == first and np.isnan(behind[1:]).all()


def test_a_run_that_turns_nan_diverges_there_by_the_edge_it_was_near():
    drawn = diverged.ranged(lines([1.0, 2.0, 2.0, 2.0], [1.0, 2.0, math.nan, math.nan]), automatic=True)
    (mark,) = drawn.marks
    assert mark.x == 2 and mark.up and mark.for_good and drawn.series[1].label.endswith("diverged at step 2")


def test_lines_that_stay_together_get_no_range_and_no_mark():
    drawn = diverged.ranged(lines([100, 110, 120], [90, 95, 180]), automatic=True)
    assert drawn.bounds is None and not drawn.marks


def test_a_line_must_rise_well_above_where_training_starts_to_leave():
    # reward std falls from 1 to 0.01: median 0.01, MAD 0, 2.5 · 0.01 = 0.025, but 2.5 times the first value is 2.5
    fallen = [1.0] + [0.01] * 20
    drawn = diverged.ranged(lines(fallen, [1.0] + [0.01] * 19 + [5.0]), automatic=True)
    assert drawn.bounds == (0, 1.0) and [mark.x for mark in drawn.marks] == [20]
    assert not diverged.ranged(lines(fallen, [1.0] + [2.4] * 20), automatic=True).marks


def test_a_range_asked_for_wins_and_both_edges_are_marked():
    drawn = diverged.ranged(lines([0.5, 0.9], [0.5, 0.1]), (0.2, 0.8), automatic=True)
    assert drawn.bounds == (0.2, 0.8) and [(mark.x, mark.up) for mark in drawn.marks] == [(1, True), (1, False)]


@pytest.mark.parametrize("limits", [(1.0, 1.0), (2.0, 1.0), (math.nan, 1.0), (0.0, math.inf)])
def test_limits_that_are_no_range_are_refused(limits):
    with pytest.raises(FigureError, match="ylim"):
        diverged.ranged(lines([1.0]), limits)


def test_a_member_is_marked_but_not_named():
    member = Series("r", np.arange(2), np.array([0.5, 9.0]), palette.style(0), faint=True)
    drawn = diverged.ranged(Figure("x", "t", "Step", "y", (member,)), (0.0, 1.0))
    assert drawn.series[0].label == "r" and len(drawn.marks) == 1


# ---- 2d


def overlap_rows(run_id: str, value: float, pair: str = "a.b", step: int = 0, measure: str = "kappa") -> pd.DataFrame:
    return rows((run_id, "", f"eval/error_overlap/{measure}/{pair}", step, value))


def test_figure_2d_is_the_evaluation_before_rl_with_the_least_overlap_first():
    three = config(models=("tiny:llama", "tiny:qwen2", "tiny:gpt_neox"))
    history = pd.concat([overlap_rows("r", 0.5), overlap_rows("r", 0.2, "b.c"), overlap_rows("r", 0.9, step=10)])
    drawn = error_overlap(history, {"r": three}, RAW)
    assert [(bar.label, bar.value) for bar in drawn.bars] == [("gpt_neox × qwen2", 0.2), ("llama × qwen2", 0.5)]


def test_pairs_that_differ_by_seed_are_one_bar_with_their_spread():
    # 0.2 and 0.4: mean 0.3, sample std 0.1414
    history = pd.concat([overlap_rows("r", 0.2), overlap_rows("s", 0.4)])
    (bar,) = error_overlap(history, {"r": config(), "s": config(seed=1)}, RAW).bars
    assert (bar.value, bar.count) == (pytest.approx(0.3), 2) and bar.spread == pytest.approx(math.sqrt(0.02))


def test_the_same_base_models_in_two_runs_are_one_measurement():
    history = pd.concat([overlap_rows("r", 0.2), overlap_rows("s", 0.4)])
    (bar,) = error_overlap(history, {"r": config(), "s": config("ttrl", method="ttrl")}, RAW).bars
    assert (bar.value, bar.count, bar.spread) == (0.2, 1, None)


def test_other_questions_are_another_measurement():
    history = pd.concat([overlap_rows("r", 0.2), overlap_rows("s", 0.4)])
    drawn = error_overlap(history, {"r": config(), "s": config(eval={"num_questions": 9})}, RAW)
    assert [bar.value for bar in drawn.bars] == [0.2, 0.4]


def test_a_pair_of_one_family_is_told_apart():
    same = config(models=("Qwen/Qwen2.5-7B", "Qwen/Qwen3-1.7B"))
    (bar,) = error_overlap(overlap_rows("r", 0.5), {"r": same}, RAW).bars
    assert bar.group == "same family" and bar.hatched
    other = config(models=("Qwen/Qwen2.5-7B", "/models/Llama-3.2-1B"))
    assert error_overlap(overlap_rows("r", 0.5), {"r": other}, RAW).bars[0].group == "different families"


def test_the_measure_of_overlap_can_be_chosen():
    history = pd.concat([overlap_rows("r", 0.5), overlap_rows("r", 0.04, measure="same_wrong")])
    drawn = error_overlap(history, {"r": config()}, Choice(overlap="same_wrong"))
    assert [bar.value for bar in drawn.bars] == [0.04] and "same wrong" in drawn.y_title


# ---- groups, table


def test_runs_that_differ_by_seed_and_name_are_one_group_called_after_the_oldest():
    found = groups.grouped({"2": config("b", 1), "1": config("a", 0), "3": config("c", method="ttrl")}, {"1": 4, "2": 0, "3": 1})
    assert [(group.label, group.run_ids) for group in found] == [("a", ("2", "1")), ("c", ("3",))]
    assert found[0].style == palette.style(4)


def test_no_two_lines_of_a_figure_share_a_colour_while_one_is_free():
    # slots 1 and 8 have the second colour: the second group takes the first free one, and keeps its dash
    configs = {"1": config("a"), "2": config("b", method="ttrl"), "3": config("c", method="ground_truth")}
    found = [group.style for group in groups.grouped(configs, {"1": 1, "2": 8, "3": 2})]
    assert [look.color for look in found] == [palette.COLORS[1], palette.COLORS[0], palette.COLORS[2]]
    assert found[1].dash == palette.style(8).dash
    many = {str(number): config(f"r{number}", grpo={"max_steps": number + 1}) for number in range(8)}
    assert len({group.style.color for group in groups.grouped(many, {})}) == 7


def test_equal_names_are_told_apart_by_seed_and_then_by_id():
    found = groups.grouped({"1": config(seed=0), "2": config(seed=1), "3": config(seed=1)}, {}, "none")
    assert [group.label for group in found] == ["demo, seed 0", "demo, 2", "demo, 3"]


def test_a_config_key_groups_and_runs_without_it_are_undefined():
    three = config(models=("tiny:llama", "tiny:qwen2", "tiny:gpt_neox"))
    found = groups.grouped({"1": config(), "2": three}, {}, "agents.2.model")
    assert [group.label for group in found] == ["model = undefined", "model = tiny:gpt_neox"]
    with pytest.raises(FigureError, match="is no config key"):
        groups.grouped({"1": config()}, {}, "grpo.learning_rat")


def test_the_table_has_first_and_last_evaluation_and_the_tail_of_the_pseudo_labels():
    # 20 steps: the last tenth is steps 18 and 19, (0.6 + 0.8) / 2 = 0.7
    labels = [("r", "a", "pseudo_label_accuracy", step, 0.0 if step < 18 else 0.6 + 0.2 * (step - 18)) for step in range(20)]
    evaluated = [("r", "a", "eval/accuracy", 0, 0.5), ("r", "a", "eval/accuracy", 20, 0.75), ("r", "", "eval/agreement", 20, 0.9)]
    history = rows(*labels, *evaluated)
    found = {column.heading: column.values[0].mean for column in table.columns(history, grouped("r"))}
    assert found == {"Base": 0.5, "Final": 0.75, "Pseudo-labels": pytest.approx(0.7), "Agreement": 0.9}


def test_n_counts_the_runs_that_have_values():
    history = rows(("r", "a", "eval/accuracy", 0, 0.5))
    both = [groups.Group("g", ("r", "s"), palette.style(0))]
    assert table.text(history, both).N.tolist() == [1]


def test_a_table_without_evaluations_says_so():
    with pytest.raises(FigureError, match="no evaluation"):
        table.columns(rows(), grouped("r"))
