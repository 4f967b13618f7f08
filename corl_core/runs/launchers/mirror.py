"""An agent's folder on another machine, kept the same here: what has changed since the last look, in parts to be repeated.

Files that only grow (journal, log, rollouts of the newest steps) travel from where the last part ended, others as a whole, in
pieces. A checkpoint travels once its mark is there (`runs/checkpoints.py`), and marks come last; the journal comes after what it
tells of, so no step is told whose rollouts are not here. Hidden files stay, but for the sign of life and the newest rollouts.

Checkpoints that an agent removes to make room for newer ones stay here: the step that all agents have may be among them, where
one's have not come in yet (`luggage.py` clears up). Those of an agent that has none left go.
"""

import os
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path

from corl_core.runs.checkpoints import COMPLETE
from corl_core.runs.inside import make_folder
from corl_core.runs.open_shard import FILE as OPEN_ROLLOUTS
from corl_core.runs.watched import ALIVE

GROWING = ("journal.jsonl", "log.txt", OPEN_ROLLOUTS)
MARKS = (COMPLETE, "value.json")
PIECE_BYTES = 8 * 2**20
HEAD_BYTES = 64
PARTIAL = ".part"  # end of the name of a file that is not whole yet


@dataclass(frozen=True)
class Part:
    """One step of the repetition. `data` None: the file is gone."""

    path: str  # within the agent's folder
    data: bytes | None
    offset: int = 0
    last: bool = True  # of the pieces of a file


@dataclass(frozen=True)
class _State:
    """How a file was at the last look."""

    size: int
    changed_ns: int
    head: bytes = b""  # of a file that grows: tells it from another one of that name


class Source:
    """A folder that is watched. What it holds at first counts as known."""

    def __init__(self, folder: Path, known: bool = True):
        self.folder = folder
        self._sent: dict[str, _State] = dict(self._look()) if known else {}
        self._void: dict[str, _State] = {}  # marks of what was being removed while it travelled
        self._parts: Iterator[Part] | None = None

    def next(self, max_bytes: int = PIECE_BYTES) -> list[Part]:
        """Some parts, about so much; [] when nothing has changed. The sign of life never waits for a large file."""
        is_new_look = self._parts is None
        taken, size = list(self._change(ALIVE, _state(self.folder / ALIVE))), 0
        self._parts = self._parts or self._changes()
        for part in self._parts:
            taken.append(part)
            size += len(part.data or b"")
            if size >= max_bytes:
                return taken
        self._parts = None
        return taken if taken or is_new_look else self.next(max_bytes)

    def _look(self) -> list[tuple[str, _State]]:
        """Files in the order in which they travel. The journal's size is taken first: its lines tell of what is there by then."""
        found = {path.relative_to(self.folder).as_posix(): _state(path) for path in [self.folder / "journal.jsonl"]}
        for path in sorted(Path(top, file) for top, _, files in os.walk(self.folder) for file in files):
            name = path.relative_to(self.folder).as_posix()
            if name not in found and path.is_file() and self._travels(path):
                found[name] = _state(path)
        order = sorted(found, key=lambda name: (name == "journal.jsonl", Path(name).name in MARKS))
        return [(name, state) for name in order if (state := found[name]) is not None]

    def _travels(self, path: Path) -> bool:
        inner = path.relative_to(self.folder)
        if inner.parts[0] == "checkpoints":
            return len(inner.parts) > 2 and (self.folder / inner.parts[0] / inner.parts[1] / COMPLETE).exists()
        hidden = any(part.startswith(".") for part in inner.parts)
        return not path.name.endswith(PARTIAL) and (not hidden or inner.name in (ALIVE, OPEN_ROLLOUTS))

    def _changes(self) -> Iterator[Part]:
        known, now, missed = set(self._sent), self._look(), set()
        for name, state in now:
            if name == ALIVE or self._void.get(name) == state:
                continue
            if Path(name).name in MARKS and any(Path(name).parent in Path(other).parents for other in missed):
                self._void[name] = state
            elif not (yield from self._change(name, state)):
                missed.add(name)
        gone = known - {name for name, _ in now}
        if any(_is_of_checkpoint(name) for name, _ in now):
            gone = {name for name in gone if not _is_of_checkpoint(name)}
        for name in sorted(gone, key=lambda name: (Path(name).name not in MARKS, name)):
            del self._sent[name]
            yield Part(name, None)

    def _change(self, name: str, state: _State | None) -> Generator[Part, None, bool]:
        """What is new in a file, and whether it was there; a file that is gone is left to the next look."""
        before = self._sent.get(name)
        if state in (None, before):
            return True
        grows = Path(name).name in GROWING
        goes_on = grows and before is not None and state.head.startswith(before.head) and before.size <= state.size
        offset = before.size if goes_on and before else 0
        try:
            with (self.folder / name).open("rb") as file:
                self._sent[name] = state
                file.seek(offset)
                while True:
                    data = file.read(min(PIECE_BYTES, state.size - offset))
                    last = not data or offset + len(data) >= state.size
                    yield Part(name, data, offset, last)
                    offset += len(data)
                    if last:
                        return True
        except FileNotFoundError:
            return False


def _is_of_checkpoint(name: str) -> bool:
    return name.startswith("checkpoints/")


def _state(path: Path) -> _State | None:
    try:
        found = os.stat(path)
        if path.name not in GROWING:
            return _State(found.st_size, found.st_mtime_ns)
        with path.open("rb") as file:
            return _State(found.st_size, found.st_mtime_ns, file.read(min(HEAD_BYTES, found.st_size)))
    except FileNotFoundError:
        return None


def repeat(folder: Path, parts: list[Part]) -> None:
    """Does in this folder what has happened in the other."""
    for part in parts:
        path = folder / part.path
        if folder.resolve() not in path.resolve().parents or path.name.endswith(PARTIAL):
            raise ValueError(f"'{part.path}' is no file in the agent's folder that may be written")
        if part.data is None:
            path.unlink(missing_ok=True)
            _leave(path.parent, folder)
            continue
        make_folder(path.parent, within=folder)
        grows = path.name in GROWING
        target = path if grows else path.with_name(path.name + PARTIAL)
        with target.open("r+b" if part.offset else "wb") as file:
            file.seek(part.offset)
            file.write(part.data)
        if part.last and not grows:
            target.replace(path)


def _leave(folder: Path, top: Path) -> None:
    """Removes folders that have become empty, up to the agent's."""
    while folder != top and folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
