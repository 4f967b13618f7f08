"""Comparisons: x axes, centres, differences by seed, ranges, and the numbers of the table, worked out by hand."""

import math

import numpy as np
import pandas as pd
import pytest

from corl_core.figures import curves, ends, grid, paired, palette, settled, thin
from corl_core.figures.compare import Facts, Group, View, compare_curves
from corl_core.figures.plotly import LEGEND_UP_TO, to_plotly
from corl_core.figures.ranges import with_range
from corl_core.figures.spec import Figure, Series


def history(*rows: tuple) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["run_id", "agent", "metric", "step", "value"])
    return frame.assign(time=1000.0 + frame.step, attempt=0)


def group(label: str, *run_ids: str, slot: int = 0) -> Group:
    return Group(label, run_ids, palette.style(slot))


def cohort(run_id: str, agents: str, tokens: int = 100) -> list[tuple]:
    """Two steps of every agent, each of half a second and so many tokens; rewards 0 and 1."""
    rows = []
    for agent in agents:
        for step in (0, 1):
            rows.append((run_id, agent, "reward", step, float(step)))
            rows.append((run_id, agent, "tokens", step, tokens * (step + 1)))
            rows.append((run_id, agent, "step_time_s", step, 0.5))
    return rows


@pytest.mark.parametrize(
    ("axis", "one", "three"),
    [
        ("step", [0, 1], [0, 1]),
        ("questions", [0, 8], [0, 8]),
        ("tokens", [100, 200], [300, 600]),  # summed over agents
        ("compute", [0.5, 1.0], [1.5, 3.0]),
        ("time", [0.5, 1.5], [0.5, 1.5]),  # the first step began half a second before its value was logged
    ],
)
def test_a_cohort_costs_the_sum_of_its_agents(axis, one, three):
    frame = history(*cohort("a", "x"), *cohort("b", "xyz"))
    facts = {run_id: Facts(questions_per_step=8) for run_id in "ab"}
    drawn = compare_curves(frame, "reward", [group("a", "a"), group("b", "b")], view=View(axis=axis, facts=facts))
    assert [line.x.tolist() for line in drawn.series] == [one, three]


def test_a_held_out_value_stands_before_the_step_it_was_measured_at():
    frame = history(*cohort("a", "x"), *[("a", "x", "eval/accuracy", step, 0.5) for step in (0, 1, 2)])
    (line,) = compare_curves(frame, "eval/accuracy", [group("a", "a")], view=View(axis="tokens")).series
    assert line.x.tolist() == [0, 100, 200]


def test_a_run_without_the_cost_is_left_out_and_said():
    frame = history(*cohort("a", "x"), ("b", "x", "reward", 0, 0.5))
    drawn = compare_curves(frame, "reward", [group("a", "a"), group("b", "b")], view=View(axis="tokens"))
    assert len(drawn.series) == 1 and drawn.notes == ("1 of 2 runs logged no tokens and are not shown.",)


def test_on_a_cost_axis_a_run_counts_from_its_first_value_to_its_last():
    # a: 0 → 0, 2 → 1; b: 1 → 0, 4 → 0.3. At 1: a is 0.5; at 2: b is 0.1; at 4: a has ended
    whole = np.zeros(2, dtype=int)
    lines = [(np.array([0, 2]), np.array([0.0, 1.0]), whole), (np.array([1, 4]), np.array([0.0, 0.3]), whole)]
    places, values = grid.aligned(lines, False)
    assert places.tolist() == [0, 1, 2, 4]
    assert np.nan_to_num(values, nan=-1).tolist() == [pytest.approx(row) for row in ([0, -1], [0.5, 0], [1, 0.1], [-1, 0.3])]


def timed(run_id: str, *points: tuple[int, float]) -> list[tuple]:
    """A run of one agent with a reward at each (step, time)."""
    rows = [(run_id, "x", "reward", step, 0.5, time, 0) for step, time in points]
    return rows + [(run_id, "x", "step_time_s", step, 1.0, time, 0) for step, time in points]


def drawn_in_one(figure: Figure) -> bool:
    """Whether no line of a figure is broken: a break is a NaN, which JSON writes as None."""
    lines = [trace for trace in to_plotly(figure).data if trace["mode"] == "lines+markers"]
    return bool(lines) and all(value is not None and not np.isnan(value) for trace in lines for value in trace["y"])


def test_a_pause_between_steps_is_no_gap_on_the_time_axis():
    # Steps of one second, and ten seconds of evaluation after step 2: on the time axis its neighbours are far apart
    frame = timed_history(timed("r", (0, 1.0), (1, 2.0), (2, 3.0), (3, 14.0), (4, 15.0)))
    assert drawn_in_one(compare_curves(frame, "reward", [group("r", "r")], view=View(axis="time")))


def test_seeds_at_nearly_the_same_cost_are_one_line():
    # Positions 1 1.1 2 2.1 3 3.1 4 4.1: the tiny distances are no measure of what is far apart
    frame = timed_history(timed("r", *[(s, 1.0 + s) for s in range(4)]), timed("s", *[(s, 1.1 + 1.01 * s) for s in range(4)]))
    view = View(axis="time", facts={"r": Facts(seed=0), "s": Facts(seed=1)})
    (line,) = compare_curves(frame, "reward", [group("g", "r", "s")], view=view).series
    assert len(line.x) == 8 - 1 and line.stretch.tolist() == [0] * 7  # both begin at 1.0 after their own first value
    assert drawn_in_one(compare_curves(frame, "reward", [group("g", "r", "s")], members=True, view=view))


def test_steps_that_are_missing_break_a_line_on_any_axis():
    # Nothing of steps 3 to 7 in either run
    points = [(s, float(s)) for s in (0, 1, 2, 8, 9)]
    frame = timed_history(timed("r", *points), timed("s", *points))
    for axis in ("step", "time"):
        for ids in (("r",), ("r", "s")):
            assert not drawn_in_one(compare_curves(frame, "reward", [group("g", *ids)], view=View(axis=axis)))


def timed_history(*runs: list[tuple]) -> pd.DataFrame:
    columns = ["run_id", "agent", "metric", "step", "value", "time", "attempt"]
    return pd.DataFrame([row for rows in runs for row in rows], columns=columns)


def test_seeds_of_unequal_length_are_said():
    frame = history(("r", "a", "reward", 0, 0.2), ("s", "a", "reward", 0, 0.4), ("r", "a", "reward", 7, 0.6))
    drawn = compare_curves(frame, "reward", [group("corl", "r", "s")])
    assert drawn.notes == ("corl: runs end between step 0 and 7; each point averages those that reached it.",)


def test_a_seed_that_diverged_is_marked_and_the_mean_is_of_the_others():
    frame = history(("r", "a", "reward", 0, 0.2), ("s", "a", "reward", 0, math.inf), ("t", "a", "reward", 0, 0.4))
    (line,) = compare_curves(frame, "reward", [group("g", "r", "s", "t")]).series
    assert line.y.tolist() == pytest.approx([0.3]) and line.label == "g (N=2)"
    drawn = to_plotly(Figure("f", "F", "Step", "Y", (line,)))
    mark = next(trace for trace in drawn.data if trace.get("yaxis") == "y2")
    assert mark["text"] == ["+∞"] and mark["y"][0] > 0.9 and "yaxis2" in drawn.layout


def test_an_agent_that_diverged_is_not_averaged_away():
    frame = history(("r", "a", "reward", 0, 0.2), ("r", "b", "reward", 0, math.nan))
    drawn = compare_curves(frame, "reward", [group("r", "r")])
    assert drawn.num_lost == 1 and drawn.empty


def test_a_resume_is_marked_at_the_first_step_after_it():
    frame = history(*[("r", "a", "reward", step, 0.1 * step) for step in range(4)]).assign(attempt=[0, 0, 1, 1])
    drawn = to_plotly(compare_curves(frame, "reward", [group("r", "r")]))
    mark = next(trace for trace in drawn.data if "resumed" in trace.get("hovertemplate", ""))
    assert mark["x"] == [2] and mark["y"] == [0.2]


def test_a_resume_is_marked_on_the_curves_of_one_run_too():
    frame = history(*[("r", "a", "reward", step, 0.1 * step) for step in range(3)]).assign(attempt=[0, 1, 1])
    (line,) = curves.agent_curves(frame, "reward", ["a"]).series
    assert line.resumed.tolist() == [1]


def paired_history() -> pd.DataFrame:
    # seed 0: 0.5 against 0.3, seed 1: 0.9 against 0.5, seed 2 has no partner
    values = {"a0": 0.5, "a1": 0.9, "a2": 0.1, "b0": 0.3, "b1": 0.5}
    return history(*[(run_id, "x", "reward", 0, value) for run_id, value in values.items()])


FACTS = {run_id: Facts(seed=int(run_id[1])) for run_id in ("a0", "a1", "a2", "b0", "b1")}
PAIR = [group("a", "a0", "a1", "a2"), group("b", "b0", "b1", slot=1)]


def test_a_difference_is_by_seed_and_names_the_seed_without_a_partner():
    drawn = paired.difference_curves(paired_history(), "reward", PAIR, PAIR[1], 0.0, View(facts=FACTS))
    (line,) = drawn.series
    assert line.label == "a − b (N=2)" and line.y.tolist() == pytest.approx([0.3])  # (0.2 + 0.4) / 2
    assert line.high[0] - line.y[0] == pytest.approx(math.sqrt(0.02)) and drawn.zero
    assert drawn.notes == ("a: without a partner in b: seed 2.",)


def test_the_interval_of_a_difference_is_students():
    # differences 0.2 and 0.4: std sqrt(0.02), over sqrt(2) is 0.1; t(0.975, 1) = 12.706
    found = paired.at_the_end({0: 0.5, 1: 0.9, 2: 0.1}, {0: 0.3, 1: 0.5})
    assert (found.mean, found.n) == (pytest.approx(0.3), 2) and found.half == pytest.approx(1.2706, abs=1e-4)
    assert paired.at_the_end({0: 0.5}, {0: 0.3}).half is None
    assert paired.at_the_end({0: 0.5}, {1: 0.3}) is None


def test_the_table_has_final_and_best_values_with_their_spread_and_the_paired_difference():
    frame = pd.concat([paired_history(), history(("a0", "x", "reward", 1, 0.4), ("b0", "x", "reward", 1, 0.6))])
    table = ends.summary(frame, ["reward"], PAIR, PAIR[1], FACTS).set_index("Run")
    assert table.loc["a", "Best"] == pytest.approx(0.5) and table.loc["a", "Final"] == pytest.approx(1.4 / 3)
    assert table.loc["b", "± final"] == pytest.approx(math.sqrt(0.005))  # 0.6 and 0.5
    assert table.loc["a", "Difference"] == pytest.approx(0.1) and table.loc["a", "Pairs"] == 2  # (-0.2 + 0.4) / 2


def test_a_pair_of_unequal_length_is_compared_at_the_last_step_that_both_have():
    frame = pd.concat([paired_history(), history(("a0", "x", "reward", 9, 0.0))])  # a0 went on and collapsed; b0 had ended
    table = ends.summary(frame, ["reward"], PAIR, PAIR[1], FACTS).set_index("Run")
    assert table.loc["a", "Difference"] == pytest.approx(0.3)  # (0.2 + 0.4) / 2, as at step 0


def test_the_baseline_has_no_difference_from_itself():
    table = ends.summary(paired_history(), ["reward"], PAIR, PAIR[1], FACTS).set_index("Run")
    assert math.isnan(table.loc["b", "Difference"])


def test_the_best_of_an_error_is_its_lowest():
    frame = history(("r", "", "error_overlap/kappa", 0, 0.5), ("r", "", "error_overlap/kappa", 1, 0.2))
    assert ends.ends(frame, "error_overlap/kappa").best == {"r": 0.2}


def test_latex_has_the_final_values_with_the_best_accuracy_bold():
    frame = paired_history().assign(metric="pseudo_label_accuracy")
    text = ends.results_tex(frame, ["pseudo_label_accuracy"], PAIR).decode()
    assert r"\textbf{0.500 $\pm$ 0.400}" in text and "0.400 $\\pm$ 0.141" in text


def line_of(y, **more) -> Figure:
    values = np.array(y, dtype=float)
    return Figure("f", "F", "Step", "Y", (Series("a", np.arange(len(y)), values, palette.style(0), **more),), (0, 1))


def test_a_robust_range_says_what_it_hides():
    drawn = with_range(line_of([*np.linspace(0, 1, 200), 1e6]), False, True)
    assert drawn.y_range[1] < 2 and drawn.bounds is None
    assert drawn.notes == ("1 of 201 points lie outside the range shown, from 1e+06 to 1e+06.",)


def test_a_log_axis_says_what_has_no_place_on_it():
    drawn = with_range(line_of([0.0, 0.1, 1.0, -1.0]), True, False)
    assert drawn.notes == ("2 of 4 points are zero or negative and have no place on a log axis.",)
    assert to_plotly(drawn).layout["yaxis"]["type"] == "log"


def test_every_spike_is_there_at_every_zoom():
    y = np.zeros(50_000)
    spikes = np.arange(777, 50_000, 2503)
    y[spikes] = 1.0
    whole = thin.kept(np.arange(50_000), y)
    assert len(whole) <= thin.MAX_POINTS and set(spikes) <= set(whole.tolist())
    for view in ((0, 5000), (700, 800), (49_000, 60_000)):
        places = thin.kept(np.arange(50_000), y, view=view)
        inside = spikes[(spikes >= view[0]) & (spikes <= view[1])]
        assert set(inside) <= set(places.tolist()) and len(places) <= thin.MAX_POINTS + 2 * thin.ASIDE
    near = thin.kept(np.arange(50_000), y, view=(700, 800))
    assert set(range(700, 801)) <= set(near.tolist())  # so near, every point is drawn


def test_zooming_says_how_many_points_in_view_are_shown():
    figure = line_of([0.0, 1.0] * 25_000)
    assert to_plotly(figure).note == "1,199 of 50,000 points"
    assert to_plotly(figure, view=(100, 199)).note == ""
    assert to_plotly(figure, view=(0, 9_999)).note == "1,199 of 10,000 points in view"


def test_what_is_settled_stays_the_same_when_points_follow():
    values = np.sin(np.arange(5000) / 50)
    limit = settled.border(line_of(values[:4000]))
    assert limit == 3999
    before = [settled.split(to_plotly(line_of(values[:end]), settled=limit).data, limit) for end in (4010, 4100)]
    assert before[0][0] == before[1][0] and len(before[1][1][0]["x"]) == 100
    assert settled.border(line_of(values[:4100]), limit) == limit  # 100 points after the border
    assert settled.border(line_of(values[:4200]), limit) == 4199  # much has come: the border moves on


def test_a_group_keeps_its_colour_when_an_older_run_joins_it(tmp_path):
    assert palette.group_slots(tmp_path, {"g": 3}) == {"g": 3}
    assert palette.group_slots(tmp_path, {"g": 1, "h": 1}) == {"g": 3, "h": 1}
    assert palette.run_slots(tmp_path, ["a"])["a"] == 0  # groups take no run's place


def test_behind_more_lines_than_a_legend_holds_no_raw_values_are_drawn():
    rows = [(f"r{place}", "", "reward", step, 0.1 * step) for place in range(LEGEND_UP_TO + 1) for step in range(4)]
    groups = [group(f"r{place}", f"r{place}") for place in range(LEGEND_UP_TO + 1)]
    few, many = (compare_curves(history(*rows), "reward", groups[:number], smoothing=0.8) for number in (LEGEND_UP_TO, None))
    assert len(to_plotly(few).data) == 2 * LEGEND_UP_TO  # a raw line and a line each
    assert len(to_plotly(many).data) == LEGEND_UP_TO + 1
