"""A run as one file: what goes in comes out, and whatever else a file may hold stays outside."""

import hashlib
import json
import os
import zipfile

import pytest

from corl_core.cli import main
from corl_core.runs import archive
from corl_core.runs.archive_check import MANIFEST, ArchiveError
from corl_core.runs.folder import Run, all_runs, read_status
from corl_core.runs.labels import labels, rename
from corl_core.runs.launch import LaunchError
from tests.pages.made_runs import make_run, run_config


@pytest.fixture
def run(tmp_path) -> Run:
    """A finished run with rollouts, weights, a checkpoint, and a file that no run writes."""
    made = make_run(tmp_path / "here", run_config(steps=3), logged=False)
    agent = made.agent_path("llama")
    for name, content in {
        "rollouts/000000-000002.parquet": b"PAR1....PAR1",
        "model/model.safetensors": b"\x02\0\0\0\0\0\0\0{}" + b"\0" * 20,
        "model/config.json": b"{}",
        "model/README.md": b"# demo: agent llama",
        "model/adapter/adapter_config.json": b"{}",
        "checkpoints/checkpoint-2/optimizer.pt": b"PK",
        "notes.sh": b"rm -rf /",
    }.items():
        (agent / name).parent.mkdir(parents=True, exist_ok=True)
        (agent / name).write_bytes(content)
    return made


def contents(run: Run) -> dict[str, bytes]:
    return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def test_what_goes_in_comes_out_but_checkpoints_and_strangers(run, tmp_path):
    rename(run, "Ada's")
    left = archive.archive(run, tmp_path / "a.zip")
    assert {name for name in left if "lock" not in name} == {
        "agents/llama/checkpoints/checkpoint-2/optimizer.pt", "agents/llama/notes.sh",
    }  # fmt: skip
    there = archive.restore(tmp_path / "a.zip", tmp_path / "there")
    assert there.id == run.id and there.config == run.config and labels(there).name == "Ada's"
    before, after = contents(run), contents(there)
    assert set(after) == set(before) - set(left) - {"status.json"} | {"status.json"}
    assert all(after[name] == before[name] for name in after if name != "status.json")
    assert read_status(there.path).pid is None and there.status().state == "finished"


def test_equal_runs_make_equal_archives_and_weights_may_stay_behind(run, tmp_path):
    archive.archive(run, tmp_path / "a.zip")
    archive.archive(run, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    archive.archive(run, tmp_path / "c.zip", with_models=False)
    assert not [name for name in zipfile.ZipFile(tmp_path / "c.zip").namelist() if "model/" in name]


def test_a_run_under_way_is_not_archived_and_a_link_in_it_is_never_followed(run, tmp_path):
    (tmp_path / "secret").write_text("secret")
    (run.path / "supervisor.log").unlink(missing_ok=True)
    (run.path / "supervisor.log").symlink_to(tmp_path / "secret")
    archive.archive(run, tmp_path / "a.zip")
    assert "supervisor.log" not in zipfile.ZipFile(tmp_path / "a.zip").namelist()
    busy = make_run(tmp_path / "here", run_config(), "running", 2, 7, logged=False)
    with pytest.raises(LaunchError, match="is still running: only a run that has ended"):
        archive.archive(busy, tmp_path / "b.zip")
    assert not (tmp_path / "b.zip").exists()


def forged(run, target, change=None, extra=(), drop=(), manifest=None):
    """An archive with files changed, added or left out, and its list made to fit unless `manifest` changes that."""
    files = {name: content for name, content in contents(run).items() if archive.archive_check.is_known(name)}
    files = {name: content for name, content in files.items() if name not in drop} | (change or {})
    named = [(name, content) for name, content in [*files.items(), *extra] if isinstance(name, str)]
    listed = {name: {"size": len(content), "sha256": hashlib.sha256(content).hexdigest()} for name, content in named}
    about = {"format": 1, "id": run.id, "files": listed}
    if manifest:
        manifest(about)
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(MANIFEST, json.dumps(about))
        for name, content in [*files.items(), *extra]:
            made.writestr(name, content)
    return target


def test_a_forged_archive_that_is_sound_is_taken(run, tmp_path):
    assert archive.restore(forged(run, tmp_path / "f.zip"), tmp_path / "there").id == run.id


@pytest.mark.parametrize(
    "name",
    ["../evil", "/etc/cron.d/evil", "agents/../../evil", "..\\evil", "C:\\evil", "agents/llama/rollouts/../../../../x.parquet",
     "a\0b", "agents/llama/model/../../../../x.json",
     "run.sh", "agents/llama/model/train.py", "agents/llama/checkpoints/c/optimizer.pt",
     "agents/llama/model/pytorch_model.bin", "agents/LLAMA/log.txt", "agents/llama/model/.hidden.json", ".resume.lock", "stop"],
)  # fmt: skip
def test_no_name_leads_out_of_the_folder_and_no_strange_file_comes_in(run, tmp_path, name):
    there = tmp_path / "there"
    with pytest.raises(ArchiveError, match=r"leads out of|is no file of a run|not both"):
        archive.restore(forged(run, tmp_path / "f.zip", extra=[(name, b"x")]), there)
    assert list(there.iterdir()) == [] and not (tmp_path / "evil").exists()


def test_links_folders_and_devices_are_refused(run, tmp_path):
    for mode in (0o120777, 0o040755, 0o020666, 0o010666):  # link, folder, device, pipe
        info = zipfile.ZipInfo("supervisor.log")
        info.external_attr = mode << 16
        path = forged(run, tmp_path / "f.zip", drop=["supervisor.log"], extra=[(info, b"/etc/passwd")])
        with pytest.raises(ArchiveError, match="a link, a folder or a device"):
            archive.restore(path, tmp_path / "there")


def no_status(about):
    about["files"].pop("status.json")


def other_digest(about):
    about["files"]["run.yaml"]["sha256"] = "0" * 64


def other_size(about):
    about["files"]["run.yaml"]["size"] = 10**15


@pytest.mark.parametrize(
    ("forge", "said"),
    [
        ({"change": {"run.yaml": b"name: x\nmethod: nonsense\n"}}, "run.yaml, status.json or labels.json cannot be read"),
        ({"change": {"run.yaml": b"!!python/object/apply:os.system ['id']"}}, "could not determine a constructor"),
        ({"change": {"run.yaml": b"x" * 2_000_000}}, "run.yaml has 2,000,000 bytes"),
        ({"change": {"status.json": b'{"state": "running", "created": 1}'}}, "says 'running', and only a run that has ended"),
        ({"change": {"status.json": b'{"state": "finished", "created": "<b>"}'}}, "only a run that has ended"),
        ({"change": {"status.json": b'{"state": "finished", "created": 1, "shell": "x"}'}}, "cannot be read"),
        ({"change": {"status.json": b'{"state": "finished", "created": 1, "alarms": [{"kind": 1}]}'}}, "cannot be read"),
        ({"change": {"labels.json": b'{"name": "' + b"x" * 500 + b'"}'}}, "the name has 500 characters"),
        ({"change": {"journal.jsonl": b"[1, 2]\n"}}, "journal.jsonl has a line that no run writes"),
        ({"change": {"journal.jsonl": b"[" * 100_000 + b"\n"}}, "journal.jsonl has a line that no run writes"),
        ({"change": {"agents/llama/rollouts/000000-000002.parquet": b"\x80\x04pickle"}}, "is no Parquet file"),
        ({"change": {"agents/llama/model/model.safetensors": b"PK\x03\x04 a pickled model"}}, "is no safetensors file"),
        ({"extra": [("agents/stranger/log.txt", b"hello")]}, "agents/stranger/log.txt belongs to no agent"),
        ({"drop": ["run.yaml"]}, "it has no run.yaml"),
        ({"manifest": no_status}, "not both in the archive and in its list"),
        ({"manifest": other_digest}, "run.yaml is not what was archived"),
        ({"manifest": other_size}, "unpacks to 1,000,000,000 MB"),
        ({"manifest": lambda about: about.update(id="../../evil")}, "no run's id"),
        ({"manifest": lambda about: about.update(id="<script>")}, "no run's id"),
        ({"manifest": lambda about: about.update(format=2)}, "another format"),
        ({"manifest": lambda about: about.clear()}, "is not the list of an archived run"),
    ],
)  # fmt: skip
def test_content_is_checked_file_by_file_and_a_refusal_leaves_nothing_behind(run, tmp_path, forge, said):
    with pytest.raises(ArchiveError, match=said):
        archive.restore(forged(run, tmp_path / "f.zip", **forge), tmp_path / "there")
    assert list((tmp_path / "there").iterdir()) == []


def test_a_bomb_is_not_unpacked(run, tmp_path):
    """50 MB of zeros are 50 kB in the file; the limit counts what they unpack to."""
    bomb = forged(run, tmp_path / "f.zip", change={"supervisor.log": b"\0" * 50_000_000})
    assert bomb.stat().st_size < 500_000
    with pytest.raises(ArchiveError, match="unpacks to 50 MB, and 10 MB are allowed"):
        archive.restore(bomb, tmp_path / "there", max_bytes=10_000_000)


def test_a_size_that_lies_ends_the_unpacking(run, tmp_path):
    """Both lists are made to say 5 bytes where 5 MB come out."""
    def small(about):
        about["files"]["supervisor.log"]["size"] = 5

    path = forged(run, tmp_path / "f.zip", change={"supervisor.log": b"\0" * 5_000_000}, manifest=small)
    content = path.read_bytes()
    path.write_bytes(content.replace((5_000_000).to_bytes(4, "little"), (5).to_bytes(4, "little")))
    with pytest.raises(ArchiveError, match=r"supervisor\.log is larger than it says|damaged"):
        archive.restore(path, tmp_path / "there")
    assert list((tmp_path / "there").iterdir()) == []


def test_what_is_no_zip_is_said_so(tmp_path):
    (tmp_path / "x.zip").write_bytes(b"hello")
    with pytest.raises(ArchiveError, match="not an archive of a run"):
        archive.restore(tmp_path / "x.zip", tmp_path / "there")
    with pytest.raises(ArchiveError, match="No such file"):
        archive.restore(tmp_path / "nowhere.zip", tmp_path / "there")


def test_too_many_files_and_one_twice_are_refused(run, tmp_path, monkeypatch):
    with pytest.warns(UserWarning, match="Duplicate name"):
        twice = forged(run, tmp_path / "f.zip", extra=[("run.yaml", b"name: other")])
    with pytest.raises(ArchiveError, match="a file is in it twice"):
        archive.restore(twice, tmp_path / "there")
    monkeypatch.setattr(archive.archive_check, "MAX_FILES", 3)
    with pytest.raises(ArchiveError, match="files, and 3 are allowed"):
        archive.restore(forged(run, tmp_path / "g.zip"), tmp_path / "there")


def test_a_run_that_is_here_is_not_written_over(run, tmp_path):
    archive.archive(run, tmp_path / "a.zip")
    with pytest.raises(ArchiveError, match="is here already"):
        archive.restore(tmp_path / "a.zip", run.path.parent)
    assert [each.id for each in all_runs(run.path.parent)] == [run.id]


def test_the_commands_carry_a_run_from_one_folder_to_another(run, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["archive", run.id, "--runs", str(run.path.parent), "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert main(["import", made["file"], "--runs", str(tmp_path / "there"), "--no-sync", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["id"] == run.id and os.listdir(tmp_path / "there") == [run.id]
    assert main(["import", made["file"], "--runs", str(tmp_path / "there")]) == 2
    assert "is here already" in capsys.readouterr().err
