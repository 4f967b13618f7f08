"""Why a run failed, in a word or two: what a table can be filtered by. The reason beside it has the details."""

import errno
import resource
import shutil
from pathlib import Path

CAUSES = (
    "out of memory", "non-finite", "disk full", "file size limit", "peer lost", "node lost", "bad data", "killed", "unknown",
)  # fmt: skip
_BY_ERROR = {
    "NonFiniteError": "non-finite", "CohortError": "peer lost", "DataError": "bad data", "ModelError": "bad data",
    "ConfigError": "bad data", "OutOfMemoryError": "out of memory", "MemoryError": "out of memory",
    "RayError": "bad data", "PlacementError": "bad data", "MissingPackage": "bad data",
}  # fmt: skip
EXIT_DISK_FULL, EXIT_FILE_LIMIT = errno.ENOSPC, errno.EFBIG  # of an agent that could not even write its last words
LITTLE_BYTES = 2**20  # with less room than this on the disk, what failed to be written failed for that
_NOT_FINITE = "probability tensor contains either"  # torch, asked to sample from weights that are no numbers any more
_FULL = (f"[Errno {errno.ENOSPC}]", "No space left on device", f"[Errno {errno.EDQUOT}]")
_TOO_LARGE = (f"[Errno {errno.EFBIG}]", "File too large")  # beyond `ulimit -f`, or beyond what the file system can hold


def is_disk_full(message: str) -> bool:
    return any(text in message for text in _FULL)


def is_file_limit(message: str) -> bool:
    return any(text in message for text in _TOO_LARGE)


def no_room(message: str, folder: Path) -> int | None:
    """The exit code of an agent that this error ended, when it could not write; None for any other error. Libraries do not always
    say why a write failed, so the disk is looked at, and whether a file of the agent has grown to the size that one may have."""
    if is_disk_full(message) or shutil.disk_usage(folder).free < LITTLE_BYTES:
        return EXIT_DISK_FULL
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    grown = limit != resource.RLIM_INFINITY and any(path.stat().st_size >= limit for path in folder.rglob("*"))
    return EXIT_FILE_LIMIT if grown or is_file_limit(message) else None


def cause(error_kind: str, message: str, exit_code: int | None) -> str:
    """From an agent's own last words (the error's class and text, '' without any) and its exit code."""
    if exit_code == EXIT_DISK_FULL or is_disk_full(message):
        return "disk full"
    if exit_code == EXIT_FILE_LIMIT or is_file_limit(message):
        return "file size limit"
    if "out of memory" in message.lower() or "not enough memory" in message.lower():
        return "out of memory"
    if _NOT_FINITE in message:
        return "non-finite"
    if error_kind in _BY_ERROR:
        return _BY_ERROR[error_kind]
    if error_kind == "RankError" and "was killed by" in message:  # another rank, which could not say why itself
        return "killed"
    return "killed" if not error_kind and exit_code is not None and exit_code < 0 else "unknown"
