"""A supervisor that is busy with one thing for long is seen to live, and one that hangs in it is not."""

import math
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest

from corl_core.config import load_config
from corl_core.runs import beating as beats
from corl_core.runs import launch, supervisor
from corl_core.runs.folder import Run, Status, read_status, write_status
from corl_core.runs.supervisor import Supervisor


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(beats, "BEAT_S", 0.02)
    return launch.create(load_config("demo-pair"), tmp_path)


def beat_after(run: Run, seconds: float) -> float | None:
    time.sleep(seconds)
    return read_status(run.path).beat


def test_a_start_that_takes_long_beats_and_changes_nothing_else(run, monkeypatch, wait_for):
    seen = []

    def begin(_):
        first = read_status(run.path)
        wait_for(lambda: read_status(run.path).beat > first.beat, "a heartbeat", timeout_s=10.0, every_s=0.01)
        now = read_status(run.path)
        seen.append(replace(now, beat=first.beat, heartbeat=first.heartbeat) == first)
        raise ValueError("that is enough")

    monkeypatch.setattr(Supervisor, "_begin", begin)
    monkeypatch.setattr(supervisor, "Tracker", lambda run: SimpleNamespace(finish=lambda *_: False))
    status = Supervisor(run).run()
    assert seen == [True] and (status.state, status.reason) == ("failed", "supervisor: that is enough")
    assert read_status(run.path).state == "failed"


def test_one_that_takes_longer_than_allowed_is_silent(run):
    status = read_status(run.path)
    with beats.beating(run.path, lambda: status, lambda: None, limit_s=0.1):
        time.sleep(0.3)
        assert (last := beat_after(run, 0.0)) is not None and beat_after(run, 0.2) == last


def test_no_beat_comes_after_the_work_or_over_an_end_that_stands(run):
    status, asked = read_status(run.path), []
    with beats.beating(run.path, lambda: status, lambda: asked.append(1), math.inf):
        write_status(run.path, Status("failed", status.created, reason="was seen dead"))
        time.sleep(0.2)
    told = len(asked)
    assert told > 0 and read_status(run.path).reason == "was seen dead"
    time.sleep(0.1)
    assert len(asked) == told


def test_a_full_disk_does_not_end_the_beats(run, monkeypatch):
    tries = []

    def full(path, status):
        tries.append(1)
        raise OSError("No space left on device")

    monkeypatch.setattr(beats, "update_status", full)
    with beats.beating(run.path, lambda: None, lambda: None, math.inf), monkeypatch.context() as patch:
        patch.setattr(beats, "replace", lambda status, **_: status)
        time.sleep(0.3)
    assert len(tries) > 1


def test_a_run_that_is_resumed_shows_life_from_the_first_moment(run):
    write_status(run.path, Status("stopped", time.time(), heartbeat=1.0, beat=1.0))
    before = time.monotonic()
    launch.reopen(run)
    assert read_status(run.path).beat >= before
