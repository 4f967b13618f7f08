"""A disk that is full, and a run folder that is deleted under the run."""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from corl_core.runs import launch
from corl_core.runs.folder import read_status
from tests.faults.conftest import Fault, assert_mirrored, assert_rollouts_kept, assert_same_training, mlflow_states

pytestmark = pytest.mark.training
SOON = {"corl_core.runs.supervisor": {"MLFLOW_GRACE_S": 1.0}}
DISK_MB = 260  # a run is refused where less than 200 MB are free


@pytest.fixture
def small_disk(tmp_path) -> Path:
    folder = tmp_path / "disk"
    folder.mkdir()
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a small disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "tmpfs", folder], capture_output=True, text=True)
    if mounted.returncode:
        pytest.skip(f"a small disk cannot be mounted here: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", folder], check=True)


def fill(folder: Path, leave: int) -> Path:
    """Leaves so many bytes free."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(2**16)):
            pass
    os.truncate(filler, filler.stat().st_size - leave)
    return filler


def run_out(fault: Fault, place: str, disk: Path, leave: int) -> None:
    """The disk fills up while `b` is at the place, until the run has ended for that; then there is room again."""
    fault.reached("b", place)
    filler = fill(disk, leave)
    fault.let_go("b", place)
    status = fault.ended("failed", "disk full")
    assert read_status(fault.run.path).state == "failed", "there was room for the last words"
    assert "No space left on device" in status.reason or "exit code 28" in status.reason
    fault.gone()
    filler.unlink()
    fault.told()
    assert_rollouts_kept(fault.run)
    assert_mirrored(fault.run, "FAILED")


def vanish(fault: Fault) -> None:
    """Somebody deletes the folder of a run that goes on: it ends, and nothing of it comes back."""
    with pytest.raises(launch.LaunchError, match="stop it first"):
        launch.delete(fault.run)
    while fault.run.path.exists():  # what is being written meanwhile makes one attempt fail
        shutil.rmtree(fault.run.path, ignore_errors=True)
    fault.wait(lambda: not fault.processes(), "the last process to end", 20)
    assert not fault.run.path.exists()
    fault.no_port_is_left()


def is_running(run) -> bool:
    return (run.path.parent / "mlflow.db").exists() and mlflow_states(run) == ["RUNNING"] * 3


def test_a_full_disk_is_named_and_with_room_again_the_run_goes_on(faulty, undisturbed, small_disk):
    """First little is left: an agent's next checkpoint does not fit. Then nothing: even the heartbeat cannot be written."""
    fault = faulty(hold={"b.update": 5}, runs_dir=small_disk, settings=SOON)
    run_out(fault, "update", small_disk, leave=256_000)
    fault.go_on({"b.update": 9})
    run_out(fault, "update", small_disk, leave=0)
    fault.resumed()
    assert_same_training(undisturbed(), fault.run)
    assert_mirrored(fault.run, "FINISHED")


@pytest.mark.faults
@pytest.mark.parametrize(("place", "step"), [("checkpoint", 8), ("logging", 7)])
def test_a_disk_that_fills_up_at_any_place_is_named_too(place, step, faulty, undisturbed, small_disk):
    fault = faulty(hold={f"b.{place}": step}, runs_dir=small_disk, settings=SOON)
    run_out(fault, place, small_disk, leave=0)
    fault.resumed()
    assert_same_training(undisturbed(), fault.run)
    assert_mirrored(fault.run, "FINISHED")


def test_a_run_whose_folder_is_deleted_ends_and_does_not_come_back(faulty):
    fault = faulty(hold={"b.exchange": 5})
    fault.reached("b", "exchange")
    fault.wait(lambda: is_running(fault.run), "MLflow to know the run")
    vanish(fault)
    assert mlflow_states(fault.run) == ["FAILED"] * 3


def test_a_folder_that_a_late_file_makes_again_keeps_nothing_alive(faulty):
    """As a library does that makes the folders above a file which it writes."""
    fault = faulty(hold={"b.update": 5})
    fault.reached("b", "update")
    stray = fault.run.path / "agents" / "b" / "late.txt"
    while (fault.run.path / "run.yaml").exists():
        shutil.rmtree(fault.run.path, ignore_errors=True)
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_text("here")
    fault.wait(lambda: not fault.processes(), "the last process to end", 20)
    assert not (fault.run.path / "run.yaml").exists() and not (fault.run.path / "status.json").exists()
    fault.no_port_is_left()
