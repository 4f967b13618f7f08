"""The queue: order, slots, what a person may do, and a dispatcher that is killed, doubled and restarted."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from corl_core.cli import main
from corl_core.config import load_config
from corl_core.runs import launch, queue, queue_dispatch
from corl_core.runs.folder import Run, Status, find_run, read_status, write_status
from corl_core.runs.launch import LaunchError
from corl_core.runs.queue import Entry
from corl_core.runs.queue_dispatch import Dispatcher
from corl_core.runs.queue_slots import Free, Need, Slots, need, visible_gpus

ROOT = Path(__file__).resolve().parents[1]


def config(name: str = "run", *overrides: str):
    """A cohort of two on the CPU that a fake runs for 0.3 s."""
    return load_config("demo-pair", [f"name={name}", "device=cpu", "grpo.max_steps=3", *overrides])


def add(runs_dir: Path, *names: str, priority: int = 0) -> list[Run]:
    return queue.enqueue_checked([config(name) for name in names], runs_dir, priority)


def order(runs_dir: Path) -> list[str]:
    return [waits.run.config.name for waits in queue.waiting(runs_dir)]


def mark_alive(run: Run) -> None:
    """As a supervisor that lives: this process stands for it."""
    me = psutil.Process()
    write_status(run.path, Status("running", time.time(), pid=me.pid, pid_created=me.create_time(), heartbeat=time.time() + 600))


def finish(run: Run) -> None:
    write_status(run.path, replace(read_status(run.path), state="finished"))


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")


@pytest.fixture
def dispatcher(tmp_path):
    """A dispatcher in this process that 'starts' runs by writing so down."""
    queue_dispatch.set_slots(tmp_path, Slots(cpu=2))
    return Dispatcher(tmp_path, mark_alive)


@pytest.fixture
def processes():
    """Starts dispatcher processes; those that still live at the end are killed."""
    started: list[subprocess.Popen] = []

    def start(runs_dir: Path) -> subprocess.Popen:
        started.append(subprocess.Popen([sys.executable, "-m", "tests.fake_queue", str(runs_dir)], cwd=ROOT))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()


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
    assert need(config("run", "device=auto"), ["0"]) == Need(agents=2)
    assert need(config("run", "device=cuda"), []) == Need(cores=2)  # it starts, and fails with its own reason


def test_what_fits_starts_and_what_asks_for_more_than_there_is_starts_alone():
    free = Free(Slots(cpu=4), [], [Need(cores=2)])
    assert free.take(Need(cores=3)) is None
    assert free.take(Need(cores=2)) == Need(cores=2) and free.cores_used == 4
    assert Free(Slots(cpu=4), [], [Need(cores=1)]).take(Need(cores=9)) is None
    assert Free(Slots(cpu=4), [], []).take(Need(cores=9)) == Need(cores=9)


def test_each_gpu_has_its_own_places_and_the_emptiest_is_taken():
    free = Free(Slots(gpu=4), ["0", "3"], [Need(agents=2)])  # launched directly: it counts on the first
    assert [free.take(Need(agents=2)) for _ in range(4)] == [
        Need(agents=2, gpu="3"), Need(agents=2, gpu="0"), Need(agents=2, gpu="3"), None
    ]  # fmt: skip
    assert free.agents_on == {"0": 4, "3": 4}


def test_gpus_are_those_that_cuda_may_see(monkeypatch, tmp_path):
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
        (tmp_path / name).touch()
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2, 5")
    assert visible_gpus(tmp_path) == ["2", "5"]
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert visible_gpus(tmp_path) == []
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert visible_gpus(tmp_path) == ["0", "1"]


def test_a_run_is_started_when_it_fits_and_the_next_when_that_one_has_ended(tmp_path, dispatcher):
    a, b = add(tmp_path, "a", "b")
    assert dispatcher.step() and (a.status().state, b.status().state) == ("running", "queued")
    assert dispatcher.step() and b.status().state == "queued"
    assert not (a.path / "queue.json").exists()
    finish(a)
    dispatcher.step()
    assert b.status().state == "running"
    assert not dispatcher.step()  # nothing waits


def test_a_run_that_was_launched_directly_takes_slots_too(tmp_path, dispatcher):
    direct = launch.create(config("direct"), tmp_path)
    mark_alive(direct)
    (a,) = add(tmp_path, "a")
    dispatcher.step()
    assert a.status().state == "queued"
    write_status(direct.path, replace(read_status(direct.path), pid=2**22 + 1))  # its supervisor was killed
    dispatcher.step()
    assert a.status().state == "running"


def test_a_small_run_does_not_overtake_a_large_one_that_waits(tmp_path, dispatcher):
    queue_dispatch.set_slots(tmp_path, Slots(cpu=3))
    running, large = add(tmp_path, "running", "large")
    alone = load_config("demo-ttrl", ["agents=[{name: a, model: 'tiny:llama'}]", "device=cpu"])
    (small,) = queue.enqueue_checked([alone], tmp_path)
    dispatcher.step()
    assert [run.status().state for run in (running, large, small)] == ["running", "queued", "queued"]


def test_a_run_that_waits_for_a_gpu_does_not_keep_back_one_that_needs_none(tmp_path, dispatcher, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    runs = queue.enqueue_checked([config(device, f"device={device}") for device in ("auto", "cuda", "cpu")], tmp_path)
    dispatcher.step()
    assert [run.status().state for run in runs] == ["running", "queued", "running"]
    assert [run.gpu for run in runs] == ["1", None, None]


def test_a_held_run_is_passed_over_and_keeps_no_dispatcher(tmp_path, dispatcher):
    a, b = add(tmp_path, "a", "b")
    queue.hold(a)
    dispatcher.step()
    assert (a.status().state, b.status().state) == ("queued", "running")
    assert not dispatcher.step()


def test_a_run_that_cannot_be_read_or_started_fails_and_the_queue_goes_on(tmp_path):
    def start(run: Run) -> None:
        if run.config.name == "b":
            raise OSError("no more processes")
        mark_alive(run)

    a, b, c = add(tmp_path, "a", "b", "c")
    (a.path / "run.yaml").write_text("method: [unclosed")
    queue_dispatch.set_slots(tmp_path, Slots(cpu=2))
    queueing = Dispatcher(tmp_path, start)
    queueing.step()
    queueing.step()
    assert [run.status().state for run in (a, b)] == ["failed", "failed"] and "not valid YAML" in a.status().reason
    assert b.status().reason == "could not be started: no more processes"
    assert c.status().state == "running"


def test_a_full_disk_makes_the_queue_wait_and_fails_no_run(tmp_path, dispatcher, monkeypatch):
    (a,) = add(tmp_path, "a")
    monkeypatch.setattr(launch, "MIN_FREE_BYTES", 2**62)
    with pytest.raises(OSError, match="the queue waits"):
        dispatcher.step()
    assert a.status().state == "queued"


def test_what_a_dead_dispatcher_was_starting_is_not_started_twice(tmp_path, dispatcher):
    (a,) = add(tmp_path, "a")
    entry = queue.read_entry(a)
    queue.write_entry(a, replace(entry, claimed=time.time()))  # it died between the mark and the supervisor's first word
    assert dispatcher.step() and a.status().state == "queued"
    (b,) = add(tmp_path, "b")
    dispatcher.step()
    assert b.status().state == "queued"  # the slots of a are taken
    assert not queue.cancel(a)
    queue.write_entry(a, replace(entry, claimed=time.time() - queue_dispatch.CLAIM_S - 1))
    dispatcher.step()
    assert a.status().state == "running"


def test_a_second_supervisor_of_one_run_leaves_it_alone(tmp_path, capsys):
    from filelock import FileLock

    from corl_core.runs.supervisor import supervise

    run = launch.create(config(), tmp_path)
    mark_alive(run)
    before = read_status(run.path)
    with FileLock(run.path / ".supervisor.lock"):
        assert supervise(run) == before
    assert read_status(run.path) == before and "leaving it alone" in capsys.readouterr().out


def told(runs_dir: Path) -> list[str]:
    path = runs_dir / "told.txt"
    return path.read_text().splitlines() if path.exists() else []


def one_after_the_other(*names: str) -> list[str]:
    """What runs tell that never overlap."""
    return [f"{what} {name}" for name in names for what in ("begin", "end")]


def test_a_dispatcher_runs_all_in_order_one_at_a_time_goes_on_after_a_failure_and_ends(tmp_path, processes, wait_for):
    queue_dispatch.set_slots(tmp_path, Slots(cpu=1))
    add(tmp_path, "a", "fails", "b")
    add(tmp_path, "urgent", priority=1)
    assert processes(tmp_path).wait(60) == 0
    wait_for(lambda: len(told(tmp_path)) == 8, "the last run to end")
    assert told(tmp_path) == one_after_the_other("urgent", "a", "fails", "b")
    assert not queue_dispatch.working(tmp_path) and not (tmp_path / "queue" / "dispatcher.json").exists()


def test_several_dispatchers_at_once_start_each_run_once(tmp_path, processes, wait_for):
    queue_dispatch.set_slots(tmp_path, Slots(cpu=1))
    add(tmp_path, *"abc")
    ends = [process.wait(60) for process in [processes(tmp_path) for _ in range(3)]]
    wait_for(lambda: len(told(tmp_path)) >= 6, "the last run to end")
    assert 0 in ends and told(tmp_path) == one_after_the_other("a", "b", "c")


def test_a_killed_dispatcher_leaves_its_run_going_and_the_next_one_takes_over(tmp_path, processes, wait_for):
    queue_dispatch.set_slots(tmp_path, Slots(cpu=1))
    add(tmp_path, "a", "b", "c")
    first = processes(tmp_path)
    wait_for(lambda: "begin a" in told(tmp_path), "the first run to begin")
    assert queue_dispatch.working(tmp_path)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert not queue_dispatch.working(tmp_path)
    assert processes(tmp_path).wait(60) == 0
    wait_for(lambda: len(told(tmp_path)) >= 6, "the last run to end")
    assert told(tmp_path) == one_after_the_other("a", "b", "c")


def test_readers_that_see_runs_wait_bring_one_dispatcher_up(tmp_path, monkeypatch):
    started = []

    class Started:
        pid = os.getpid()  # a process that lives

        def __init__(self, command, **options):
            started.append((command, options["start_new_session"]))

    monkeypatch.setattr(queue_dispatch.subprocess, "Popen", Started)
    queue_dispatch.wake(tmp_path)  # nobody has used the queue here
    assert list(tmp_path.iterdir()) == []
    (a,) = add(tmp_path, "a")
    queue.hold(a)
    queue_dispatch.wake_for(tmp_path, ["queued", "finished"])
    assert started == []  # all that waits is held
    queue.hold(a, held=False)
    threads = [threading.Thread(target=queue_dispatch.wake, args=(tmp_path,)) for _ in range(8)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(started) == 1 and started[0][0][-1] == str(tmp_path) and started[0][1]


def test_a_pid_used_again_is_no_dispatcher(tmp_path):
    add(tmp_path, "a")
    me = psutil.Process()
    path = tmp_path / "queue" / "dispatcher.json"
    path.write_text(json.dumps({"pid": me.pid, "pid_created": me.create_time()}))
    assert queue_dispatch.working(tmp_path)
    path.write_text(json.dumps({"pid": me.pid, "pid_created": me.create_time() - 100}))
    assert not queue_dispatch.working(tmp_path)
    path.write_text("{")
    assert not queue_dispatch.working(tmp_path)


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


@pytest.mark.training
def test_two_real_runs_on_one_slot_by_priority_through_a_failure_and_a_killed_dispatcher(small_run, tmp_path, wait_for):
    queue_dispatch.set_slots(tmp_path, Slots(cpu=1))
    plain = queue.enqueue(small_run(name="plain"), tmp_path)
    broken = queue.enqueue(small_run(name="broken", agents="[{name: a, model: ./gone}, {name: b, model: ./gone}]"), tmp_path, 1)
    urgent = queue_dispatch.add(small_run(name="urgent"), tmp_path, 2)
    runs = (urgent, broken, plain)
    most = 0

    def living() -> int:
        nonlocal most
        now = sum(run.status().state in ("starting", "running", "stalled", "stopping") for run in runs)
        most = max(most, now)
        return now

    wait_for(living, "the first run to start")
    assert urgent.status().state != "queued" and plain.status().state == broken.status().state == "queued"
    who = json.loads((tmp_path / "queue" / "dispatcher.json").read_text())
    os.kill(who["pid"], signal.SIGKILL)
    wait_for(lambda: not queue_dispatch.working(tmp_path), "the dispatcher to be gone")
    wait_for(lambda: living() == 0, "the run to finish without a dispatcher")
    assert urgent.status().state == "finished" and broken.status().state == "queued"
    queue_dispatch.wake(tmp_path)  # a reader's look
    wait_for(lambda: living() == 0 and plain.status().final, "the queue to be empty", timeout_s=180, every_s=0.05)
    assert [run.status().state for run in runs] == ["finished", "failed", "finished"] and most == 1
    assert urgent.status().ended < broken.status().ended < plain.status().started
    wait_for(lambda: not queue_dispatch.working(tmp_path), "the dispatcher to end")
