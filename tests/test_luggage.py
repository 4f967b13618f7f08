"""What travels to a node with an agent, and which checkpoints stay here."""

import pytest

from corl_core.config import load_config
from corl_core.runs import checkpoints, launch
from corl_core.runs.launchers.luggage import data_files, goes_on_from, prune


def checkpoint(folder, step: int, is_whole: bool = True) -> None:
    path = checkpoints.path(folder, step)
    path.mkdir(parents=True)
    (path / "weights").write_bytes(b"w")
    if is_whole:
        (path / checkpoints.COMPLETE).write_text("{}")


def kept(folder) -> list[str]:
    return sorted(path.name for path in checkpoints.folder(folder).iterdir())


def test_data_files_travel_by_field_also_from_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "questions.jsonl").write_text("{}\n")
    for named in (tmp_path / "questions.jsonl", "~/questions.jsonl"):
        config = load_config("demo-pair", [f"data.train={named}"])
        assert data_files(config) == {"train": ("questions.jsonl", b"{}\n")}


def test_a_run_that_goes_on_takes_its_checkpoint_along_and_drops_the_others(tmp_path):
    for step in (4, 8):
        checkpoint(tmp_path, step)
    checkpoint(tmp_path, 2, is_whole=False)
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "weights").write_bytes(b"w")
    (tmp_path / "journal.jsonl").write_text('{"event": "step"}\n{"eve')
    sent = {part.path: part.data for parts in goes_on_from(tmp_path, 4) for part in parts}
    taken = {"checkpoints/checkpoint-4/weights": b"w", "checkpoints/checkpoint-4/complete.json": b"{}"}
    assert sent == taken | {"journal.jsonl": b'{"event": "step"}\n'}
    assert kept(tmp_path) == ["checkpoint-4"]
    assert list(goes_on_from(tmp_path, None)) == []


def test_a_run_that_starts_over_keeps_its_weights_but_none_counts_as_a_step_to_come(tmp_path):
    checkpoint(tmp_path, 8)
    sent = [part.path for parts in goes_on_from(tmp_path, 0) for part in parts]
    assert sent == [] and checkpoints.complete(tmp_path) == []
    assert (checkpoints.path(tmp_path, 8) / "weights").exists()


@pytest.mark.parametrize(
    ("other_has", "stay"),
    [
        ([], [4, 8, 12, 16]),  # no common step yet: one that is on its way may be it
        ([4], [4, 8, 12, 16]),
        ([4, 8], [8, 12, 16]),
        ([12, 16], [12, 16]),  # two are kept, though only the newest is needed
    ],
)
def test_a_checkpoint_goes_when_all_agents_have_a_newer_one(tmp_path, other_has, stay):
    run = launch.create(load_config("demo-pair"), tmp_path)
    one, other = (run.agent_path(name) for name in ("llama", "qwen2"))
    for step in (4, 8, 12, 16):
        checkpoint(one, step)
    for step in other_has:
        checkpoint(other, step)
    prune(run)
    assert checkpoints.complete(one) == stay and checkpoints.complete(other) == other_has


def test_half_a_checkpoint_goes_with_the_older_ones_and_one_on_its_way_stays(tmp_path):
    run = launch.create(load_config("demo-pair"), tmp_path)
    for name in ("llama", "qwen2"):
        for step in (8, 12):
            checkpoint(run.agent_path(name), step)
        for step in (4, 16):
            checkpoint(run.agent_path(name), step, is_whole=False)
    prune(run)
    assert kept(run.agent_path("llama")) == ["checkpoint-12", "checkpoint-16", "checkpoint-8"]
