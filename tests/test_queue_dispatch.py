"""The dispatcher: what it starts and when, and what happens when it is killed, doubled and restarted."""

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

from corl_core.config import load_config
from corl_core.runs import launch, queue, queue_dispatch
from corl_core.runs.folder import Run, Status, read_status, start_of, write_status
from corl_core.runs.queue_dispatch import Dispatcher
from corl_core.runs.queue_slots import Slots
from tests.fake_queue import add, config

ROOT = Path(__file__).resolve().parents[1]


def mark_alive(run: Run) -> None:
    """As a supervisor that lives: this process stands for it."""
    me = psutil.Process()
    write_status(run.path, Status("running", time.time(), pid=me.pid, pid_created=start_of(me), heartbeat=time.time() + 600))


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


def test_a_run_that_waits_for_cores_does_not_keep_back_one_whose_agents_ray_places(tmp_path, dispatcher):
    running, waits = add(tmp_path, "running", "waits")
    (elsewhere,) = queue.enqueue_checked([config("elsewhere", "launcher=ray")], tmp_path)
    dispatcher.step()
    assert [run.status().state for run in (running, waits, elsewhere)] == ["running", "queued", "running"]


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
    queue.write_entry(a, replace(entry, claimed=time.monotonic()))  # it died between the mark and the supervisor's first word
    assert dispatcher.step() and a.status().state == "queued"
    (b,) = add(tmp_path, "b")
    dispatcher.step()
    assert b.status().state == "queued"  # the slots of a are taken
    assert not queue.cancel(a)
    queue.write_entry(a, replace(entry, claimed=time.monotonic() - queue_dispatch.CLAIM_S - 1))
    dispatcher.step()
    assert a.status().state == "running"


def test_a_second_supervisor_of_one_run_leaves_it_alone(tmp_path, capsys, monkeypatch):
    from filelock import FileLock

    from corl_core.runs import supervisor

    monkeypatch.setattr(supervisor, "TAKE_OVER_S", 0.1)
    run, other = launch.create(config(), tmp_path), psutil.Process().parent()
    write_status(run.path, Status("running", time.time(), pid=other.pid, pid_created=start_of(other)))
    before = read_status(run.path)
    with FileLock(run.path / ".supervisor.lock"):
        assert supervisor.supervise(run) == before
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
    path.write_text(json.dumps({"pid": me.pid, "pid_created": start_of(me)}))
    assert queue_dispatch.working(tmp_path)
    path.write_text(json.dumps({"pid": me.pid, "pid_created": start_of(me) - 100}))
    assert not queue_dispatch.working(tmp_path)
    path.write_text("{")
    assert not queue_dispatch.working(tmp_path)


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
