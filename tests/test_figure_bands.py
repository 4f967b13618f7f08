"""Alarms as bands on curves, and the ring's arrows: what is drawn, from numbers worked out by hand."""

import numpy as np
import pandas as pd
import pytest

from corl_core.alarms.record import Alarm
from corl_core.figures.bands import alarm_bands
from corl_core.figures.export import export
from corl_core.figures.palette import style
from corl_core.figures.plotly import to_plotly
from corl_core.figures.ring import own_vote, ring_plot, ring_sentence
from corl_core.figures.ring_values import Reading, ring_readings
from corl_core.figures.spec import Band, Figure, Series


def alarm(kind: str, agent: str, step: int, ended: int | None = None) -> Alarm:
    return Alarm(kind, agent, step, {}, "seen", ended)


def test_agents_of_one_kind_share_a_band_from_the_first_to_the_last_there_is():
    raised = [alarm("parse_drop", "a", 40, 60), alarm("label_lock_in", "a", 9), alarm("label_lock_in", "b", 8)]
    assert alarm_bands(raised, last_step=100) == (
        Band(8, 100, "Label lock-in: a, b"),
        Band(40, 60, "Answers unreadable: a"),
    )


def test_a_band_lasts_while_any_agents_alarm_does_and_never_ends_before_it_begins():
    raised = [alarm("parse_drop", "a", 10, 30), alarm("parse_drop", "b", 20)]
    assert alarm_bands(raised, 50) == (Band(10, 50, "Answers unreadable: a, b"),)
    assert alarm_bands([alarm("parse_drop", "a", 10)], 5)[0].end == 10
    assert alarm_bands([], 50) == ()


def figure(*bands: Band) -> Figure:
    line = Series("<a>", np.arange(5), np.linspace(0, 1, 5), style(0))
    return Figure("f", "Title", "Step", "Value", (line,), bands=bands)


def test_a_band_is_a_pale_ground_below_the_lines_an_edge_and_a_label_that_is_text():
    layout = to_plotly(figure(Band(1, 3, "<b>x</b>"), Band(2, 4, "y"))).layout
    ground, edge = layout["shapes"][:2]
    assert (ground["type"], ground["x0"], ground["x1"], ground["layer"], ground["yref"]) == ("rect", 1, 3, "below", "paper")
    assert 0 < ground["opacity"] < 0.2 and ground["line"]["width"] == 0
    assert (edge["x0"], edge["x1"], edge["line"]["dash"]) == (1, 1, "dash")
    first, second = layout["annotations"]
    assert first["text"] == "&lt;b&gt;x&lt;/b&gt;" and first["y"] > second["y"]  # labels do not cover each other
    assert not {"shapes", "annotations"} & to_plotly(figure()).layout.keys()


def test_exported_files_have_the_bands_too():
    with_band, without = export(figure(Band(1, 3, "lock-in")), "svg"), export(figure(), "svg")
    assert b"lock-in" in with_band and b"lock-in" not in without


def history() -> pd.DataFrame:
    """Agreement of a and b, and the accuracy of b's pseudo-labels, at 40 steps: 0 in the first 15, then 1."""
    rows = []
    for step in range(40):
        value = float(step >= 15)
        rows += [("r", "", "agreement/a.b", step, value, 0.0), ("r", "b", "pseudo_label_accuracy", step, value / 2, 0.0)]
    return pd.DataFrame(rows, columns=["run_id", "agent", "metric", "step", "value", "time"])


def test_readings_are_means_over_the_window_up_to_the_step():
    peers = {"a": "b", "b": "a"}
    # steps 10 to 34: 5 of 25 steps are 0
    readings = ring_readings(history(), peers, 34)
    assert readings == {"a": Reading(0.8, None), "b": Reading(0.8, pytest.approx(0.4))}
    assert ring_readings(history(), peers, 14)["a"] == Reading(0.0, None)
    assert ring_readings(history().iloc[:0], peers, 14) == {}


def test_an_agents_own_vote_has_no_agreement():
    assert ring_readings(history(), {"a": "a", "b": "b"}, 39) == {"b": Reading(None, pytest.approx(0.5))}


def arrows(readings) -> list[dict]:
    plot = ring_plot(["a", "b"], {"a": "b", "b": "a"}, readings)
    return [one for one in plot["layout"]["annotations"] if one["showarrow"]]


def test_an_arrow_is_as_wide_as_agents_agree_and_coloured_by_what_it_carries():
    wrong, right = arrows({"a": Reading(0.0, 0.0), "b": Reading(1.0, 1.0)})
    assert (wrong["arrowwidth"], right["arrowwidth"]) == (1.2, 8.0)
    assert (wrong["arrowcolor"], right["arrowcolor"]) == ("#d55e00", "#2a8fd0")
    assert arrows({"a": Reading(0.5, 0.5), "b": Reading()})[0]["arrowcolor"] == "#999999"
    plain = arrows(None)
    assert [arrow["arrowwidth"] for arrow in plain] == [1.6, 1.6] and not any("arrowcolor" in arrow for arrow in plain)


def test_the_numbers_stand_beside_the_arrow_and_in_the_sentence():
    readings = {"a": Reading(0.914, 0.5), "b": Reading(0.914, None)}
    plot = ring_plot(["a", "b"], {"a": "b", "b": "a"}, readings)
    words = [one["text"] for one in plot["layout"]["annotations"] if not one["showarrow"]]
    assert words == ["91% agree<br>50% right", "91% agree"]
    assert ring_sentence(["a", "b"], {"a": "b", "b": "a"}, readings) == (
        "a is rewarded by b's vote; 91% agree, 50% right. b is rewarded by a's vote; 91% agree."
    )


def test_a_large_cohort_keeps_its_numbers_in_the_hover_text():
    names = [f"n{place}" for place in range(7)]
    peers = {name: names[place - 1] for place, name in enumerate(names)}
    plot = ring_plot(names, peers, {name: Reading(0.5, 0.5) for name in names})
    assert all(one["showarrow"] for one in plot["layout"]["annotations"])
    assert "50% agree, 50% right" in plot["data"][0]["hovertext"][0]


def test_a_loop_says_how_often_an_agents_own_votes_are_right():
    plot = ring_plot(["a"], {"a": "a"}, {"a": Reading(None, 1.0)})
    assert plot["layout"]["shapes"][0]["line"] == {"width": 4.0, "color": "#2a8fd0"}
    assert [one["text"] for one in plot["layout"]["annotations"]] == ["100% right"]


def test_a_teachers_vote_is_not_called_the_agents_own():
    own = own_vote(["teacher"])
    assert ring_sentence(["a"], {"a": "a"}, own=own) == "a is rewarded by its teacher's (its moving average's) vote."
    assert "teacher" in ring_plot(["a"], {"a": "a"}, own=own)["data"][0]["hovertext"][0]
    assert own_vote(["self", "truth", None]) == "its own"


def test_a_long_name_stands_in_lines_beside_its_agent():
    text = ring_plot(["meta-llama-llama-3-2", "b"], {})["data"][0]["text"]
    assert text == ["meta-llama-<br>llama-3-2", "b"]
