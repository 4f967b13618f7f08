"""Figures: lines worked out by hand, one description drawn twice, and files without a browser."""

import io
import json
import math

import numpy as np
import pandas as pd
import pytest

from corl_core.figures import curves, gaps, lines, palette, ring, thin
from corl_core.figures.compare import Group, compare_curves
from corl_core.figures.export import FORMATS, export, to_table
from corl_core.figures.plotly import to_plotly
from corl_core.figures.spec import Figure, Series

NASTY = "<b>$x_1$</b> & _co"


def table(*rows: tuple) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["run_id", "agent", "metric", "step", "value"])
    return frame.assign(time=0.0)


def figure(*series: Series, bounds=None) -> Figure:
    return Figure("reward", "Reward", "Step", "Reward", series, bounds)


def series(y: list[float], label: str = "a", **more) -> Series:
    return Series(label, np.arange(len(y)), np.array(y, float), palette.style(0), **more)


def test_a_run_line_is_the_mean_over_agents_present_at_each_step():
    history = table(("r", "a", "reward", 0, 0.2), ("r", "b", "reward", 0, 0.4), ("r", "a", "reward", 1, 0.6))
    line = lines.run_lines(history, "reward")
    assert line.step.tolist() == [0, 1]
    assert line.value.tolist() == pytest.approx([0.3, 0.6])


def test_a_held_out_value_counts_once_every_agent_has_it():
    # a is first at step 20; without b its 0.9 would pass for the run's. What is no evaluation is averaged as it comes
    rows = [("r", "a", 0, 0.6), ("r", "b", 0, 0.4), ("r", "a", 20, 0.9), ("s", "a", 20, 0.7)]
    for metric, steps in (("eval/accuracy", [0]), ("reward", [0, 20])):
        history = table(*[(run, agent, metric, step, value) for run, agent, step, value in rows])
        line = lines.run_lines(history, metric)
        assert line[line.run_id == "r"].step.tolist() == steps == lines.by_run(history, metric)["r"].steps.tolist()
        assert line[line.run_id == "s"].value.tolist() == [0.7]  # a run of one agent


def test_a_resume_is_marked_though_no_step_was_written_twice():
    # Stopped after step 2, resumed at 3; held-out values have theirs at the next evaluation
    steps, never = np.array([0, 1, 2, 3, 4]), np.zeros(5, dtype=bool)
    assert np.flatnonzero(lines.with_resume(steps, never, 3)).tolist() == [3]
    assert np.flatnonzero(lines.with_resume(np.array([0, 2, 4]), np.array([False, True, False]), 3)).tolist() == [1, 2]
    assert not lines.with_resume(steps, never, 0).any() and not lines.with_resume(steps, never, 9).any()


def test_a_cohorts_own_value_is_not_averaged_with_its_agents():
    history = table(("r", "", "agreement", 0, 0.9), ("r", "a", "agreement", 0, 0.1))
    assert lines.run_lines(history, "agreement").value.tolist() == [0.9]


def test_smoothing_is_debiased():
    # weight 1/2: y1 = 1; y2 = (1/2*1 + 1*0)/(3/2) = 1/3; y3 = (1/4 + 0 + 1)/(7/4) = 5/7
    smoothed = lines.smooth(pd.Series([1.0, 0.0, 1.0]), 0.5)
    assert smoothed.tolist() == pytest.approx([1, 1 / 3, 5 / 7])


def test_smoothing_keeps_nan_in_its_place():
    # the gap carries no weight: the last value is (1/2*1 + 1*0)/(3/2) = 1/3
    smoothed = lines.smooth(pd.Series([1.0, math.nan, 0.0]), 0.5).tolist()
    assert smoothed[0] == 1 and math.isnan(smoothed[1]) and smoothed[2] == pytest.approx(1 / 3)


def test_no_smoothing_returns_the_values():
    values = pd.Series([0.1, 0.9])
    assert lines.smooth(values, 0.0) is values


def test_seeds_of_unequal_length_say_their_n_as_a_range():
    history = table(("r", "a", "reward", 0, 0.2), ("s", "a", "reward", 0, 0.4), ("r", "a", "reward", 1, 0.5))
    group = Group("corl", ("r", "s"), palette.style(0))
    (line,) = compare_curves(history, "reward", [group]).series
    assert line.label == "corl (N=1–2)"
    assert line.low.tolist() == pytest.approx([0.3 - math.sqrt(0.02), 0.5])
    assert line.high.tolist() == pytest.approx([0.3 + math.sqrt(0.02), 0.5])


def test_a_group_of_one_has_no_band_and_no_n():
    history = table(("r", "a", "reward", 0, 0.2))
    (line,) = compare_curves(history, "reward", [Group("r", ("r",), palette.style(1))]).series
    assert line.label == "r" and line.low is None


def test_members_stand_faint_behind_their_mean_and_out_of_the_legend():
    history = table(("r", "a", "reward", 0, 0.2), ("s", "a", "reward", 0, 0.4))
    group = Group("corl", ("r", "s"), palette.style(0))
    drawn = compare_curves(history, "reward", [group], members=True)
    assert [line.faint for line in drawn.series] == [True, True, False]
    shown = [trace for trace in to_plotly(drawn).data if trace["showlegend"]]
    assert [trace["name"] for trace in shown] == ["corl (N=2)"]


def test_an_agent_keeps_its_colour_whatever_was_logged():
    history = table(("r", "b", "reward", 0, 0.2))
    (line,) = curves.agent_curves(history, "reward", ["a", "b"]).series
    assert line.label == "b" and line.style == palette.style(1)


def test_several_pairs_are_drawn_with_their_mean_and_one_pair_alone():
    one = table(("r", "", "agreement", 0, 0.5), ("r", "", "agreement/a.b", 0, 0.5))
    assert [line.label for line in curves.pair_curves(one, "agreement").series] == ["a and b"]
    two = pd.concat([one, table(("r", "", "agreement/b.c", 0, 0.25))])
    labels = [line.label for line in curves.pair_curves(two, "agreement").series]
    assert labels == [curves.MEAN_LABEL, "a and b", "b and c"]


def test_the_majority_stands_beside_the_single_rollout_in_the_same_colour():
    history = table(("r", "a", "eval/accuracy", 0, 0.6), ("r", "a", "eval/majority_accuracy", 0, 0.7))
    single, majority = curves.accuracy_curves(history, ["a"]).series
    assert single.style.color == majority.style.color and majority.style.dash == "dot"


def test_the_first_28_slots_differ_and_none_is_yellow():
    looks = {(palette.style(slot).color, palette.style(slot).dash) for slot in range(28)}
    assert len(looks) == 28 and "#F0E442" not in palette.COLORS


def test_a_run_keeps_its_slot_when_older_and_newer_runs_come_and_go(tmp_path):
    assert palette.run_slots(tmp_path, ["b", "c"]) == {"b": 0, "c": 1}
    slots = palette.run_slots(tmp_path, ["a", "c"])
    assert slots["c"] == 1 and slots["a"] == 2


def test_a_damaged_slots_file_is_made_anew(tmp_path):
    (tmp_path / palette.SLOTS_FILE).write_text("{")
    assert palette.run_slots(tmp_path, ["a"]) == {"a": 0}


def test_thinning_keeps_the_ends_and_a_spike_of_one_point():
    y = np.zeros(10_000)
    y[4321] = 1.0
    places = thin.kept(np.arange(10_000), y, 400)
    assert len(places) <= 400 and {0, 4321, 9_999} <= set(places.tolist())


def test_a_short_line_is_drawn_whole_without_what_is_not_finite():
    places = thin.kept(np.arange(4), np.array([0.0, math.nan, math.inf, 1.0]))
    assert places.tolist() == [0, 3]


def gapped(**more) -> Series:
    """Steps 0 to 3 and 8 to 10: one apart in the middle, five apart over the gap."""
    return Series("a", np.array([0, 1, 2, 3, 8, 9, 10]), np.arange(7) / 10, palette.style(0), **more)


@pytest.mark.parametrize(
    ("steps", "stretch"),
    [
        ([0, 1, 2, 3, 8, 9, 10], [0, 0, 0, 0, 1, 1, 1]),
        ([0, 1, 4, 5, 6], [0, 0, 0, 0, 0]),  # 3 apart is 3 times the median: still joined
        ([0, 1, 5, 6, 7], [0, 0, 1, 1, 1]),
        ([0, 10, 20, 24], [0, 0, 0, 0]),  # every tenth, and the last
        ([0, 0, 1, 2], [0, 0, 0, 0]),
        ([5], [0]),
        ([], []),
    ],
)
def test_a_line_breaks_where_steps_are_missing(steps, stretch):
    assert gaps.stretches(np.array(steps)).tolist() == stretch


def test_a_line_breaks_at_a_value_that_is_not_finite():
    assert gaps.stretches(np.arange(4), np.array([0.0, 0.1, math.nan, 0.3])).tolist() == [0, 0, 1, 2]


def test_smoothing_starts_over_after_a_gap():
    # weight 1/2: [1, 0] gives 1, 1/3; after the gap again 0, (0 + 1)/(3/2) = 2/3
    steps, values = [0, 1, 2, 10, 11], [1.0, 0.0, 0.0, 0.0, 1.0]
    line = pd.DataFrame({"run_id": "r", "step": steps, "value": values})
    expected = [1, 1 / 3, 1 / 7, 0, 2 / 3]
    assert lines.smooth_line(line, 0.5).tolist() == pytest.approx(expected)


def test_the_screen_breaks_line_raw_line_and_band_over_missing_steps():
    y = np.arange(7) / 10
    band, raw, line = to_plotly(figure(gapped(raw=y, low=y - 1, high=y + 1))).data
    for trace in (raw, line):
        assert trace["x"] == [0, 1, 2, 3, None, 8, 9, 10] and trace["connectgaps"] is False
        assert trace["y"] == [0.0, 0.1, 0.2, 0.3, None, 0.4, 0.5, 0.6]
    assert band["x"] == [0, 1, 2, 3, 3, 2, 1, 0, None, 8, 9, 10, 10, 9, 8]
    assert band["y"][-6:] == [-0.6, -0.5, -0.4, 1.6, 1.5, 1.4]


def test_a_file_breaks_over_missing_steps_and_its_csv_has_real_points_only():
    from matplotlib.figure import Figure as Canvas

    from corl_core.figures.paint import draw_line as _draw_line

    axes = Canvas().subplots()
    _draw_line(axes, gapped(raw=np.zeros(7)))
    for drawn in axes.lines:
        assert np.isnan(drawn.get_ydata()).tolist() == [False] * 4 + [True] + [False] * 3
    assert to_table(figure(gapped())).x.tolist() == [0, 1, 2, 3, 8, 9, 10]
    assert (figure(gapped()).num_points, figure(gapped()).num_lost) == (7, 0)


def test_a_point_between_two_gaps_is_marked_on_the_screen_and_in_files():
    from matplotlib.figure import Figure as Canvas

    from corl_core.figures.paint import draw_line as _draw_line

    steps = np.array([0, 1, 2, 3, 10, 20, 21, 22])  # step 10 has no neighbour within 3
    alone = Series("a", steps, steps / 100, palette.style(0))
    line, mark = to_plotly(figure(alone)).data
    assert line["x"].count(None) == 2 and (mark["mode"], mark["x"], mark["y"]) == ("markers", [10], [0.1])
    assert not mark["showlegend"] and "maxdisplayed" not in mark["marker"]
    axes = Canvas().subplots()
    _draw_line(axes, alone)
    assert axes.lines[0].get_xdata().tolist() == [10]


def test_thinning_keeps_the_gap_and_its_ends():
    x = np.concatenate([np.arange(3_000), np.arange(5_000, 8_000)])
    places = thin.kept(x, np.sin(x / 50), 100)
    assert len(places) <= 100 and {0, 2_999, 3_000, 5_999} <= set(places.tolist())
    trace = to_plotly(figure(Series("a", x, np.sin(x / 50), palette.style(0))), 100).data[0]
    gap = trace["x"].index(None)
    assert trace["x"][gap - 1 : gap + 2] == [2_999, None, 5_000] and trace["x"].count(None) == 1


def test_the_screen_says_how_many_points_it_shows():
    drawn = to_plotly(figure(series([0.0, 1.0] * 1000)), 400)
    assert drawn.note == "399 of 2,000 points"  # the ends, and the lowest and highest of each stretch
    assert to_plotly(figure(series([0.0, 1.0]))).note == ""


def test_a_smoothed_line_keeps_the_spikes_of_its_raw_line():
    raw = np.zeros(5_000)
    raw[777] = 1.0
    trace = to_plotly(figure(series([0.0] * 5_000, raw=raw)), 400).data[0]
    assert max(trace["y"]) == 1.0


def test_plotly_accepts_the_description_and_it_is_json():
    band = series([0.1, 0.2], low=np.array([0.0, 0.1]), high=np.array([0.2, 0.3]), raw=np.array([0.1, 0.3]))
    drawn = to_plotly(figure(band, bounds=(0, 1)))
    json.dumps([drawn.data, drawn.layout], allow_nan=False)
    from plotly.graph_objects import Figure as PlotlyFigure

    assert len(PlotlyFigure(drawn.data, drawn.layout).data) == 3  # band, raw, line


def test_names_are_text_and_never_tags():
    drawn = to_plotly(figure(series([1.0], NASTY)))
    assert drawn.data[0]["name"] == "&lt;b&gt;$x_1$&lt;/b&gt; &amp; _co"
    assert "<b>" not in drawn.data[0]["hovertemplate"]
    assert "<b>" not in ring.ring_plot([NASTY], {})["data"][0]["text"][0]


def test_the_ring_has_an_arrow_from_each_vote_to_whom_it_rewards():
    plot = ring.ring_plot(["a", "b", "c"], {"b": "a", "c": "b", "a": "c"})
    spots = dict(zip("abc", zip(plot["data"][0]["x"], plot["data"][0]["y"], strict=True), strict=True))
    arrows = plot["layout"]["annotations"]
    assert len(arrows) == 3
    tip = (arrows[0]["x"], arrows[0]["y"])  # the first edge: a's vote rewards b
    assert math.dist(tip, spots["b"]) < 0.1 < math.dist(tip, spots["a"])


def test_a_ring_of_one_is_a_loop_and_no_ring_is_no_arrow():
    assert len(ring.ring_plot(["a"], {"a": "a"})["layout"]["shapes"]) == 1
    alone = ring.ring_plot(["a"], {})["layout"]
    assert not alone["shapes"] and not alone["annotations"]


@pytest.mark.parametrize("kind", FORMATS)
def test_every_format_is_written_without_a_browser(kind: str, monkeypatch):
    monkeypatch.setenv("PATH", "")
    content = export(figure(series([0.1, 0.2], NASTY)), kind)
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml", "csv": b"series,x,y"}[kind]
    assert content.startswith(start)


def test_files_have_legend_axis_titles_and_text_on_white():
    svg = export(figure(series([0.1, 0.2], "llama & co")), "svg").decode()
    for text in ("Step", "Reward", "llama &amp; co"):
        assert f">{text}<" in svg
    assert "fill: #ffffff" in svg


def test_a_pdf_embeds_its_fonts_as_truetype():
    assert b"/FontFile2" in export(figure(series([0.1])), "pdf")


def test_a_label_with_a_leading_underscore_or_dollars_is_in_the_legend_as_it_is():
    svg = export(figure(series([0.1, 0.2], "_a $b$")), "svg").decode()
    assert "_a $b$" in svg


def test_the_csv_has_every_point_and_its_band():
    band = series([0.1, 0.2], low=np.array([0.0, 0.1]), high=np.array([0.2, 0.3]), count=np.array([2, 1]))
    read = pd.read_csv(io.BytesIO(export(figure(band), "csv")))
    assert read.columns.tolist() == ["series", "x", "y", "low", "high", "n"]
    assert read.y.tolist() == [0.1, 0.2] and read.n.tolist() == [2, 1]


def test_an_empty_figure_still_exports():
    assert figure().empty and to_table(figure()).empty
    assert export(figure(), "png").startswith(b"\x89PNG")


def test_an_unknown_format_names_the_known_ones():
    with pytest.raises(ValueError, match="png, svg, pdf, csv"):
        export(figure(), "bmp")
