"""Reads an MLflow sqlite file directly: read-only, standard library, one query.

The index is named in the query because sqlite, without statistics, picks the primary key,
whose first column is the metric: ten times slower on a hundred runs.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

from corl_core.tracking.reader_rows import TrackingUnavailable, restored, wanted

PREFIX = "sqlite:///"
INDEX = "index_metrics_run_uuid_key_step"
KNOWN_COLUMNS = {
    "runs": {"run_uuid", "lifecycle_stage"},
    "tags": {"run_uuid", "key", "value"},
    "metrics": {"run_uuid", "key", "value", "step", "timestamp", "is_nan"},
    "latest_metrics": {"run_uuid", "key", "value", "step", "timestamp", "is_nan"},
}
CHUNK = 400  # below the number of variables that any sqlite allows in a query


def knows(uri: str) -> bool:
    """True for a sqlite store with the tables this module reads.

    Raises TrackingUnavailable when the file is missing or can't be opened.
    """
    if not uri.startswith(PREFIX):
        return False
    with _opened(uri) as store:
        indexes = {row[1] for row in store.execute("pragma index_list(metrics)")}
        return INDEX in indexes and all(
            columns <= {row[1] for row in store.execute(f"pragma table_info({table})")}
            for table, columns in KNOWN_COLUMNS.items()
        )


def history(uri: str, run_ids: list[str], keys: list[str] | None, after_step: int | None) -> list[tuple]:
    """Rows of run_id, agent, metric, step, value, time."""
    clause = "" if after_step is None else f" and step > {int(after_step)}"
    source = f"metrics indexed by {INDEX}"
    return _rows(uri, run_ids, keys, source, clause)


def latest(uri: str, run_ids: list[str], keys: list[str] | None) -> list[tuple]:
    """The same rows, of the greatest step only."""
    return _rows(uri, run_ids, keys, "latest_metrics", "")


def _rows(uri: str, run_ids: list[str], keys: list[str] | None, source: str, clause: str) -> list[tuple]:
    found: list[tuple] = []
    with _opened(uri) as store:
        owners = _owners(store, run_ids)
        for uuids in _chunks(list(owners)):
            names = wanted(_names(store, uuids), keys)
            for some in _chunks(names):
                query = (
                    f"select run_uuid, key, step, value, is_nan, timestamp from {source}"
                    f" where run_uuid in ({_marks(uuids)}) and key in ({_marks(some)}){clause}"
                )
                for uuid, key, step, value, is_nan, stamp in store.execute(query, uuids + some):
                    seen = (key, step, restored(value, bool(is_nan)), (stamp or 0) / 1000)
                    found.append((*owners[uuid], *seen))
    return found


def _owners(store: sqlite3.Connection, run_ids: list[str]) -> dict[str, tuple[str, str]]:
    """MLflow run to (our run id, agent), of runs that were not deleted in MLflow."""
    owners: dict[str, tuple[str, str]] = {}
    for some in _chunks(run_ids):
        query = (
            "select ours.run_uuid, ours.value, coalesce(agent.value, '') from tags ours"
            " join runs on runs.run_uuid = ours.run_uuid and runs.lifecycle_stage = 'active'"
            " left join tags agent"
            " on agent.run_uuid = ours.run_uuid and agent.key = 'corl.agent'"
            f" where ours.key = 'corl.run_id' and ours.value in ({_marks(some)})"
        )
        owners |= {uuid: (ours, agent) for uuid, ours, agent in store.execute(query, some)}
    return owners


def _names(store: sqlite3.Connection, uuids: list[str]) -> list[str]:
    query = f"select distinct key from latest_metrics where run_uuid in ({_marks(uuids)})"
    return [row[0] for row in store.execute(query, uuids)]


@contextmanager
def _opened(uri: str) -> Iterator[sqlite3.Connection]:
    path = Path(uri.removeprefix(PREFIX).partition("?")[0])
    if not path.exists():
        raise TrackingUnavailable(f"No metrics yet: the store {path} does not exist.")
    try:
        address = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=5)) as store:
            yield store
    except sqlite3.Error as error:
        raise TrackingUnavailable(f"The metrics store {path} can't be read: {error}.") from error


def _chunks(items: list[str]) -> Iterator[list[str]]:
    yield from (items[start : start + CHUNK] for start in range(0, len(items), CHUNK))


def _marks(items: list[str]) -> str:
    return ", ".join("?" * len(items))
