"""Runs that claim to be under way: those whose supervisor is gone, and those that hang."""

from pathlib import Path

from filelock import FileLock

from corl_core.doctor.record import Finding
from corl_core.runs.folder import Run, RunNotFound, all_runs, find_run, read_status
from corl_core.runs.settle import settle
from corl_core.runs.trash import size_bytes, thrown
from corl_core.security import masked
from corl_core.tracking.closing import is_due


def check(runs_dir: Path) -> list[Finding]:
    runs = all_runs(runs_dir)
    found = [finding for run in runs for finding in _one(run)]
    under_way = sum(not run.status().final for run in runs)
    found = [Finding("runs", "ok", f"{len(runs)} in {runs_dir}, {under_way} under way"), *found]
    if items := thrown(runs_dir):
        size = sum(size_bytes(item.run.path) for item in items)
        found.append(Finding("trash", "note", f"{len(items)} deleted, {size / 1e6:,.1f} MB", "python -m corl_core trash --empty"))
    return found


def _one(run: Run) -> list[Finding]:
    if problem := run.problem:
        return [Finding(run.id, "bad", f"run.yaml cannot be read: {problem}", "mend the file, or delete the folder")]
    claim, status = read_status(run.path), run.status()
    if status.state == "stalled":
        return [Finding(run.id, "bad", f"stalled: {status.reason}", f"python -m corl_core stop {run.id} ends it")]
    if status.final and (not claim.final or is_due(claim)):
        found = f"says '{claim.state}', but {status.reason or 'MLflow does not know'}"
        remedy = "write the state down, and close its MLflow runs; then resume it if you like"
        return [Finding(run.id, "note", found, remedy, "close run", {"run": run.id})]
    return []


def close(finding: Finding, runs_dir: Path) -> list[str]:
    """Makes the state that everybody sees the stored one, and tells MLflow; a run that lives after all is left alone."""
    try:
        run = find_run(runs_dir, finding.about["run"])
    except RunNotFound as error:
        return [str(error)]
    with FileLock(run.path / ".resume.lock"):
        status = settle(run)
        if not status.final:
            return [f"{run.id} is {status.state}: left as it is"]
    return [f"{run.id}: written down as {status.state}", *_told_mlflow(run, runs_dir)]


def _told_mlflow(run: Run, runs_dir: Path) -> list[str]:
    from corl_core.tracking.log import TrackingError, sync
    from corl_core.tracking.store import tracking_uri

    try:
        sync(run, tracking_uri(runs_dir))
    except TrackingError as error:
        return [masked(f"{run.id}: MLflow does not know yet: {error}")]
    return [f"{run.id}: its MLflow runs are closed"]
