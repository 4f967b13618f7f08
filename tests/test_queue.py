"""The queue: order, slots, and what a person may do with it."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from corl_core.cli import main
from corl_core.runs import launch, queue, queue_dispatch
from corl_core.runs.folder import find_run, read_status, write_status
from corl_core.runs.launch import LaunchError
from corl_core.runs.queue import Entry
from corl_core.runs.queue_slots import Free, Need, Slots, need, visible_gpus
from tests.fake_queue import add, config


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


def order(runs_dir: Path) -> list[str]:
    return [waits.run.config.name for waits in queue.waiting(runs_dir)]


def test_a_queued_run_waits_without_a_process_and_is_honest_for_ever(tmp_path):
    (run,) = add(tmp_path, "a")
    claim = read_status(run.path)
    write_status(run.path, replace(claim, created=claim.created - 10 * 86_400))
    assert (run.status().state, run.status().pid, run.status().final) == ("queued", None, False)
    with pytest.raises(LaunchError, match="still queued: stop it first"):
        launch.delete(run)
    with pytest.raises(LaunchError, match="is queued"):
        launch.resume(run)


def test_the_first_added_goes_first_and_a_higher_priority_before_it(tmp_path):
    add(tmp_path, "a", "b")
    add(tmp_path, "urgent", priority=5)
    add(tmp_path, "later", priority=-1)
    add(tmp_path, "c")
    assert order(tmp_path) == ["urgent", "a", "b", "c", "later"]


def test_a_clock_set_back_does_not_let_a_run_jump_the_queue(tmp_path, monkeypatch):
    add(tmp_path, "a")
    monkeypatch.setattr(queue.time, "time", lambda: 1000.0)
    add(tmp_path, "b")
    assert order(tmp_path) == ["a", "b"]


def test_a_run_moves_one_place_or_to_an_end_and_takes_the_priority_it_lands_in(tmp_path):
    a, b, c = add(tmp_path, "a", "b", "c")
    (urgent,) = add(tmp_path, "urgent", priority=5)
    queue.move(b, "up")
    assert order(tmp_path) == ["urgent", "b", "a", "c"] and queue.read_entry(b).priority == 0
    queue.move(c, "first")
    assert order(tmp_path) == ["c", "urgent", "b", "a"] and queue.read_entry(c).priority == 5
    queue.move(urgent, "last")
    assert order(tmp_path) == ["c", "b", "a", "urgent"] and queue.read_entry(urgent).priority == 0
    queue.move(urgent, "down")  # it is the last already
    queue.move(a, "down")
    assert order(tmp_path) == ["c", "b", "urgent", "a"]
    queue.prioritise(a, 7)
    assert order(tmp_path) == ["a", "c", "b", "urgent"]


def test_a_damaged_or_missing_place_is_the_order_of_making(tmp_path):
    a, b, _ = add(tmp_path, "a", "b", "c")
    (a.path / "queue.json").unlink()
    (b.path / "queue.json").write_text('{"place": 1')
    assert sorted(order(tmp_path)) == ["a", "b", "c"] and queue.read_entry(b) == Entry(read_status(b.path).created)


def test_a_cancelled_run_is_stopped_and_leaves_the_queue(tmp_path):
    a, b = add(tmp_path, "a", "b")
    assert queue.cancel(a) and not queue.cancel(a)
    assert (a.status().state, a.status().reason) == ("stopped", "cancelled before it started")
    launch.stop(b)  # what the Stop button and `stop` do
    assert b.status().state == "stopped" and order(tmp_path) == []
    launch.delete(a)


@pytest.mark.parametrize("act", [queue.hold, lambda run: queue.move(run, "up"), lambda run: queue.prioritise(run, 1)])
def test_only_a_run_that_waits_can_be_moved_or_held(act, tmp_path):
    run = launch.create(config(), tmp_path)
    with pytest.raises(LaunchError, match="is starting: only a run that waits"):
        act(run)


def test_a_priority_out_of_range_is_refused_before_anything_is_made(tmp_path):
    with pytest.raises(LaunchError, match="priority 5000 is out of range"):
        queue.enqueue(config(), tmp_path, 5000)
    assert list(tmp_path.iterdir()) == []


def test_a_slot_is_a_core_and_a_cohort_takes_one_for_each_thread():
    assert need(config(), []) == Need(cores=2)
    assert need(config("run", "threads_per_agent=3"), ["0"]) == Need(cores=6)
    assert need(config("run", "device=auto"), ["0"]).num_places == 2
    assert need(config("run", "device=cuda"), []) == Need(cores=2)  # it starts, and fails with its own reason


def test_what_fits_starts_and_what_asks_for_more_than_there_is_starts_alone():
    free = Free(Slots(cpu=4), [], [Need(cores=2)])
    assert free.take(Need(cores=3)) is None
    assert free.take(Need(cores=2)) == Need(cores=2) and free.cores_used == 4
    assert Free(Slots(cpu=4), [], [Need(cores=1)]).take(Need(cores=9)) is None
    assert Free(Slots(cpu=4), [], []).take(Need(cores=9)) == Need(cores=9)


def test_agents_that_ray_places_take_nothing_and_wait_for_nothing():
    assert need(config("run", "launcher=ray"), ["0"]) == Need()
    full = Free(Slots(cpu=4), [], [Need(cores=9)])  # a run that asked for more than there is
    assert full.take(need(config("run", "launcher=ray"), [])) == Need() and full.cores_used == 9


def test_each_gpu_has_its_own_places_and_the_emptiest_is_taken():
    two = Need(places={"a": (None,), "b": (None,)})
    free = Free(Slots(gpu=4), ["0", "3"], [Need(places={"a": ("0",), "b": ("0",)})])
    assert [free.take(two).gpus for _ in range(3)] == [["3"], ["0", "3"], ["0", "3"]]
    assert free.take(two) is None and free.agents_on == {"0": 4, "3": 4}


def test_gpus_are_those_that_cuda_may_see(monkeypatch, tmp_path):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 5")
    assert visible_gpus(tmp_path) == ["2", "5"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert visible_gpus(tmp_path) == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible_gpus(tmp_path) == ["0", "1"]


@pytest.fixture
def asleep(monkeypatch):
    """No command brings a dispatcher up."""
    monkeypatch.setattr(queue_dispatch, "wake", lambda runs_dir: None)


def queue_command(runs_dir: Path, capsys, *arguments: str):
    assert main(["queue", *arguments, "--json", "--runs", str(runs_dir)]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_verbs_do_what_the_page_does(tmp_path, capsys, asleep):
    def ids() -> list[str]:
        return [row["id"] for row in queue_command(tmp_path, capsys)["waiting"]]

    first, second = (queue_command(tmp_path, capsys, "add", "demo-pair", "--set", f"seed={seed}")["id"] for seed in (1, 2))
    third = queue_command(tmp_path, capsys, "add", "demo", "--priority", "3", "--hold")["id"]
    assert ids() == [third, first, second] and find_run(tmp_path, second).config.seed == 2
    assert queue_command(tmp_path, capsys, "list")["waiting"][0]["held"]
    assert queue_command(tmp_path, capsys, "release", third) == {"id": third, "held": False}
    assert queue_command(tmp_path, capsys, "move", second, "up") == {"id": second, "place": 2}
    assert queue_command(tmp_path, capsys, "move", first, "--priority", "9") == {"id": first, "place": 1}
    assert queue_command(tmp_path, capsys, "cancel", second)["state"] == "stopped"
    assert queue_command(tmp_path, capsys, "hold", first)["held"] and ids() == [first, third]
    assert queue_command(tmp_path, capsys, "slots", "5", "--gpu", "2") == {"cpu": 5, "gpu": 2, "gpus": 0}
    assert queue_command(tmp_path, capsys)["slots"] == {"cpu": 5, "gpu": 2, "cpu_used": 0, "gpus": {}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "demmo"], "did you mean 'demo'?"),
        (["hold", "nothing"], "no run 'nothing'"),
        (["slots", "0"], "cpu slots 0: give a whole number from 1"),
        (["add", "demo", "--priority", "4000"], "priority 4000 is out of range"),
    ],
)
def test_a_mistake_is_one_line(arguments, message, tmp_path, capsys, asleep):
    assert main(["queue", *arguments, "--runs", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1


def test_options_before_and_after_the_action_count_alike(tmp_path, capsys, asleep):
    assert main(["queue", "--runs", str(tmp_path), "--json", "add", "demo"]) == 0
    assert Path(json.loads(capsys.readouterr().out)["path"]).parent == tmp_path


def test_a_queued_run_is_not_logged(tmp_path):
    from corl_core.tracking.log import TrackingError, sync
    from corl_core.tracking.store import tracking_uri

    (run,) = add(tmp_path, "a")
    with pytest.raises(TrackingError, match="waits in the queue"):
        sync(run, tracking_uri(tmp_path))
    assert not (tmp_path / "mlflow.db").exists()
