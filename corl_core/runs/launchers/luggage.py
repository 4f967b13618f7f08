"""What an agent takes along to its node, and which of the checkpoints that came back from there stay here."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from corl_core.config import RunConfig
from corl_core.runs import checkpoints
from corl_core.runs.folder import Run
from corl_core.runs.journal import whole_bytes
from corl_core.runs.launchers.mirror import Part, Source


def data_files(config: RunConfig) -> dict[str, tuple[str, bytes]]:
    """Field of `data` → name and content of a file that is on this machine; the nodes get a copy."""
    named = {"train": config.data.train, "eval": config.data.eval}
    paths = {field: Path(name).expanduser() for field, name in named.items() if name}
    return {field: (path.name, path.read_bytes()) for field, path in paths.items() if path.is_file()}


def goes_on_from(folder: Path, resume_step: int | None) -> Iterator[list[Part]]:
    """What an agent that is resumed needs on its node: what it has told, and its checkpoint; its others are of no more use. One
    that starts over keeps theirs, without the marks: none may be taken for one of the steps to come."""
    if resume_step is None or not folder.exists():
        return
    for step, path in _steps(folder):
        if step != resume_step:
            _remove(path, mark_alone=not resume_step)
    if (journal := folder / "journal.jsonl").exists():
        os.truncate(journal, whole_bytes(journal))
    source = Source(folder, known=False)
    while parts := source.next():
        yield [part for part in parts if part.path.split("/")[0] not in ("model", "weights")]


def prune(run: Run) -> None:
    """Removes checkpoints, whole or not, that are neither among an agent's newest (`checkpoints.keep`) nor needed to resume."""
    for name, needed in checkpoints.resume_steps(run).items():
        newest = checkpoints.complete(run.agent_path(name))[-run.config.checkpoints.keep :]
        for step, path in _steps(run.agent_path(name)):
            if step < min([needed, *newest]):
                _remove(path)


def _steps(agent_path: Path) -> list[tuple[int, Path]]:
    found = checkpoints.folder(agent_path).glob("checkpoint-*")
    return [(int(number), path) for path in found if (number := path.name.removeprefix("checkpoint-")).isdigit()]


def _remove(checkpoint: Path, mark_alone: bool = False) -> None:
    """The mark first: half a checkpoint never counts."""
    (checkpoint / checkpoints.COMPLETE).unlink(missing_ok=True)
    if not mark_alone:
        shutil.rmtree(checkpoint, ignore_errors=True)
