"""Deleting with a way back: a run goes to .trash/ in the runs folder, and for good only when the trash is emptied.

    .trash/ID/            the run's folder as it was
    .trash/ID.json        when it went, and whether its MLflow runs went with it

A run in the trash is in no list of runs; its colour, its id and its files are kept until then.
"""

import json
import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock

from corl_core.runs.folder import Run, RunNotFound, write_atomically
from corl_core.runs.launch import LaunchError

FOLDER = ".trash"


@dataclass(frozen=True)
class Thrown:
    """A run in the trash. `when` is Unix seconds."""

    run: Run
    when: float
    with_mlflow: bool

    @property
    def id(self) -> str:
        return self.run.id


def folder(runs_dir: Path) -> Path:
    return Path(runs_dir) / FOLDER


def thrown(runs_dir: Path) -> list[Thrown]:
    """What is in the trash, newest first."""
    runs = [Run(path.parent) for path in folder(runs_dir).glob("*/run.yaml")]
    return sorted((_thrown(run) for run in runs), key=lambda item: item.when, reverse=True)


def find(runs_dir: Path, ref: str) -> Thrown:
    """By id, or by an unambiguous start of one; compared with what is there, so a name never becomes a path."""
    items = thrown(runs_dir)
    found = [item for item in items if item.id == ref] or [item for item in items if ref and item.id.startswith(ref)]
    if len(found) != 1:
        known = ", ".join(item.id for item in items[:5]) or "nothing"
        raise RunNotFound(f"{'no run' if not found else 'several runs'} '{ref}' in the trash, which holds {known}")
    return found[0]


def throw(run: Run, with_mlflow: bool = False) -> Thrown:
    """Moves a run that has ended to the trash. `with_mlflow` is only written down. Raises LaunchError."""
    with FileLock(run.path / ".resume.lock"):  # nobody resumes it meanwhile
        _refuse_unless_over(run)
        target = folder(run.path.parent) / run.id
        if target.exists():
            raise LaunchError(f"{run.id} is in the trash already: empty the trash first")
        target.parent.mkdir(exist_ok=True)
        note = json.dumps({"when": time.time(), "mlflow": with_mlflow})
        write_atomically(target.with_name(f"{run.id}.json"), note)
        os.rename(run.path, target)
    return _thrown(Run(target))


def restore(item: Thrown) -> Run:
    """Puts a run back where it was. Raises LaunchError when something else is there."""
    place = item.run.path.parent.parent / item.id
    if place.exists():
        raise LaunchError(f"{item.id} cannot come back: there is a run of that id")
    os.rename(item.run.path, place)
    _note(item.run).unlink(missing_ok=True)
    return Run(place)


def empty(items: list[Thrown]) -> int:
    """Removes these for good; returns the bytes that are free again."""
    freed = 0
    for item in items:
        freed += size_bytes(item.run.path)
        shutil.rmtree(item.run.path)
        _note(item.run).unlink(missing_ok=True)
    return freed


def size_bytes(path: Path) -> int:
    """Bytes on disk of a folder's files; links are not followed."""
    total = 0
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    total += size_bytes(Path(entry.path))
                elif entry.is_file(follow_symlinks=False):
                    total += entry.stat(follow_symlinks=False).st_size
    except FileNotFoundError:  # removed while it was looked at
        pass
    return total


def _refuse_unless_over(run: Run) -> None:
    if run.path.is_symlink():
        raise LaunchError(f"{run.id} is a link to a folder elsewhere: remove the link itself")
    if not (status := run.status()).final:
        raise LaunchError(f"{run.id} is still {status.state}: stop it first")


def _note(run: Run) -> Path:
    return run.path.with_name(f"{run.id}.json")


def _thrown(run: Run) -> Thrown:
    try:
        note = json.loads(_note(run).read_text())
        return Thrown(run, float(note["when"]), bool(note["mlflow"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Thrown(run, run.path.stat().st_mtime, False)
