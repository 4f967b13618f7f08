"""What housekeeping does in MLflow: labels as tags, runs deleted and brought back with theirs, dead ones closed.

MLflow itself only marks a deleted run; `mlflow gc` removes it for good. The run folder's tracking.json says which MLflow runs are
a run's own, so nobody else's is ever touched.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from corl_core.runs.folder import Run
from corl_core.runs.labels import labels
from corl_core.security import masked
from corl_core.tracking.log import TAG_LENGTH, TrackingError, sync
from corl_core.tracking.reader import TrackingUnavailable, tags
from corl_core.tracking.store import ensure_store, tracking_uri


def logged(run: Run, uri: str) -> dict[str, str]:
    """agent → its MLflow run in this store, '' the cohort's; {} when the run has not been logged there."""
    try:
        known = json.loads((run.path / "tracking.json").read_text())
        return dict(known.get(masked(uri, {}), {}).get("runs", {}))
    except (OSError, ValueError, AttributeError):
        return {}


def mirror_labels(run: Run, runs_dir: Path) -> int:
    """Name, note and tags into MLflow's own places for them; returns how many MLflow runs know them. Raises TrackingError."""
    own, uri = labels(run), tracking_uri(runs_dir)
    name = own.name or run.config.name

    def write(client: Any, agent: str, uuid: str) -> None:
        client.set_tag(uuid, "mlflow.runName", f"{name} · {agent}" if agent else name)
        client.set_tag(uuid, "corl.tags", ", ".join(own.tags))
        if not agent and (note := own.note or run.config.notes):
            client.set_tag(uuid, "mlflow.note.content", note[:TAG_LENGTH])

    return _each(run, uri, runs_dir, write)


def delete_runs(run: Run, runs_dir: Path) -> int:
    """Marks the run's MLflow runs as deleted, agents first. Raises TrackingError."""
    return _each(run, tracking_uri(runs_dir), runs_dir, lambda client, _, uuid: client.delete_run(uuid))


def restore_runs(run: Run, runs_dir: Path) -> int:
    """Takes that mark away again. Raises TrackingError."""
    return _each(run, tracking_uri(runs_dir), runs_dir, lambda client, _, uuid: client.restore_run(uuid))


def log_imported(run: Run, runs_dir: Path) -> bool:
    """Logs a run that came out of an archive, unless the store has it already (one store, several machines). Raises
    TrackingError."""
    uri = tracking_uri(runs_dir)
    try:
        if tags(uri, [run.id]):
            return False
    except TrackingUnavailable:  # a sqlite file that is not there yet is made below; a server that is down says so there
        pass
    sync(run, uri)
    return True


def _each(run: Run, uri: str, runs_dir: Path, action: Callable[[Any, str, str], Any]) -> int:
    """Does it for each of the run's MLflow runs, the cohort's last; 0 without any, and then no store is opened."""
    owned = sorted(logged(run, uri).items(), reverse=True)
    if not owned:
        return 0
    try:
        client = ensure_store(uri, runs_dir)
        for agent, uuid in owned:
            action(client, agent, uuid)
    except Exception as error:  # MLflow's many kinds, its drivers' and the network's
        why = masked(" ".join(str(error).split()))[:300]
        raise TrackingError(f"MLflow at {masked(uri)} did not take it: {why}") from error
    return len(owned)
