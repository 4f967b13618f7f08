"""Shards and their index: only what is asked for is read, and an index is extended, made anew, or done without."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corl_core.rollouts import index, shards
from corl_core.rollouts.ballots import run_ballots, run_stamps
from tests.made_rollouts import made_run, record, rows, small_config


def draws(steps, answers="1 1 2 -", label="1"):
    return [{"step": step, "id": f"q{step % 3}", "truth": "1", "a": (answers, label), "b": (answers, label)} for step in steps]


@pytest.fixture
def run(tmp_path):
    return made_run(tmp_path, draws(range(60)))


def folder(run, agent="a"):
    return run.agent_path(agent)


def test_shards_are_known_by_their_steps(run):
    found = shards.shards(folder(run) / "rollouts")
    assert [(shard.first, shard.last) for shard in found] == [(0, 24), (25, 49), (50, 59)]
    assert shards.at(found, 49) == found[1] and shards.at(found, 60) is None


def test_a_step_that_a_resume_wrote_again_is_read_from_the_later_shard(run):
    again = folder(run) / "rollouts" / "000040-000044.parquet"
    pq.write_table(pq.read_table(folder(run) / "rollouts" / "000025-000049.parquet"), again)
    found = shards.shards(folder(run) / "rollouts")
    assert shards.at(found, 42).path == again and shards.at(found, 30).first == 25


def test_only_the_rows_of_one_question_at_one_step_are_returned(run):
    shard = shards.shards(folder(run) / "rollouts")[1]
    table = shards.read(shard, ("completion", "step"), step=31, question_id="q1")
    assert table.num_rows == 4 and set(table["step"].to_pylist()) == {31}
    assert shards.read(shard, ("step",), step=31, question_id="q0").num_rows == 0


def test_a_column_that_a_shard_lacks_is_null_and_added_ones_do_no_harm(run):
    path = folder(run) / "rollouts" / "000000-000024.parquet"
    table = pq.read_table(path)
    changed = table.drop_columns(["pseudo_label"]).append_column("reward/format", pa.array([0.5] * len(table)))
    pq.write_table(changed, path)
    assert index.load(folder(run), 4).table["pseudo_label"].to_pylist()[:26] == [None] * 25 + ["1"]


def test_a_file_that_is_no_shard_is_named_with_the_column_it_lacks(run):
    path = folder(run) / "rollouts" / "000000-000024.parquet"
    pq.write_table(pa.table({"step": [1]}), path)
    with pytest.raises(shards.ShardError, match=r"000000-000024\.parquet has no column 'question_id'"):
        shards.read(shards.shards(folder(run) / "rollouts")[0], ("step",))


def test_a_broken_shard_is_told_and_the_others_are_read(run):
    (folder(run) / "rollouts" / "000025-000049.parquet").write_bytes(b"PAR1 not really")
    found = run_ballots(run.path, ("a", "b"), 4)
    assert len(found.problems) == 1 and found.problems[0].startswith("a: 000025-000049.parquet cannot be read")
    assert found.present[0].sum() == 35 and found.present[1].sum() == 60


def test_a_group_is_one_row_with_its_keys_in_sampling_order(run):
    table = index.load(folder(run), 4).table
    assert table.num_rows == 60
    assert table.slice(0, 1).to_pylist() == [
        {"step": 0, "question_id": "q0", "question": "What is q0?", "group": 0, "keys": ["1", "1", "2", None],
         "pseudo_label": "1", "truth": "1"}
    ]  # fmt: skip


def test_the_truth_is_kept_by_its_canonical_key(tmp_path):
    asked = [{"step": 0, "id": "q", "truth": " 1,000 ", "a": ("1000 1", "1")}, {"step": 0, "id": "r", "a": ("1", "")}]
    run = made_run(tmp_path, asked)
    assert index.load(folder(run), 4).table["truth"].to_pylist() == ["1000", None]


def test_an_index_is_made_once_and_extended_by_new_shards_alone(run):
    assert index.load(folder(run), 4).num_new == 3
    before = run_stamps(run.path, ("a",))
    assert index.load(folder(run), 4).num_new == 0
    record(run, "a", draws(range(60, 70), answers="2 2 2 2"))
    assert run_stamps(run.path, ("a",)) != before
    extended = index.load(folder(run), 4)
    assert extended.num_new == 1 and extended.table["step"].to_pylist() == list(range(70))
    (folder(run) / index.FILE).unlink()
    assert index.load(folder(run), 4).table == extended.table


@pytest.mark.parametrize("damage", ["torn", "other version", "other group size", "a shard is gone"])
def test_an_index_that_does_not_fit_is_made_anew(run, damage, monkeypatch):
    index.load(folder(run), 4)
    path = folder(run) / index.FILE
    size, num = 4, 3
    if damage == "torn":
        path.write_bytes(path.read_bytes()[:-9])
    elif damage == "other version":
        monkeypatch.setattr(index, "VERSION", index.VERSION + 1)
    elif damage == "other group size":
        size = 2
    else:
        (folder(run) / "rollouts" / "000000-000024.parquet").unlink()
        num = 2
    assert index.load(folder(run), size).num_new == num


def test_where_an_index_cannot_be_written_it_lives_in_memory(run):
    (folder(run) / index.FILE).mkdir()
    for _ in range(2):
        assert index.load(folder(run), 4).table.num_rows == 60
    assert not [path for path in folder(run).iterdir() if path.name.startswith(f".{index.FILE}")]


def test_steps_that_a_resume_wrote_again_count_once(tmp_path):
    run = made_run(tmp_path, draws(range(25)))
    index.load(folder(run), 4)
    record(run, "a", draws(range(20, 30), answers="2 2 2 2"), resume=20)
    table = index.load(folder(run), 4).table
    assert table["step"].to_pylist() == list(range(30))
    assert [keys[0] for keys in table["keys"].to_pylist()] == ["1"] * 20 + ["2"] * 10
    (folder(run) / index.FILE).unlink()
    assert index.load(folder(run), 4).table == table


@pytest.mark.parametrize("parting", ["group", "wording", None])
def test_one_question_may_make_two_groups_in_a_step(tmp_path, parting):
    config = small_config(k=2)
    run = made_run(tmp_path, [], config)
    draw = {"step": 0, "id": "q", "truth": "1", "a": ("1 1", "1")}
    both = rows(draw, "a", 0, config) + rows(draw | {"a": ("2 -", "1")}, "a", 1, config)
    table = pa.Table.from_pylist([{"step": 0, "agent": "a"} | row for row in both])
    if "group" in table.column_names:
        table = table.drop_columns(["group"])
    if parting:
        table = table.append_column(parting, pa.array([0, 0, 1, 1] if parting == "group" else ["old", "old", "new", "new"]))
    (folder(run) / "rollouts").mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder(run) / "rollouts" / "000000-000000.parquet")
    found = index.load(folder(run), 2).table
    assert found["group"].to_pylist() == [0, 1] and found["keys"].to_pylist() == [["1", "1"], ["2", None]]


def test_a_run_without_rollouts_has_no_ballots(tmp_path):
    run = made_run(tmp_path, [])
    found = run_ballots(run.path, ("a", "b"), 4)
    assert found.num_draws == 0 and found.num_rollouts == 0 and found.table().empty and not found.problems
