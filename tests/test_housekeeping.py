"""Names, notes and tags; the trash; checkpoints by rule; and what of it MLflow hears."""

import json
import threading

import pytest

from corl_core.cli import main
from corl_core.config import ConfigError
from corl_core.runs import checkpoints, labels, trash
from corl_core.runs.folder import RunNotFound, all_runs
from corl_core.runs.launch import LaunchError
from corl_core.runs.prune import prune, superfluous
from tests.pages.made_runs import make_run, run_config


@pytest.fixture
def run(tmp_path):
    return make_run(tmp_path / "runs", run_config(steps=3), logged=False)


def test_labels_stand_beside_run_yaml_and_change_nothing_in_it(run):
    before = (run.path / "run.yaml").read_bytes()
    labels.rename(run, "  Ada's   ring ")
    labels.write_note(run, "one\ntwo")
    labels.change_tags(run, ["paper", "b"], [])
    labels.change_tags(run, ["a", "paper"], ["b"])
    assert labels.labels(run) == labels.Labels("Ada's ring", "one\ntwo", ("a", "paper"))
    assert labels.shown_name(run) == "Ada's ring" and (run.path / "run.yaml").read_bytes() == before
    labels.rename(run, "")
    assert labels.shown_name(run) == run.config.name


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda run: labels.rename(run, "x" * 10_000_000), "the name has 10,000,000 characters, and 80 are allowed"),
        (lambda run: labels.rename(run, "a\x1b[31mb"), "cannot be shown"),
        (lambda run: labels.write_note(run, "x" * 10_000_000), "the note has 10,000,000 characters"),
        (lambda run: labels.change_tags(run, [str(number) for number in range(21)], []), "21 tags, and a run has at most 20"),
        (lambda run: labels.change_tags(run, ["a,b"], []), "without commas"),
        (lambda run: labels.change_tags(run, [], ["nope"]), "tag 'nope': .* has no tags"),
    ],
)
def test_labels_have_limits_that_are_said(run, change, said):
    with pytest.raises(ConfigError, match=said) as refused:
        change(run)
    assert len(str(refused.value)) < 300 and labels.labels(run) == labels.Labels()


DAMAGED = [b"", b"[]", b'{"name": 1}', b'{"shell": "x"}', b'{"tags": {"a": 1}}', b"[" * 60_000, b"\xff" * 70_000]


@pytest.mark.parametrize("content", DAMAGED)
def test_a_damaged_labels_file_counts_as_none(run, content):
    (run.path / "labels.json").write_bytes(content)
    assert labels.labels(run) == labels.Labels()


def test_markup_and_paths_in_labels_are_kept_as_text(run):
    name = "<script>alert(1)</script> ../../etc/passwd"
    labels.rename(run, name)
    assert labels.labels(run).name == name and [path.name for path in run.path.parent.iterdir()] == [run.id]


def test_two_at_once_lose_nothing(run):
    writers = [threading.Thread(target=labels.change_tags, args=(run, [f"t{number}"], [])) for number in range(8)]
    [writer.start() for writer in writers]
    [writer.join() for writer in writers]
    assert labels.labels(run).tags == tuple(f"t{number}" for number in range(8))


def test_a_deleted_run_comes_back_until_the_trash_is_emptied(run):
    runs_dir, size = run.path.parent, trash.size_bytes(run.path)
    item = trash.throw(run, with_mlflow=True)
    assert all_runs(runs_dir) == [] and [each.id for each in trash.thrown(runs_dir)] == [run.id]
    assert item.with_mlflow and trash.find(runs_dir, run.id[:12]).id == run.id
    assert trash.restore(item) == run and [each.id for each in all_runs(runs_dir)] == [run.id]
    assert trash.thrown(runs_dir) == []
    freed = trash.empty([trash.throw(run)])
    assert freed >= size and list((runs_dir / ".trash").iterdir()) == []


def test_what_runs_is_not_deleted(tmp_path):
    busy = make_run(tmp_path, run_config(), "running", 2, logged=False)
    with pytest.raises(LaunchError, match="is still running: stop it first"):
        trash.throw(busy)
    assert busy.path.exists()


def test_a_name_never_becomes_a_path(run, tmp_path):
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "run.yaml").write_text("name: x")
    trash.throw(run)
    for ref in ("../../precious", "..", "", "/", str(tmp_path / "precious")):
        with pytest.raises(RunNotFound):
            trash.find(run.path.parent, ref)


def test_a_link_is_not_followed_into_another_folder(run, tmp_path):
    elsewhere = make_run(tmp_path / "elsewhere", run_config("other"), number=3, logged=False)
    link = run.path.parent / elsewhere.id
    link.symlink_to(elsewhere.path)
    linked = next(each for each in all_runs(run.path.parent) if each.id == elsewhere.id)
    with pytest.raises(LaunchError, match="is a link"):
        trash.throw(linked)
    (run.path / "to_elsewhere").symlink_to(elsewhere.path)
    trash.empty([trash.throw(run)])
    assert (elsewhere.path / "run.yaml").exists()


def test_a_run_is_not_restored_over_another(run):
    item = trash.throw(run)
    run.path.mkdir()
    with pytest.raises(LaunchError, match="there is a run of that id"):
        trash.restore(item)


def steps_kept(run) -> dict[str, list[int]]:
    return {agent.name: checkpoints.complete(run.agent_path(agent.name)) for agent in run.config.agents}


def checkpointed(tmp_path, state, method="corl", **steps):
    run = make_run(tmp_path, run_config(method=method), state, 4, logged=False)
    for agent in run.config.agents:
        for step in steps.get(agent.name, (5, 10, 15)):
            folder = checkpoints.path(run.agent_path(agent.name), step)
            folder.mkdir(parents=True)
            (folder / "optimizer.pt").write_bytes(b"x" * 1000)
            (folder / checkpoints.COMPLETE).write_text("{}")
    return run


def test_a_finished_run_keeps_no_checkpoints_and_a_stopped_one_its_newest(tmp_path):
    assert prune(checkpointed(tmp_path / "a", "finished")) == 9 * 1002  # three agents of three checkpoints, 1000 + 2 bytes each
    stopped = checkpointed(tmp_path / "b", "stopped")
    prune(stopped)
    assert set(map(tuple, steps_kept(stopped).values())) == {(15,)}
    assert prune(stopped, keep=5) == 0 and superfluous(stopped, 5) == []


def test_on_a_ring_the_newest_step_that_all_agents_have_is_kept(tmp_path):
    run = checkpointed(tmp_path, "failed", llama=(5, 10, 15), qwen2=(5, 10), gpt_neox=(5, 10, 15))
    half = checkpoints.path(run.agent_path("qwen2"), 15)
    half.mkdir()  # cut off while it was written: no mark
    before = checkpoints.resume_steps(run)
    prune(run, keep=1)
    assert checkpoints.resume_steps(run) == before == {"llama": 10, "qwen2": 10, "gpt_neox": 10}
    assert set(map(tuple, steps_kept(run).values())) == {(10,)} and not half.exists()


def test_without_a_ring_each_agent_keeps_its_own(tmp_path):
    run = checkpointed(tmp_path, "failed", "ttrl", llama=(5, 10), qwen2=(5,))
    prune(run, keep=1)
    assert steps_kept(run) == {"llama": [10], "qwen2": [5], "gpt_neox": [15]}


def test_checkpoints_of_a_run_under_way_are_its_own_business(tmp_path):
    with pytest.raises(LaunchError, match="is still running"):
        prune(checkpointed(tmp_path, "running"))


def test_the_commands_do_what_the_pages_do(run, capsys):
    def said(*argv) -> dict:
        assert main([*argv, "--runs", str(run.path.parent), "--json"]) == 0
        return json.loads(capsys.readouterr().out)

    assert said("rename", run.id, "mine")["name"] == "mine"
    assert said("note", run.id, "why")["note"] == "why"
    assert said("tag", run.id, "a", "b")["tags"] == ["a", "b"]
    assert said("tag", run.id, "--remove", "a")["tags"] == ["b"]
    assert list(said("trash")["runs"]) == [run.id]
    assert list(said("trash", run.id)["trash"]) == [run.id] and not run.path.exists()
    assert said("trash", "--restore", run.id)["trash"] == {} and run.path.exists()
    assert said("prune", "--all")["freed"] == {run.id: "0.0 MB"}
    said("trash", run.id)
    assert said("trash", "--empty")["trash"] == {} and all_runs(run.path.parent) == []


def test_mlflow_hears_of_labels_deletion_return_and_import(tmp_path, capsys):
    from mlflow import MlflowClient

    from corl_core.runs.archive import archive
    from corl_core.tracking.housekeeping import delete_runs, log_imported, logged, mirror_labels, restore_runs
    from corl_core.tracking.store import tracking_uri

    runs_dir = tmp_path / "runs"
    run = make_run(runs_dir, run_config(steps=2))
    uri, client = tracking_uri(runs_dir), MlflowClient(tracking_uri(runs_dir))
    labels.rename(run, "mine")
    labels.change_tags(run, ["paper"], [])
    assert mirror_labels(run, runs_dir) == 4  # the cohort and three agents
    uuids = logged(run, uri)
    cohort = client.get_run(uuids[""])
    assert cohort.info.run_name == "mine" and cohort.data.tags["corl.tags"] == "paper"
    assert client.get_run(uuids["llama"]).info.run_name == "mine · llama"
    delete_runs(run, runs_dir)
    assert {client.get_run(uuid).info.lifecycle_stage for uuid in uuids.values()} == {"deleted"}
    restore_runs(run, runs_dir)
    assert {client.get_run(uuid).info.lifecycle_stage for uuid in uuids.values()} == {"active"}
    assert log_imported(run, runs_dir) is False  # the store has it
    archive(run, tmp_path / "a.zip")
    assert main(["import", str(tmp_path / "a.zip"), "--runs", str(tmp_path / "there"), "--json"]) == 0
    found = MlflowClient(tracking_uri(tmp_path / "there")).search_runs(["1"])
    assert len(found) == 4 and {each.info.status for each in found} == {"FINISHED"}
