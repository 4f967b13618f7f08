"""Lock files that nobody holds, and files that nobody will finish.

A lock here is the kernel's, so a dead process holds none, and the file it leaves stops nobody: it is litter, and goes only when
it can be locked. A file that was being written goes once it is old, and its writer, where its name tells, is dead.
"""

import re
import shutil
import time
from pathlib import Path

import psutil
from filelock import FileLock, Timeout

from corl_core.doctor.record import Finding
from corl_core.runs.trash import size_bytes

OLD_S = 3600.0
_UNFINISHED = (
    "*/.status.json.*", "*/.tracking.json.*", "*/.labels.json.*", "*/agents/*/rollouts/.*.parquet", "*/agents/*/.best",
    "*/agents/*/checkpoints/.*", "uploads/*.part", "diversity/*/*.part", "base_models/.*", ".import-*.part",
    ".colours-*", ".*.zip.*",
)  # fmt: skip
_LOCKS = ("*.lock", ".*.lock", "*/*.lock", "*/.*.lock", "base_models/*.lock")
_WRITER = re.compile(r"\.(?:json|zip)\.(\d+)$")


def check(runs_dir: Path) -> list[Finding]:
    held, free = [], []
    for path in sorted({path for pattern in _LOCKS for path in runs_dir.glob(pattern) if path.is_file()}):
        if _is_old(path):
            (held if is_held(path) else free).append(path)
    unfinished = [path for pattern in _UNFINISHED for path in runs_dir.glob(pattern) if is_abandoned(path)]
    found = [Finding("lock", "note", f"{path} has been held for long", "a run that hangs? see its log") for path in held]
    found += _offer("lock files", "that nobody holds", free, "harmless")
    found += _offer("unfinished files", "that nobody will finish", sorted(set(unfinished)), "they only take room")
    return found or [Finding("leftovers", "ok", "no old lock files, no unfinished files")]


def is_held(path: Path) -> bool:
    try:
        with FileLock(path, timeout=0):
            return False
    except (Timeout, OSError):
        return True


def is_abandoned(path: Path) -> bool:
    """Old, and by its name of no writer, or of one that is dead."""
    if path.name.endswith(".lock") or path.is_symlink() or not _is_old(path):
        return False
    writer = _WRITER.search(path.name)
    return not (writer and psutil.pid_exists(int(writer[1])))


def remove(finding: Finding, runs_dir: Path) -> list[str]:
    """Looks again at each, and removes those that are still nobody's."""
    done = []
    for path in map(Path, finding.about["paths"]):
        if not path.absolute().is_relative_to(runs_dir.absolute()) or not path.exists():
            continue
        if path.name.endswith(".lock"):
            _remove_lock(path)
        elif is_abandoned(path):
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
        done.append(path)
    gone = sum(not path.exists() for path in done)
    return [f"{finding.name}: {gone} removed" + (f", {len(done) - gone} are in use" if gone < len(done) else "")]


def _remove_lock(path: Path) -> None:
    try:
        with FileLock(path, timeout=0):
            path.unlink(missing_ok=True)
    except (Timeout, OSError):
        return


def _offer(name: str, which: str, paths: list[Path], harm: str) -> list[Finding]:
    if not paths:
        return []
    size = sum(size_bytes(path) if path.is_dir() else path.stat().st_size for path in paths)
    words = f"{len(paths)} {which}, {size / 1e6:,.1f} MB ({harm}): {paths[0].name}{' …' if len(paths) > 1 else ''}"
    return [Finding(name, "note", words, "remove them", "remove", {"paths": [str(path) for path in paths]})]


def _is_old(path: Path) -> bool:
    try:
        return time.time() - path.stat().st_mtime > OLD_S
    except OSError:
        return False
