"""The reader returns what was logged, by both of its ways, with numbers small enough to check.

The store is made through MLflow's public API: run A has a cohort and two agents, run B a
cohort alone; one value is NaN, two are infinite, and one step is logged twice.
"""

import math
import sqlite3
from pathlib import Path

import pytest

from corl_core.tracking import reader, reader_sqlite

A, B = "20261130-091400-demo-00aa", "20261130-091500-demo-00bb"
WAYS = ["sqlite", "client"]


@pytest.fixture(scope="module")
def uri(tmp_path_factory: pytest.TempPathFactory) -> str:
    from mlflow import MlflowClient
    from mlflow.entities import Metric

    folder = tmp_path_factory.mktemp("store")
    uri = f"sqlite:///{folder / 'mlflow.db'}"
    client = MlflowClient(uri)
    experiment = client.create_experiment("corl", artifact_location=str(folder / "artifacts"))

    def log(run_id: str, agent: str, *points: tuple[str, float, int, int]) -> str:
        tags = {"corl.run_id": run_id, "corl.role": "agent" if agent else "cohort"}
        made = client.create_run(experiment, tags=tags | ({"corl.agent": agent} if agent else {}))
        metrics = [Metric(key, value, 1000 * time, step) for key, value, step, time in points]
        client.log_batch(made.info.run_id, metrics=metrics)
        return made.info.run_id

    log(A, "", ("agreement", 0.5, 0, 100), ("agreement", 0.75, 1, 101), ("agreement/x.y", 0.5, 0, 100))
    log(A, "x", ("reward", 0.25, 0, 100), ("reward", 0.5, 1, 101), ("reward", 1.0, 2, 102))
    log(A, "y", ("reward", math.nan, 0, 100), ("reward", math.inf, 1, 101), ("entropy", -math.inf, 0, 9))
    log(B, "", ("agreement", 0.125, 0, 200), ("agreement", 0.25, 0, 201))
    client.delete_run(log(B, "ghost", ("reward", 9.0, 0, 1)))
    return uri


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(reader, "_stores", {})
    if request.param == "client":
        monkeypatch.setattr(reader.reader_sqlite, "knows", lambda uri: False)
    return request.param


def line(frame, run_id: str, agent: str, metric: str) -> list[tuple[int, float]]:
    own = frame[(frame.run_id == run_id) & (frame.agent == agent) & (frame.metric == metric)]
    return list(zip(own.step, own.value, strict=True))


def test_history_has_every_line_of_a_run_in_order_of_step(uri: str, way: str):
    frame = reader.history(uri, [A])
    assert list(frame.columns) == reader.HISTORY_COLUMNS
    assert line(frame, A, "", "agreement") == [(0, 0.5), (1, 0.75)]
    assert line(frame, A, "x", "reward") == [(0, 0.25), (1, 0.5), (2, 1.0)]
    assert len(frame) == 9  # 3 of the cohort, 3 of x, 3 of y
    assert frame.loc[frame.metric == "agreement", "time"].tolist() == [100.0, 101.0]


def test_nan_and_infinities_come_back_as_they_were_logged(uri: str, way: str):
    frame = reader.history(uri, [A])
    (_, first), (_, second) = line(frame, A, "y", "reward")
    assert math.isnan(first) and second == math.inf
    assert line(frame, A, "y", "entropy") == [(0, -math.inf)]


def test_an_exact_key_does_not_bring_its_pairs_and_a_star_does(uri: str, way: str):
    assert set(reader.history(uri, [A], ["agreement"]).metric) == {"agreement"}
    assert set(reader.history(uri, [A], ["agreement/*"]).metric) == {"agreement/x.y"}
    assert set(reader.history(uri, [A], ["agreement*"]).metric) == {"agreement", "agreement/x.y"}


def test_a_step_logged_twice_counts_once_and_the_later_value_wins(uri: str, way: str):
    assert line(reader.history(uri, [B]), B, "", "agreement") == [(0, 0.25)]


def test_runs_deleted_in_mlflow_are_not_read(uri: str, way: str):
    assert "ghost" not in set(reader.history(uri, [B]).agent)


def test_latest_is_the_value_at_the_greatest_step(uri: str, way: str):
    frame = reader.latest(uri, [A, B], ["agreement", "reward"])
    assert list(frame.columns) == reader.LATEST_COLUMNS
    assert line(frame, A, "x", "reward") == [(2, 1.0)]
    assert line(frame, A, "y", "reward") == [(1, math.inf)]
    assert line(frame, A, "", "agreement") == [(1, 0.75)]


@pytest.mark.parametrize("run_ids", [[], ["20261130-091400-nobody-0000"]])
def test_runs_that_the_store_does_not_hold_give_an_empty_table(uri: str, way: str, run_ids: list):
    for frame in (reader.history(uri, run_ids), reader.latest(uri, run_ids)):
        assert frame.empty and list(frame.columns)[:3] == ["run_id", "agent", "metric"]


def test_a_missing_store_says_so(tmp_path: Path):
    with pytest.raises(reader.TrackingUnavailable, match="does not exist"):
        reader.history(f"sqlite:///{tmp_path / 'none.db'}", [A])


def test_a_file_that_is_no_database_says_so(tmp_path: Path):
    (tmp_path / "mlflow.db").write_text("not a database, and long enough to look like one")
    with pytest.raises(reader.TrackingUnavailable, match="can't be read"):
        reader.history(f"sqlite:///{tmp_path / 'mlflow.db'}", [A])


def test_a_server_that_does_not_answer_fails_at_once():
    with pytest.raises(reader.TrackingUnavailable, match="does not answer"):
        reader.history("http://127.0.0.1:9", [A])


def test_tables_that_are_not_known_are_left_to_the_client(tmp_path: Path):
    with sqlite3.connect(tmp_path / "other.db") as store:
        store.execute("create table metrics (run_uuid, key, value)")
    assert not reader_sqlite.knows(f"sqlite:///{tmp_path / 'other.db'}")


def test_mlflows_own_tables_are_known(uri: str):
    assert reader_sqlite.knows(uri)


def test_the_query_uses_the_index_of_the_run(uri: str):
    with reader_sqlite._opened(uri) as store:
        plan = store.execute(
            f"explain query plan select * from metrics indexed by {reader_sqlite.INDEX}"
            " where run_uuid in ('a') and key in ('b') and step > 1"
        ).fetchall()
    assert "run_uuid=? AND key=? AND step>?" in plan[0][-1]


def test_only_rows_written_since_are_read_again(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    import shutil

    copy = tmp_path / "mlflow.db"
    shutil.copy(uri.removeprefix("sqlite:///"), copy)
    store = reader_sqlite.SqliteStore(f"sqlite:///{copy}")
    taken: list[int] = []
    take = reader_sqlite.SqliteStore._take

    def counted(self, rows, **how) -> None:
        taken.append(len(rows))
        take(self, rows, **how)

    monkeypatch.setattr(reader_sqlite.SqliteStore, "_take", counted)
    first = store.history([A], ["reward"])
    assert len(first) == 5 and store.history([A], ["reward"]) is first
    with sqlite3.connect(copy) as writer:
        (uuid,) = writer.execute("select run_uuid from tags where key = 'corl.agent' and value = 'x'").fetchone()
        row = (uuid, "reward", 0.75, 105_000, 0, 1)  # the run was resumed at step 1
        writer.execute("insert into metrics (run_uuid, key, value, timestamp, is_nan, step) values (?, ?, ?, ?, ?, ?)", row)
    assert line(store.history([A], ["reward"]), A, "x", "reward") == [(0, 0.25), (1, 0.75)]
    assert taken == [5, 1]  # three of x and two of y, then the one new row alone


def test_a_file_that_was_replaced_is_read_anew(uri: str, tmp_path: Path):
    import shutil

    copy, other = tmp_path / "mlflow.db", tmp_path / "other.db"
    shutil.copy(uri.removeprefix("sqlite:///"), copy)
    store = reader_sqlite.SqliteStore(f"sqlite:///{copy}")
    assert len(store.history([A], None)) == 9
    shutil.copy(copy, other)
    with sqlite3.connect(other) as writer:
        writer.execute("delete from metrics where key = 'reward'")
    other.replace(copy)
    assert set(store.history([A], None).metric) == {"agreement", "agreement/x.y", "entropy"}


def test_tags_are_those_of_the_cohort(uri: str, way: str):
    assert reader.tags(uri, [A])[A]["corl.role"] == "cohort"
    assert reader.tags(uri, []) == {}
