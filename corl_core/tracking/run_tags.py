"""By which tags a run is found in MLflow, and what else they say of it."""

import subprocess
from pathlib import Path

from corl_core.methods import METHOD_LABELS
from corl_core.runs.folder import Run


def run_tags(run: Run, agent: str, parent: str | None) -> dict[str, str]:
    """Those of an agent's MLflow run below its `parent`, or for '' of the cohort's."""
    config = run.config
    tags = {
        "corl.run_id": run.id, "corl.role": "agent" if agent else "cohort", "corl.method": config.method,
        "corl.preset": config.preset or "", "corl.variant": config.variant, "corl.seed": str(config.seed),
        "corl.families": config.agent(agent).model if agent else config.families(),
    }  # fmt: skip
    tags |= {"corl.agent": agent, "mlflow.parentRunId": parent or ""} if agent else _git_tags()
    return tags | {"mlflow.note.content": config.notes or METHOD_LABELS[config.method]}


def filter_of(tags: dict[str, str]) -> str:
    """Finds the one MLflow run that has these."""
    mine = ("corl.run_id", "corl.role", *(["corl.agent"] if "corl.agent" in tags else []))
    return " and ".join(f"tags.`{key}` = '{tags[key]}'" for key in mine)


def _git_tags() -> dict[str, str]:
    """Commit of the code, and whether the working tree differs from it; {} outside a git checkout."""

    def git(*arguments: str) -> str:
        command, here = ["git", *arguments], Path(__file__).parent
        return subprocess.run(command, cwd=here, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        dirty = "true" if git("status", "--porcelain", "--untracked-files=no") else "false"
        return {"mlflow.source.git.commit": git("rev-parse", "HEAD"), "corl.git_dirty": dirty}
    except (OSError, subprocess.SubprocessError):
        return {}
