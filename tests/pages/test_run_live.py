"""Run page: alarms in words and as bands, the ring with its slider, speed; what is absent leaves no trace."""

import shutil
from dataclasses import asdict, replace
from time import time

import pandas as pd
import pytest

from corl_core.alarms.record import Alarm
from corl_core.runs.folder import Run, read_status, write_status
from corl_core.runs.journal import Journal
from pages.components import data
from pages.components.text import moment
from tests.pages.made_runs import make_run, run_config

LOCKED = Alarm("label_lock_in", "llama", 8, {"doubt": 0.2}, "llama is <b>sure</b> of *wrong* votes.")
OVER = Alarm("parse_drop", "qwen2", 10, {"parse_rate": 0.1}, "unreadable", ended=14)


@pytest.fixture
def store(tmp_path, finished_store):
    """A runs folder without runs, whose metrics store has its tables already."""
    shutil.copy(finished_store / "mlflow.db", tmp_path / "mlflow.db")
    return tmp_path


def with_alarms(run: Run, *alarms: Alarm) -> Run:
    write_status(run.path, replace(read_status(run.path), alarms=[asdict(alarm) for alarm in alarms]))
    return run


def test_a_run_without_alarms_says_nothing_of_them(app, finished_store, charts, said):
    at = app(finished_store, "run")
    assert "since step" not in said(at) and "shapes" not in charts(at)["curve.agreement"]["layout"]


def test_alarms_are_told_in_words_and_drawn_as_bands_on_every_curve(app, tmp_path, make_finished, charts, said):
    with_alarms(make_finished(tmp_path), LOCKED, OVER)
    at = app(tmp_path, "run")
    assert not at.exception
    text = said(at)
    assert "since step 8" in text and "since step 10, over" in text and "told to stop" not in text
    assert r"Step 8\: llama is \<b\>sure\</b\> of \*wrong\* votes" in text  # plain text, whatever it holds
    for key in ("curve.accuracy", "curve.agreement", "curve.reward_std"):
        layout = charts(at)[key]["layout"]
        spans = [(shape["x0"], shape["x1"]) for shape in layout["shapes"] if shape["type"] == "rect"]
        assert spans == [(8, 20), (10, 14)]  # the run has 20 steps
        assert [one["text"] for one in layout["annotations"]] == ["Label lock-in: llama", "Answers unreadable: qwen2"]


def test_the_ring_shows_agreement_and_accuracy_and_goes_back_in_steps(app, finished_store, charts, said):
    at = app(finished_store, "run", run=sorted(path.name for path in finished_store.iterdir() if "demo-0000" in path.name)[0])
    ring = charts(at)["run.ring"]
    arrows = [one for one in ring["layout"]["annotations"] if one["showarrow"]]
    assert len(arrows) == 3 and all(1.2 <= arrow["arrowwidth"] <= 8 and arrow["arrowcolor"][0] == "#" for arrow in arrows)
    assert "% agree" in ring["alt"] and "% right" in ring["alt"]
    assert "Steps 0 to 19, the newest" in said(at)
    at.slider(key="ring_step").set_value(5).run()
    assert "Steps 0 to 4" in said(at) and not at.exception
    assert charts(at)["run.ring"]["alt"] != ring["alt"]


def test_a_run_without_votes_has_no_ring(app, store, charts):
    make_run(store, run_config(method="ground_truth"), logged=False)
    at = app(store, "run")
    assert "run.ring" not in charts(at) and not at.exception


def test_a_self_labelled_run_shows_loops(app, finished_store, charts):
    run_id = next(path.name for path in finished_store.iterdir() if "demo-ttrl" in path.name)
    at = app(finished_store, "run", run=run_id)
    loops = charts(at)["run.ring"]["layout"]["shapes"]
    assert len(loops) == 3 and all(loop["line"]["color"][0] == "#" for loop in loops)


def test_a_run_of_one_step_has_a_ring_without_a_slider(app, store, charts):
    make_run(store, run_config("one step", steps=1))
    at = app(store, "run")
    assert "run.ring" in charts(at) and not at.slider and not at.exception


def test_a_ring_waits_for_its_first_votes(app, partial_store, charts, said):
    run_id = next(path.name for path in partial_store.iterdir() if "fresh" in path.name)
    at = app(partial_store, "run", run=run_id)
    assert "The ring shows here as soon as" in said(at) and not at.exception


@pytest.mark.parametrize(("steps_per_s", "words"), [(4.0, "4 steps/s and 1,200 tokens/s"), (0.2, "5 s a step and 60 tokens/s")])
def test_a_run_under_way_tells_its_pace(app, store, said, steps_per_s, words):
    run = make_run(store, run_config(), "running", 0, 0, logged=False)
    for agent in run.config.agents:  # 100 tokens a step each, 3 agents
        path = run.agent_path(agent.name) / "journal.jsonl"
        path.unlink()
        lines = [{"time": time() + n / steps_per_s, "step": n, "metrics": {"tokens": 100 * n}} for n in range(5)]
        journal = Journal(path)
        for line in lines:
            journal.write("step", **line)
    at = app(store, "run")
    assert words in said(at).replace("\\", "") and not at.exception


def test_a_finished_run_tells_its_mean_pace(app, finished_store, said):
    assert "1 step/s on average, evaluations included" in said(app(finished_store, "run"))  # 20 steps in 20 s


def test_a_resumed_run_tells_the_pace_of_its_last_attempt_and_marks_where_it_went_on(app, tmp_path, make_finished, charts, said):
    run = make_finished(tmp_path, "resumed")
    write_status(run.path, replace(read_status(run.path), attempt=2, attempt_step=10))  # 10 of its 20 steps in 20 s
    at = app(tmp_path, "run")
    assert "0.5 steps/s on average" in said(at)
    assert "the last 10 since it was resumed in 20 s" in at.progress[0].text
    resumed = [trace for trace in charts(at)["curve.reward_std"]["data"] if "resumed" in trace.get("hovertemplate", "")]
    assert [trace["x"] for trace in resumed] == [[10], [10], [10]]  # each agent's line


def test_a_status_that_cannot_be_read_leaves_the_ring_its_steps(app, tmp_path, make_finished, said):
    run = make_finished(tmp_path)
    (run.path / "status.json").write_text("{")
    at = app(tmp_path, "run")
    assert "Steps 0 to 19, the newest" in said(at) and not at.exception


def test_a_resumed_run_tells_its_first_start_and_when_it_went_on(app, tmp_path, make_finished, said):
    run = make_finished(tmp_path)
    first = read_status(run.path).started
    write_status(run.path, replace(read_status(run.path), attempt=2, attempt_step=10, started=first + 3600, first_started=first))
    text = said(app(tmp_path, "run")).replace("\\", "")
    assert f"Started {moment(first)}. Resumed at step 10, {moment(first + 3600)}" in text


def test_what_was_read_before_a_run_ended_does_not_stand_for_its_end(monkeypatch):
    """A page that draws a finished run does so once: values that are a second old would lack its last steps for good."""
    reads = []
    monkeypatch.setattr(data.reader, "history", lambda uri, ids, keys: reads.append(ids) or pd.DataFrame())
    for _ in range(2):
        data.history(["just-ended"], ["agreement"])
    assert len(reads) == 1
    for is_untold in (True, False):
        data.history(["just-ended"], ["agreement"], (5.0, is_untold))
    assert len(reads) == 3
