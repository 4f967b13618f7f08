"""Where curves go: whether the tracking store answers, and whether its tables are those of the installed MLflow.

MLflow takes seconds to import, so a SQLite file is read directly and a server is asked over HTTP, as the dashboard does.
"""

import re
import sqlite3
import urllib.error
import urllib.request
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote, urlsplit

from corl_core.doctor.record import Finding
from corl_core.security import masked
from corl_core.tracking.store import sqlite_path, tracking_uri

NAME = "metrics store"
TIMEOUT_S = 5
_REVISION = re.compile(r"^(down_)?revision\s*(?::[^=]*)?=\s*(.+)$", re.MULTILINE)


def check(runs_dir: Path) -> list[Finding]:
    uri = tracking_uri(runs_dir)
    if file := sqlite_path(uri):
        return [sqlite_store(file, newest_revision())]
    if urlsplit(uri).scheme in ("http", "https"):
        return [server(uri)]
    return [Finding(NAME, "note", f"{masked(uri)}: not looked at", "only SQLite files and servers are")]


def sqlite_store(file: Path, newest: str | None) -> Finding:
    """`newest` is the revision that the installed MLflow migrates to; None when it cannot be told."""
    if not file.exists():
        return Finding(NAME, "ok", f"{file} is not there yet: the first run makes it")
    try:
        with closing(sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=TIMEOUT_S)) as store:
            rows = store.execute("select version_num from alembic_version").fetchall()
            num = store.execute("select count(*) from runs where lifecycle_stage = 'active'").fetchone()[0]
    except sqlite3.Error as error:
        remedy = "copy the file away and run 'python -m corl_core sync RUN' for each run: journals hold every value"
        return Finding(NAME, "bad", f"{file} cannot be read: {error}", remedy)
    revision = rows[0][0] if rows else "none"
    words = f"{file}, {num} MLflow runs, schema {revision}"
    if newest and revision != newest:
        remedy = f"with every run stopped: mlflow db upgrade sqlite:///{file} (keep a copy)"
        return Finding(NAME, "bad", f"{words}, and the installed MLflow wants {newest}", remedy)
    return Finding(NAME, "ok", words)


def server(uri: str) -> Finding:
    """Asks for the server's health; credentials in the URI are neither sent nor shown."""
    parts = urlsplit(uri)
    place = f"{parts.scheme}://{parts.hostname}{f':{parts.port}' if parts.port else ''}{parts.path.rstrip('/')}"
    try:
        with urllib.request.urlopen(f"{place}/health", timeout=TIMEOUT_S) as answer:
            return Finding(NAME, "ok", f"{place} answers ({answer.status})")
    except urllib.error.HTTPError as error:
        level = "bad" if error.code >= 500 else "note"
        remedy = "look at the server's log" if error.code >= 500 else "check MLFLOW_TRACKING_USERNAME and …_PASSWORD"
        return Finding(NAME, level, f"{place} answers {error.code}", remedy)
    except (OSError, ValueError) as error:
        remedy = "start it, or check MLFLOW_TRACKING_URI; runs go on meanwhile, and log what it missed"
        return Finding(NAME, "bad", f"{place} does not answer: {masked(str(error))[:200]}", remedy)


def newest_revision() -> str | None:
    """The head of MLflow's migrations: the revision that no other comes after. Read from its files, without importing it."""
    found = find_spec("mlflow")
    if found is None or not found.submodule_search_locations:
        return None
    return head(path.read_text() for path in Path(found.submodule_search_locations[0]).glob("store/db_migrations/versions/*.py"))


def head(migrations) -> str | None:
    revisions, before = set(), set()
    for text in migrations:
        for is_down, value in _REVISION.findall(text):
            (before if is_down else revisions).update(re.findall(r"['\"]([0-9a-z_]+)['\"]", value))
    heads = revisions - before
    return heads.pop() if len(heads) == 1 else None
