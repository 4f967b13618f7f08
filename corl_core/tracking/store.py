"""Where curves are kept: MLflow's tracking store, SQLite in the runs folder unless a server is named."""

import logging
import os
import sqlite3
from pathlib import Path

from filelock import FileLock

EXPERIMENT = "corl"
logging.getLogger("mlflow.store.db.utils").setLevel(logging.WARNING)


def tracking_uri(runs_dir: Path) -> str:
    """`MLFLOW_TRACKING_URI`, or `sqlite:///<runs_dir>/mlflow.db`."""
    return os.environ.get("MLFLOW_TRACKING_URI") or f"sqlite:///{Path(runs_dir).resolve() / 'mlflow.db'}"


def sqlite_path(uri: str) -> Path | None:
    """The file behind a sqlite URI, else None."""
    return Path(uri.removeprefix("sqlite:///")) if uri.startswith("sqlite:///") else None


def ensure_store(uri: str, runs_dir: Path):
    """An MlflowClient on a store that has its schema and the experiment.

    The schema is made under a lock: two processes that open an empty SQLite file at once break it. SQLite is set to
    write-ahead logging, once and for good, so that readers do not hold up the writer.
    """
    # A server that is down should be noticed soon; whoever logs tries again by itself.
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "1")
    os.environ.setdefault("MLFLOW_HTTP_REQUEST_TIMEOUT", "15")
    from mlflow import MlflowClient

    Path(runs_dir).mkdir(parents=True, exist_ok=True)
    with FileLock(Path(runs_dir) / ".mlflow.lock"):
        file = sqlite_path(uri)
        if file and not file.exists():
            _make(file)
        client = MlflowClient(uri)
        if client.get_experiment_by_name(EXPERIMENT) is None:
            artifacts = (Path(runs_dir).resolve() / "artifacts").as_uri() if file else None
            client.create_experiment(EXPERIMENT, artifact_location=artifacts)
        if file:
            with sqlite3.connect(file) as connection:
                connection.execute("PRAGMA journal_mode=WAL")
    return client


def _make(file: Path) -> None:
    """A SQLite store with its tables, whole or not at all: one whose making is cut off, by a full disk say, never opens again."""
    from mlflow import MlflowClient

    unfinished = file.with_name(f".{file.name}.unfinished")
    unfinished.unlink(missing_ok=True)
    MlflowClient(f"sqlite:///{unfinished}").search_experiments(max_results=1)
    unfinished.rename(file)
