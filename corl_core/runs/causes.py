"""Why a run failed, in a word or two: what a table can be filtered by. The reason beside it has the details."""

import errno

CAUSES = ("out of memory", "non-finite", "disk full", "peer lost", "bad data", "killed", "unknown")
_BY_ERROR = {
    "NonFiniteError": "non-finite", "CohortError": "peer lost", "DataError": "bad data", "ModelError": "bad data",
    "ConfigError": "bad data", "OutOfMemoryError": "out of memory", "MemoryError": "out of memory",
}  # fmt: skip
EXIT_DISK_FULL = 28  # of an agent that had no room left even for its last words
_FULL = (f"[Errno {errno.ENOSPC}]", "No space left on device", f"[Errno {errno.EDQUOT}]")


def is_disk_full(message: str) -> bool:
    return any(text in message for text in _FULL)


def cause(error_kind: str, message: str, exit_code: int | None) -> str:
    """From an agent's own last words (the error's class and text, '' without any) and its exit code."""
    if exit_code == EXIT_DISK_FULL or is_disk_full(message):
        return "disk full"
    if "out of memory" in message.lower() or "not enough memory" in message.lower():
        return "out of memory"
    if error_kind in _BY_ERROR:
        return _BY_ERROR[error_kind]
    return "killed" if not error_kind and exit_code is not None and exit_code < 0 else "unknown"
