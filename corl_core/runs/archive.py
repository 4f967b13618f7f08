"""A run as one file, and a run out of such a file.

An archive is a plain zip of the run's files under their names in the run folder, behind `archive.json`, which lists each with its
size and SHA-256. It holds configuration, state, labels, journals, logs, rollouts and trained weights; checkpoints stay behind,
because an optimiser's state is a pickle, which no import may open: an imported run can be looked at and used, not resumed.

Importing trusts nothing: what is read is checked in archive_check.py, written into a hidden folder, and moved into place whole.
"""

import hashlib
import json
import os
import secrets
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from corl_core import __version__
from corl_core.runs import archive_check
from corl_core.runs.archive_check import MANIFEST, ArchiveError, Entry
from corl_core.runs.folder import Run, read_status, write_status
from corl_core.runs.launch import MIN_FREE_BYTES, LaunchError

SUFFIX = ".corl.zip"
FORMAT = 1
CHUNK = 2**20
STORED = (".safetensors", ".parquet")  # compressed already, or not compressible
EPOCH = (1980, 1, 1, 0, 0, 0)  # no times: equal runs make equal archives


def archive(run: Run, target: Path, with_models: bool = True) -> list[str]:
    """Writes a run that has ended to `target`; returns the files of its folder that stay behind. Raises LaunchError."""
    if not (status := run.status()).final:
        raise LaunchError(f"{run.id} is still {status.state}: only a run that has ended can be archived")
    taken, left = _files(run, with_models)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with zipfile.ZipFile(unfinished, "w", zipfile.ZIP_DEFLATED) as made:
            listed = {name: _digest(run.path / name) for name in taken}
            about = {"format": FORMAT, "id": run.id, "made_by": f"corl_core {__version__}", "files": listed}
            made.writestr(zipfile.ZipInfo(MANIFEST, EPOCH), json.dumps(about, indent=1))
            for name in taken:
                info = zipfile.ZipInfo(name, EPOCH)
                info.compress_type = zipfile.ZIP_STORED if name.endswith(STORED) else zipfile.ZIP_DEFLATED
                with (run.path / name).open("rb") as source, made.open(info, "w", force_zip64=True) as into:
                    shutil.copyfileobj(source, into, CHUNK)
        os.replace(unfinished, target)
    except OSError as error:
        raise LaunchError(f"cannot write '{target}': {error.strerror}; choose another place with -o") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return left


def restore(file: Path | BinaryIO, runs_dir: Path, max_bytes: int | None = None) -> Run:
    """The run out of an archive, as a run of this folder. Raises ArchiveError, and leaves nothing behind then.

    `max_bytes` is the most that it may unpack to (None: archive_check.MAX_BYTES); what is free on the disk is a limit, too.
    """
    runs_dir.mkdir(parents=True, exist_ok=True)
    unfinished = runs_dir / f".import-{secrets.token_hex(4)}.part"
    try:
        with zipfile.ZipFile(file) as opened:
            free = max(0, shutil.disk_usage(runs_dir).free - MIN_FREE_BYTES)
            run_id, entries = archive_check.entries(opened, min(max_bytes or archive_check.MAX_BYTES, free))
            target = runs_dir / run_id
            if target.exists() or (runs_dir / ".trash" / run_id).exists():
                raise ArchiveError(f"run {run_id} is here already, or in the trash; delete that one for good first")
            unfinished.mkdir()
            for entry in entries:
                _unpack(opened, entry, unfinished)
        archive_check.content(unfinished)
        _forget_processes(unfinished)
        os.rename(unfinished, target)
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, EOFError, RuntimeError) as error:
        if isinstance(error, ArchiveError):
            raise
        raise ArchiveError(f"not an archive of a run, or a damaged one: {str(error)[:200]}") from error
    except OSError as error:
        raise ArchiveError(f"cannot be imported: {error.strerror or error}") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return Run(target)


def _files(run: Run, with_models: bool) -> tuple[list[str], list[str]]:
    """The names that are archived, and those that are not; links are never followed."""
    taken, left = [], []
    agents = {agent.name for agent in run.config.agents}
    for path in sorted(run.path.rglob("*")):
        name = path.relative_to(run.path).as_posix()
        if path.is_dir() and not path.is_symlink():
            continue
        wanted = not path.is_symlink() and path.is_file() and archive_check.is_known(name, agents)
        (taken if wanted and (with_models or not archive_check.is_model(name)) else left).append(name)
    return taken, left


def _digest(path: Path) -> dict[str, str | int]:
    with path.open("rb") as file:
        return {"size": path.stat().st_size, "sha256": hashlib.file_digest(file, "sha256").hexdigest()}


def _unpack(opened: zipfile.ZipFile, entry: Entry, folder: Path) -> None:
    """One file, never more of it than was announced. Its name has been checked against the known ones."""
    path = folder / entry.name
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, left = hashlib.sha256(), entry.size
    with opened.open(entry.name) as source, path.open("xb") as into:
        while chunk := source.read(CHUNK):
            left -= len(chunk)
            if left < 0:
                raise ArchiveError(f"{entry.name} is larger than it says")
            digest.update(chunk)
            into.write(chunk)
    if left or digest.hexdigest() != entry.sha256:
        raise ArchiveError(f"{entry.name} is not what was archived: it is damaged or was changed")


def _forget_processes(folder: Path) -> None:
    """The process numbers of another machine mean nothing here."""
    write_status(folder, replace(read_status(folder), pid=None, pid_created=None))
