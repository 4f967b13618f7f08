"""Theory page: sliders, one-click examples, the cases in which Co-RL hurts, and a run held against the theory."""

import os
import shutil
import time

import psutil
import pytest

from corl_core.runs.folder import Status, all_runs, start_of, write_status
from tests.made_rollouts import made_run, record, small_config
from tests.test_theory_against_run import DRAWS

RUN = "Against a run"


@pytest.fixture
def with_run(empty_store):
    """A runs folder with one run of made rollouts; returns a function that makes it."""

    def make(draws=DRAWS, state="finished", **fields):
        made_run(empty_store, draws, small_config(**fields), state)
        return empty_store

    return make


def ends(chart: dict) -> list[tuple[float, float]]:
    """Where the paths of a plane end."""
    dots = [trace for trace in chart["data"] if trace.get("marker", {}).get("symbol") == ["circle-open", "circle"]]
    return [(dot["x"][-1], dot["y"][-1]) for dot in dots]


def test_the_first_view_shows_both_planes_side_by_side(app, empty_store, charts, said):
    at = app(empty_store, "theory")
    drawn = charts(at)
    assert not at.exception and not at.error
    assert ends(drawn["theory.self"])[0] == pytest.approx((1, 0), abs=0.03)  # .9 and .2, each on its own
    assert ends(drawn["theory.ring"])[0] == pytest.approx((1, 1), abs=0.03)
    assert "generalis" in said(at)


def test_complementary_strengths_are_one_click_away(app, empty_store, charts, said):
    at = app(empty_store, "theory")
    at.slider(key="pa").set_value(0.3)
    at.button(key="theory.Complementary strengths").click().run()
    drawn = charts(at)
    assert (at.slider(key="pa").value, at.slider(key="pb").value, at.toggle(key="mirror").value) == (0.9, 0.2, True)
    assert len(ends(drawn["theory.ring"])) == 2 and all(min(end) > 0.97 for end in ends(drawn["theory.ring"]))
    assert "0.55 → **0.50**" in said(at) and "0.55 → **0.99**" in said(at)


def test_where_co_rl_hurts_is_said_plainly(app, empty_store, charts, said):
    at = app(empty_store, "theory")
    at.button(key="theory.Co-RL hurts").click().run()
    drawn = charts(at)
    assert ends(drawn["theory.self"])[0][0] > 0.97 and max(ends(drawn["theory.ring"])[0]) < 0.03
    table = at.dataframe[0].value
    assert table["So"].tolist() == ["Co-RL helps", "no difference", "no difference", "Co-RL hurts"]
    assert table["After Co-RL"].round(3).tolist() == [0.757, 0.5, 0.5, 0.243]
    assert "Co-RL hurts" in said(at)


def test_a_weak_peer_takes_a_ring_of_three_down(app, empty_store, charts):
    at = app(empty_store, "theory")
    at.button(key="theory.Weak peer in a ring").click().run()
    assert not at.exception and max(ends(charts(at)["theory.ring"])[0]) < 0.05
    assert at.slider(key="rest").value == 0.898
    kinds = [trace["type"] for trace in charts(at)["theory.ring"]["data"]]
    assert "heatmap" in kinds  # a longer ring has no separatrix


def test_settings_come_from_the_link_and_nonsense_falls_back(app, empty_store, charts):
    at = app(empty_store, "theory", pa="0.2", pb="0.81", k="11", case="Both favour the same wrong answer", beside="True answers")
    drawn = charts(at)
    assert ends(drawn["theory.ring"])[0] == pytest.approx((1, 1), abs=0.05) and "theory.ground_truth" in drawn
    truth = next(trace for trace in drawn["theory.answers.ring"]["data"] if trace["name"] == "A: truth")
    assert truth["y"][-1] < 0.03
    at = app(empty_store, "theory", pa="nonsense", k="1000", view="?", case="")
    assert not at.exception and not at.error and charts(at)


def test_two_wrong_modes_that_differ_find_the_truth_together(app, empty_store, charts):
    drawn = charts(app(empty_store, "theory"))
    last = {kind: drawn[f"theory.answers.{kind}"]["data"][0]["y"][-1] for kind in ("self", "ring")}
    assert last["self"] < 0.03 and last["ring"] > 0.97


@pytest.mark.parametrize("beside", ["Own votes (TTRL)", "A slow copy's votes", "True answers"])
def test_a_sampled_run_is_drawn_beside_its_mean(app, empty_store, charts, beside):
    at = app(empty_store, "theory", noisy="true", mirror="true", n="3", beside=beside)
    names = [trace.get("name") for trace in charts(at)["theory.ring"]["data"]]
    assert not at.exception and names.count("sampled") == 2


def test_without_runs_the_second_view_points_to_new_run(app, empty_store, said):
    at = app(empty_store, "theory", view=RUN)
    assert "no run yet" in said(at) and not at.exception


def test_a_run_is_held_against_the_theory(app, with_run, charts, said):
    at = app(with_run(), "theory", view=RUN)
    drawn = charts(at)
    assert not at.exception and not at.error
    metrics = {metric.label: metric.value for metric in at.metric}
    # first visits .75 .5 .5 .25, last ones 1 1 0 .25; one of two questions starts above the antidiagonal
    assert metrics["At the start"] == "0.500" and metrics["Measured in the end"] == "0.562"
    assert metrics["On the right side"] == "0.500"
    legend = [trace["name"] for trace in drawn["theory.paths"]["data"] if trace.get("showlegend")]
    assert legend == ["both right at the end (1)", "both wrong at the end (1)"]
    assert drawn["theory.calibration"]["data"] and "Only 2 questions" in said(at)


def test_a_run_without_truth_or_of_another_method_is_a_sentence(app, with_run, said, empty_store):
    untold = [draw | {"truth": None} for draw in DRAWS]
    at = app(with_run(untold), "theory", view=RUN)
    assert "no true answers" in said(at) and not at.exception
    shutil.rmtree(next(empty_store.glob("*-small-*")))
    at = app(with_run(method="rent"), "theory", view=RUN)
    assert "somewhere else" in said(at) and not at.exception


def test_a_run_under_way_can_be_looked_at_again(app, with_run, said):
    at = app(with_run([], state="starting"), "theory", view=RUN)
    assert not at.exception and "saved" in said(at)


def test_a_run_under_way_shows_the_paths_and_the_forecast_of_what_it_has_saved(app, with_run, charts, said):
    runs_dir = with_run(state="running")
    (run,) = all_runs(runs_dir)
    me = {"pid": os.getpid(), "pid_created": start_of(psutil.Process())}
    write_status(run.path, Status("running", time.time(), heartbeat=time.time(), step=4, max_steps=100, **me))
    at = app(runs_dir, "theory", view=RUN)
    drawn = charts(at)
    assert run.status().state == "running" and not at.exception and not at.error
    assert "The run goes on" in said(at) and [button for button in at.button if button.label == "Look again"]
    metrics = {metric.label: metric.value for metric in at.metric}
    assert metrics["At the start"] == "0.500" and metrics["Measured in the end"] == "0.562"  # as of the finished run
    assert 0 < float(metrics["Predicted in the end"]) < 1
    legend = [trace["name"] for trace in drawn["theory.paths"]["data"] if trace.get("showlegend")]
    assert legend == ["both right at the end (1)", "both wrong at the end (1)"] and drawn["theory.calibration"]["data"]

    late = [{"step": 60 + step, "id": "q1", "truth": "3", "a": ("3 3 3 3", "3"), "b": ("3 3 3 3", "3")} for step in range(2)]
    for agent in "ab":
        record(run, agent, [*DRAWS, *late], resume=0)
    next(button for button in at.button if button.label == "Look again").click().run()
    legend = [trace["name"] for trace in charts(at)["theory.paths"]["data"] if trace.get("showlegend")]
    assert legend == ["both right at the end (2)"] and not at.exception


def test_a_link_to_a_run_that_is_gone_says_so(app, with_run, said):
    at = app(with_run(), "theory", view=RUN, run="20200101-gone")
    assert not at.exception and "gone" in said(at)


def test_a_setting_that_moves_draws_the_charts_alone(app, empty_store, charts):
    at = app(empty_store, "theory")
    before = charts(at)
    at.slider(key="pb").set_value(0.3).run()
    after = charts(at)
    changed = {key for key in after if after[key]["stamp"] != before[key]["stamp"]}
    assert changed == {"theory.self", "theory.ring", "theory.over_time"}  # the other cases have their own starts
    assert all(chart["canvas"] for chart in after.values())
