"""Reads an MLflow sqlite file directly: read-only, standard library, and each row once.

What was read is kept (24 bytes a value). MLflow only ever adds rows to `metrics`, and sqlite numbers them in the order of
writing, so the next question costs the rows that came since, whichever run or agent they belong to. A file that was
replaced or renumbered (another inode, or fewer rows than before) is read anew.

The index is named in the query because sqlite, without statistics, picks the primary key,
whose first column is the metric: ten times slower on a hundred runs.
"""

import sqlite3
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote

import numpy as np
import pandas as pd

from corl_core.tracking.errors import TrackingUnavailable
from corl_core.tracking.reader_rows import Written, restored, table, wanted, written

PREFIX = "sqlite:///"
INDEX = "index_metrics_run_uuid_key_step"
KNOWN_COLUMNS = {
    "runs": {"run_uuid", "lifecycle_stage"},
    "tags": {"run_uuid", "key", "value"},
    "metrics": {"run_uuid", "key", "value", "step", "timestamp", "is_nan"},
    "latest_metrics": {"run_uuid", "key", "value", "step", "timestamp", "is_nan"},
}
COLUMNS = "run_uuid, key, step, value, is_nan, timestamp, rowid"
LATEST = "run_uuid, key, step, value, is_nan"
KEPT_TABLES = 8
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


class SqliteStore:
    """One file; safe to share between threads."""

    def __init__(self, uri: str):
        self.uri = uri
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        self._lines: dict[tuple[str, str], Written] = {}  # (MLflow run, metric)
        self._read: dict[str, set[str]] = defaultdict(set)  # MLflow run → the keys that were asked for
        self._tables: dict[tuple, pd.DataFrame] = {}  # runs and keys → their table
        self._top = 0  # the number of the last row seen
        self._inode = 0

    def history(self, run_ids: list[str], keys: list[str] | None) -> pd.DataFrame:
        """Every value of the runs, as reader.history gives it."""
        asked = ["*"] if keys is None else keys
        with self._lock, _opened(self.uri) as store:
            store.execute("begin")  # one snapshot for all the queries
            owners = _owners(store, run_ids)
            self._follow(store)
            lacking: dict[tuple[str, ...], list[str]] = defaultdict(list)  # keys → the MLflow runs that lack just these
            for uuid in owners:
                lacking[tuple(key for key in asked if key not in self._read[uuid])].append(uuid)
            for lacked, uuids in lacking.items():
                if not lacked:
                    continue
                self._take(_rows(store, uuids, lacked), replace=True)
                for uuid in uuids:
                    self._read[uuid].update(lacked)
            return self._table(owners, asked)

    def _table(self, owners: dict[str, tuple[str, str]], asked: list[str]) -> pd.DataFrame:
        """The table of what was read; the same one while nothing was read anew. Nobody may change it."""
        question = (tuple(owners), tuple(asked))
        if question not in self._tables:
            mine = [line for line in self._lines if line[0] in owners]
            names = set(wanted({metric for _, metric in mine}, asked))
            lines = [((*owners[uuid], name), self._lines[uuid, name]) for uuid, name in mine if name in names]
            if len(self._tables) >= KEPT_TABLES:
                self._tables.clear()
            self._tables[question] = table(lines)
        return self._tables[question]

    def latest(self, run_ids: list[str], keys: list[str] | None) -> list[tuple]:
        """Rows of run_id, agent, metric, step, value of the greatest step."""
        found = []
        with _opened(self.uri) as store:
            owners = _owners(store, run_ids)
            for uuids in _chunks(list(owners)):
                for some in _chunks(wanted(_names(store, uuids), keys)):
                    where = f"run_uuid in ({_marks(uuids)}) and key in ({_marks(some)})"
                    rows = store.execute(f"select {LATEST} from latest_metrics where {where}", uuids + some)
                    found += [(*owners[uuid], key, step, restored(value, bool(nan))) for uuid, key, step, value, nan in rows]
        return found

    def tags(self, run_ids: list[str]) -> dict[str, dict[str, str]]:
        """Run id → the tags of its cohort."""
        found: dict[str, dict[str, str]] = {}
        with _opened(self.uri) as store:
            cohorts = {uuid: run_id for uuid, (run_id, agent) in _owners(store, run_ids).items() if not agent}
            for some in _chunks(list(cohorts)):
                query = f"select run_uuid, key, value from tags where run_uuid in ({_marks(some)})"
                for uuid, key, value in store.execute(query, some):
                    found.setdefault(cohorts[uuid], {})[key] = value
        return found

    def _follow(self, store: sqlite3.Connection) -> None:
        """Takes in the rows that were written since the last question."""
        inode, top = _path(self.uri).stat().st_ino, store.execute("select max(rowid) from metrics").fetchone()[0] or 0
        if inode != self._inode or top < self._top:
            self._forget()
        elif top > self._top and self._read:
            rows = store.execute(f"select {COLUMNS} from metrics where rowid > ?", (self._top,))
            known = self._read
            self._take([row for row in rows if row[0] in known and wanted([row[1]], known[row[0]])], replace=False)
        self._inode, self._top = inode, top

    def _take(self, rows: list[tuple], replace: bool) -> None:
        """Keeps rows in the order of writing: in place of a line's rows, or after them."""
        for line, new in _by_line(rows).items():
            old = None if replace else self._lines.get(line)
            self._lines[line] = new if old is None else old.then(new)
            self._tables.clear()


def _by_line(rows: list[tuple]) -> dict[tuple[str, str], Written]:
    """Rows of COLUMNS by MLflow run and metric, each in the order of writing."""
    if not rows:
        return {}
    uuids, keys, steps, values, is_nan, stamps, numbers = zip(*rows, strict=True)
    code: dict[tuple[str, str], int] = {}
    codes = np.array([code.setdefault(line, len(code)) for line in zip(uuids, keys, strict=True)])
    order = np.lexsort((np.array(numbers), codes))
    ends = np.searchsorted(codes[order], np.arange(1, len(code)))
    columns = [np.array(steps, dtype=np.int64), np.array(values, dtype=float), np.array(is_nan, dtype=bool), np.array(stamps)]
    parts = zip(*(np.split(column[order], ends) for column in columns), strict=True)
    return {line: written(*part) for line, part in zip(code, parts, strict=True)}


def _rows(store: sqlite3.Connection, run_uuids: list[str], keys: Iterable[str]) -> list[tuple]:
    """Every row of the runs and keys."""
    rows = []
    for uuids in _chunks(run_uuids):
        for some in _chunks(wanted(_names(store, uuids), keys)):
            where = f"run_uuid in ({_marks(uuids)}) and key in ({_marks(some)})"
            rows += store.execute(f"select {COLUMNS} from metrics indexed by {INDEX} where {where}", uuids + some).fetchall()
    return rows


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


def _path(uri: str) -> Path:
    return Path(uri.removeprefix(PREFIX).partition("?")[0])


@contextmanager
def _opened(uri: str) -> Iterator[sqlite3.Connection]:
    path = _path(uri)
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
