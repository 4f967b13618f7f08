"""A folder kept the same on another machine: what grows, what is whole, what is gone, and what must not come too early."""

import os
import shutil

import pytest

from corl_core.runs.launchers import mirror
from corl_core.runs.launchers.mirror import Part, Source, repeat


@pytest.fixture
def folders(tmp_path):
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "rollouts").mkdir(parents=True)
    here.mkdir()
    return there, here


def brought(source: Source, here) -> list[str]:
    """Everything that has changed, repeated here; the paths as they came."""
    paths = []
    while parts := source.next():
        repeat(here, parts)
        paths += [part.path for part in parts]
    return paths


def test_what_grows_travels_from_where_it_ended(folders):
    there, here = folders
    source = Source(there)
    (there / "journal.jsonl").write_text("1\n")
    assert brought(source, here) == ["journal.jsonl"] and brought(source, here) == []
    with (there / "journal.jsonl").open("a") as file:
        file.write("2\n")
    assert source.next() == [Part("journal.jsonl", b"2\n", 2)]
    repeat(here, [Part("journal.jsonl", b"2\n", 2)])
    assert (here / "journal.jsonl").read_text() == "1\n2\n"


def test_another_file_of_that_name_starts_anew_even_if_it_is_longer(folders):
    there, here = folders
    source = Source(there)
    rollouts = there / "rollouts" / ".open.jsonl"
    rollouts.write_text('{"step": 3}\n')
    brought(source, here)
    rollouts.unlink()
    rollouts.write_text('{"step": 4, "rows": []}\n')
    brought(source, here)
    assert (here / "rollouts" / ".open.jsonl").read_text() == '{"step": 4, "rows": []}\n'


def test_no_step_is_told_before_its_rollouts_are_there(folders):
    there, here = folders
    source = Source(there)
    (there / "journal.jsonl").write_text("step\n")
    (there / "rollouts" / "000000-000000.parquet").write_bytes(b"x")
    (there / "log.txt").write_text("said")
    assert brought(source, here)[-1] == "journal.jsonl"


def test_a_checkpoint_comes_when_it_is_whole_and_its_mark_last(folders):
    there, here = folders
    source, checkpoint = Source(there), there / "checkpoints" / "checkpoint-4"
    checkpoint.mkdir(parents=True)
    (checkpoint / "weights").write_bytes(b"w" * 10)
    assert brought(source, here) == []
    (checkpoint / "complete.json").write_text("{}")
    assert brought(source, here) == ["checkpoints/checkpoint-4/weights", "checkpoints/checkpoint-4/complete.json"]


def test_large_files_come_in_pieces_and_are_seen_whole_or_not_at_all(folders, monkeypatch):
    monkeypatch.setattr(mirror, "PIECE_BYTES", 4)
    there, here = folders
    source = Source(there)
    (there / "model").write_bytes(b"0123456789")
    first = source.next(max_bytes=4)
    assert first == [Part("model", b"0123", 0, last=False)]
    repeat(here, first)
    assert not (here / "model").exists()
    brought(source, here)
    assert (here / "model").read_bytes() == b"0123456789" and not (here / "model.part").exists()


def test_what_is_gone_there_goes_here_with_its_empty_folder_and_hidden_files_stay_there(folders):
    there, here = folders
    source = Source(there)
    (there / "best").mkdir()
    (there / "best" / "weights").write_bytes(b"w")
    (there / ".best").mkdir()
    (there / ".best" / "half").write_bytes(b"h")
    assert brought(source, here) == ["best/weights"]
    (there / "best" / "weights").unlink()
    brought(source, here)
    assert list(here.iterdir()) == []


def test_the_sign_of_life_is_touched_here_too(folders):
    there, here = folders
    source = Source(there)
    (there / ".alive").touch()
    brought(source, here)
    os.utime(here / ".alive", (1, 1))
    os.utime(there / ".alive", (5, 5))
    brought(source, here)
    assert (here / ".alive").stat().st_mtime > 1


def test_what_was_there_at_first_is_known_and_nothing_leaves_the_folder(folders):
    there, here = folders
    (there / "journal.jsonl").write_text("old\n")
    assert brought(Source(there), here) == []
    for path in ("../escaped", ".", "", "rollouts/..", "model.part"):
        with pytest.raises(ValueError, match="is no file in the agent's folder that may be written"):
            repeat(here, [Part(path, b"x")])
    assert list(here.iterdir()) == [] and not here.with_name("here.part").exists()


def test_a_look_whose_last_part_was_full_does_not_hide_what_came_since(folders):
    there, _ = folders
    source = Source(there)
    (there / "log.txt").write_text("0123")
    assert [part.path for part in source.next(max_bytes=4)] == ["log.txt"]  # the limit is met by the look's last part
    (there / "journal.jsonl").write_text("end\n")
    assert source.next(max_bytes=4) == [Part("journal.jsonl", b"end\n")]
    assert source.next() == []


def test_the_sign_of_life_comes_between_the_pieces_of_a_large_file(folders, monkeypatch):
    monkeypatch.setattr(mirror, "PIECE_BYTES", 4)
    there, _ = folders
    source = Source(there)
    (there / "model").write_bytes(b"0123456789")
    assert [part.path for part in source.next(max_bytes=4)] == ["model"]
    (there / ".alive").touch()
    assert [part.path for part in source.next(max_bytes=4)] == [".alive", "model"]
    assert [part.path for part in source.next(max_bytes=4)] == ["model"]


def test_a_folder_that_vanishes_during_a_look_is_no_error(folders, monkeypatch):
    there, _ = folders
    (there / "checkpoints" / "checkpoint-4").mkdir(parents=True)
    source, walk = Source(there), os.scandir

    def vanishing(path):
        if str(path).endswith("checkpoint-4"):
            os.rmdir(path)
        return walk(path)

    (there / "log.txt").write_text("x")
    monkeypatch.setattr(os, "scandir", vanishing)
    assert [part.path for part in source.next()] == ["log.txt"]


def checkpoint(there, step: int) -> None:
    folder = there / "checkpoints" / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(b"w")
    (folder / "complete.json").write_text("{}")


def test_a_checkpoint_that_makes_room_for_a_newer_one_there_stays_here_until_none_is_left_there(folders):
    there, here = folders
    source = Source(there)
    checkpoint(there, 4)
    brought(source, here)
    checkpoint(there, 8)
    shutil.rmtree(there / "checkpoints" / "checkpoint-4")
    brought(source, here)
    assert sorted(path.name for path in (here / "checkpoints").iterdir()) == ["checkpoint-4", "checkpoint-8"]
    shutil.rmtree(there / "checkpoints")
    marks = [f"checkpoints/checkpoint-{step}/complete.json" for step in (4, 8)]
    assert brought(source, here)[:2] == marks and list(here.iterdir()) == []


def test_half_a_checkpoint_that_is_removed_meanwhile_gets_no_mark(folders):
    there, here = folders
    source = Source(there)
    (there / "checkpoints" / "checkpoint-4").mkdir(parents=True)
    (there / "checkpoints" / "checkpoint-4" / "a").write_bytes(b"1234")
    checkpoint(there, 8)
    (there / "checkpoints" / "checkpoint-4" / "b").write_bytes(b"1234")
    (there / "checkpoints" / "checkpoint-4" / "complete.json").write_text("{}")
    assert [part.path for part in source.next(max_bytes=4)] == ["checkpoints/checkpoint-4/a"]
    (there / "checkpoints" / "checkpoint-4" / "b").unlink()
    assert brought(source, here) == ["checkpoints/checkpoint-8/weights", "checkpoints/checkpoint-8/complete.json"]
