"""Why a run failed, told from an agent's last words, its exit code, and the room that it had."""

import resource
from contextlib import contextmanager

import pytest

from corl_core.runs.causes import CAUSES, EXIT_DISK_FULL, EXIT_FILE_LIMIT, cause, no_room

LIMIT = 65_536


@pytest.mark.parametrize(
    ("kind", "message", "code", "expected"),
    [
        ("OSError", "[Errno 28] No space left on device", 1, "disk full"),
        ("SafetensorError", "Error while serializing: I/O error: File too large (os error 27)", 1, "file size limit"),
        ("OSError", "[Errno 27] File too large", 1, "file size limit"),
        ("", "", EXIT_DISK_FULL, "disk full"),
        ("RuntimeError", "unexpected pos 576 vs 534", EXIT_FILE_LIMIT, "file size limit"),  # torch does not say why
        ("RuntimeError", "CUDA out of memory", 1, "out of memory"),
        ("RuntimeError", "probability tensor contains either `inf`, `nan` or element < 0", 1, "non-finite"),
        ("CohortError", "peer 'b' is gone", 1, "peer lost"),
        ("", "", -9, "killed"),
        ("RankError", "rank 1 of 2 was killed by SIGKILL", 1, "killed"),
        ("RankError", "rank 1 of 2 ended with exit code 3", 1, "unknown"),
        ("RayError", "no place for agent 'a'", 1, "bad data"),
        ("PlacementError", "placement.gpus=[2]", None, "bad data"),
        ("MissingPackage", "vLLM is not installed", 1, "bad data"),
        ("KeyError", "'x'", 1, "unknown"),
    ],
)
def test_a_cause_is_a_word_or_two(kind, message, code, expected):
    assert cause(kind, message, code) == expected and expected in CAUSES


@contextmanager
def limited(size: int):
    """Files of this process may not grow beyond `size` meanwhile."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_write_beyond_the_limit_on_files_is_known_by_its_message_or_by_the_file_that_it_left(tmp_path):
    with pytest.raises(OSError) as failed, limited(LIMIT):
        (tmp_path / "checkpoint").write_bytes(bytes(2 * LIMIT))
    assert no_room("some other error", tmp_path) is None, "without a limit no file has reached it"
    with limited(LIMIT):
        assert no_room("unexpected pos 576 vs 534", tmp_path) == EXIT_FILE_LIMIT
    (tmp_path / "checkpoint").unlink()
    with limited(LIMIT):
        assert no_room("unexpected pos 576 vs 534", tmp_path) is None
    assert no_room(str(failed.value), tmp_path) == EXIT_FILE_LIMIT
    assert no_room("[Errno 28] No space left on device", tmp_path) == EXIT_DISK_FULL


def test_an_error_with_the_disk_nearly_full_was_for_want_of_room(tmp_path, monkeypatch):
    class Usage:
        free = 1000

    monkeypatch.setattr("corl_core.runs.causes.shutil.disk_usage", lambda folder: Usage)
    assert no_room("unexpected pos 576 vs 534", tmp_path) == EXIT_DISK_FULL
