"""Queue page: slots, what waits and what can be done with it; grids from a form, and what covers them; Add to queue."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from corl_core.config import load_config
from corl_core.runs import grid as grids
from corl_core.runs import grid_runs, queue, queue_dispatch
from corl_core.runs.folder import Run, all_runs, read_status, write_status
from tests.pages.made_runs import make_run, run_config

NASTY = "<img src=x onerror=alert(1)> **b**"


@pytest.fixture(autouse=True)
def woken(monkeypatch) -> list[Path]:
    """No page brings a dispatcher up; the runs folders that it would do so for are listed."""
    seen: list[Path] = []
    monkeypatch.setattr(queue_dispatch, "wake", lambda runs_dir: seen.append(Path(runs_dir)))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return seen


@pytest.fixture
def waiting(tmp_path) -> dict[str, Run]:
    """Three runs in the queue."""
    names = ("a", NASTY, "c")
    base = load_config("demo-pair", ["device=cpu"])
    runs = queue.enqueue_checked([base.model_copy(update={"name": name}) for name in names], tmp_path)
    return dict(zip("abc", runs, strict=True))


def order(runs_dir: Path) -> list[Run]:
    return [waits.run for waits in queue.waiting(runs_dir)]


def no_errors(at) -> bool:
    return not at.exception and not at.error


def test_an_empty_queue_says_how_to_fill_it(app, empty_store, said):
    at = app(empty_store, "queue")
    assert no_errors(at) and "Nothing waits" in said(at) and "6 cells: 6 missing" in said(at).replace("\\", "")


def test_what_waits_is_listed_in_order_and_a_look_wakes_the_dispatcher(app, tmp_path, waiting, said, woken):
    make_run(tmp_path, run_config("live"), "running", 8, logged=False)
    at = app(tmp_path, "queue")
    assert no_errors(at) and "**3 waiting**" in said(at) and tmp_path in woken
    assert "**3 of" in said(at)  # the cohort of three that runs, one slot an agent
    links = [link.proto.label for link in at.get("page_link")]
    assert any("onerror" in label for label in links) and not any("<img" in label.replace("\\<", "") for label in links)
    keys = [button.key for button in at.button if button.key.startswith("queue.up.")]
    assert keys == [f"queue.up.{run.id}" for run in waiting.values()]


def test_a_run_is_moved_and_given_another_priority(app, tmp_path, waiting):
    a, b, c = waiting.values()
    at = app(tmp_path, "queue")
    at.button(key=f"queue.up.{c.id}").click().run()
    assert order(tmp_path) == [a, c, b]
    at.button(key=f"queue.down.{a.id}").click().run()
    assert order(tmp_path) == [c, a, b]
    at.number_input(key=f"queue.priority.{b.id}.0").set_value(7).run()
    assert order(tmp_path) == [b, c, a] and queue.read_entry(b).priority == 7 and no_errors(at)


def test_the_menu_holds_releases_moves_and_cancels(monkeypatch, tmp_path, waiting, woken):
    from pages.components import queue_view

    a, b, c = waiting.values()
    monkeypatch.setenv("CORL_RUNS", str(tmp_path))

    def choose(run: Run, option: str) -> None:
        queue_view.st.session_state["menu"] = option
        queue_view._do(run.id, "menu")

    choose(a, "hold")
    assert queue.read_entry(a).held
    choose(a, "release")
    assert not queue.read_entry(a).held and woken == [tmp_path]
    choose(c, "first")
    choose(a, "last")
    assert order(tmp_path) == [c, b, a]
    choose(c, "cancel")
    assert order(tmp_path) == [b, a] and c.status().state == "stopped"


def test_a_run_that_started_meanwhile_is_told_and_left_alone(app, tmp_path, waiting, said):
    a = waiting["a"]
    at = app(tmp_path, "queue")
    write_status(a.path, replace(read_status(a.path), state="finished"))
    at.button(key=f"queue.down.{a.id}").click().run()
    assert "is finished: only a run that waits" in at.error[0].value.replace("\\", "") and not at.exception


def test_slots_are_set_on_the_page(app, tmp_path):
    queue_dispatch.set_slots(tmp_path, queue_dispatch.Slots(cpu=2))
    at = app(tmp_path, "queue")
    at.number_input(key="slots.cpu.2").set_value(6).run()
    assert queue_dispatch.slots(tmp_path).cpu == 6 and no_errors(at)


def test_a_reader_sees_the_queue_and_cannot_change_it(app, tmp_path, waiting, monkeypatch, said):
    from corl_core import security

    monkeypatch.setenv(security.READ_ONLY, "1")
    at = app(tmp_path, "queue")
    assert "read only" in said(at)
    assert all(button.disabled for button in at.button if button.key and button.key.startswith(("queue.", "grid_queue")))


def test_add_to_queue_queues_exactly_this_config_and_opens_the_queue(app, empty_store, woken):
    at = app(empty_store, "new_run")
    next(widget for widget in at.number_input if widget.key.endswith(".grpo.max_steps")).set_value(7).run()
    at.button(key="add_to_queue").click().run()
    (run,) = all_runs(empty_store)
    assert (run.config.grpo.max_steps, run.status().state) == (7, "queued") and empty_store in woken
    assert at.title[0].value == "Queue" and no_errors(at)


def test_two_clicks_of_one_form_queue_one_run(empty_store, monkeypatch):
    from pages.components import queue_add

    monkeypatch.setenv("CORL_RUNS", str(empty_store))
    first, second = (queue_add.add_once("token of a form to queue", load_config("demo")) for _ in range(2))
    assert first == second and [run.id for run in all_runs(empty_store)] == [first]


def test_a_grid_is_set_up_queued_and_shown_with_links_to_its_runs(app, tmp_path):
    make_run(tmp_path, load_config("demo", ["method=ttrl", "seed=1"]), steps=60, logged=False)
    at = app(tmp_path, "queue")
    at.text_input(key="grid_values.seed").set_value("0, 1").run()
    at.text_input(key="grid_name").set_value("mine").run()
    assert at.button(key="grid_queue").label == "Queue 3 runs"
    at.button(key="grid_queue").click().run()
    assert no_errors(at) and at.selectbox(key="grid").value == "mine"
    assert sum(run.status().state == "queued" for run in all_runs(tmp_path)) == 3
    table = at.table[0].value
    finished = next(run for run in all_runs(tmp_path) if run.status().state == "finished")
    assert f"(run?run={finished.id})" in table.iloc[1, 1] and "Finished" in table.iloc[1, 1]
    assert "Queued" in table.iloc[0, 0] and not [button for button in at.button if button.key == "grid_queue"]


def test_a_grid_in_the_link_is_shown_and_one_that_is_gone_is_told(app, tmp_path, said):
    grid = grids.make(load_config("demo"), {"seed": [0]}, NASTY)
    grid_runs.save(grid, tmp_path)
    at = app(tmp_path, "queue", grid=NASTY)
    assert no_errors(at) and at.selectbox(key="grid").value == NASTY
    at = app(tmp_path, "queue", grid="gone")
    assert "gone" in said(at) and at.selectbox(key="grid").value == "New grid"


def test_impossible_cells_keep_the_button_off_until_they_are_to_be_left_out(app, tmp_path, said):
    at = app(tmp_path, "queue")
    at.multiselect(key="grid_keys").set_value(["method", "vote.num_votes"]).run()
    at.multiselect(key="grid_values.method").set_value(["corl", "ground_truth"]).run()
    at.text_input(key="grid_values.vote.num_votes").set_value("16").run()
    assert "needs no votes" in said(at) and at.button(key="grid_queue").disabled
    at.checkbox(key="grid_skip").check().run()
    at.button(key="grid_queue").click().run()
    assert [run.config.method for run in all_runs(tmp_path)] == ["corl"] and no_errors(at)


@pytest.mark.parametrize(
    ("text", "reason"), [("[1", "not a list of YAML values"), ("", "no values"), ("1, 1", "stands there twice")]
)
def test_values_that_cannot_be_read_are_told_below_the_form(app, tmp_path, said, text, reason):
    at = app(tmp_path, "queue")
    at.text_input(key="grid_values.seed").set_value(text).run()
    assert reason in said(at) and no_errors(at) and not at.table


def test_queued_runs_are_on_the_list_of_runs_without_a_card(app, tmp_path, waiting):
    at = app(tmp_path)
    states = [list(state) for state in at.dataframe[0].value.state]
    assert states == [["queued"]] * 3 and len(at.progress) == 0 and no_errors(at)


def test_the_page_of_a_queued_run_says_that_it_waits_and_nothing_is_in_mlflow(app, tmp_path, waiting, said, finished_store):
    shutil.copy(finished_store / "mlflow.db", tmp_path / "mlflow.db")
    at = app(tmp_path, "run", run=waiting["a"].id)
    assert no_errors(at) and "waiting in the queue" in "".join(bar.proto.text for bar in at.get("progress")).lower()
    assert not (waiting["a"].path / "tracking.json").exists()
