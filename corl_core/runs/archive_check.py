"""What an archive of a run may hold: known files of known size at known places, and nothing that is ever executed.

Names are compared with a list of the forms that a run folder has, so `..`, absolute paths, drive letters, links and devices need
no rule of their own; they have one all the same, to say what is wrong.
"""

import json
import re
import stat
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from corl_core.config import ConfigError
from corl_core.runs import labels
from corl_core.runs.folder import FINAL, Run, Status
from corl_core.runs.launch import LaunchError

MANIFEST = "archive.json"
MAX_FILES = 20_000
MAX_BYTES = 200 * 2**30  # of everything unpacked: a cohort's weights
MAX_SMALL_BYTES = 2**20  # run.yaml, status.json, labels.json
MAX_MANIFEST_BYTES = 8 * 2**20
MAX_LINE_BYTES = 64 * 2**20  # of a journal

ID = re.compile(r"[0-9]{8}-[0-9]{6}-[a-z0-9][a-z0-9-]{0,80}")
_TOP = re.compile(r"run\.yaml|status\.json|labels\.json|journal\.jsonl|supervisor\.log")
_AGENT = re.compile(
    r"agents/(?P<agent>[a-z0-9][a-z0-9_-]{0,31})/"
    r"(?:journal\.jsonl|log\.txt|rollouts/[0-9A-Za-z_-]{1,80}\.parquet"
    r"|(?P<model>(?:model|best)/(?:README\.md|(?:adapter/)?[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.(?:safetensors|json|txt|jinja|model))))"
)
_SMALL = ("run.yaml", "status.json", "labels.json")


class ArchiveError(LaunchError):
    """A file that cannot be imported as a run; the text says why."""


@dataclass(frozen=True)
class Entry:
    name: str
    size: int  # bytes
    sha256: str


def is_known(name: str, agents: set[str] | None = None) -> bool:
    """Whether a run folder may have a file of this name; `agents` None: of any agent."""
    match = _AGENT.fullmatch(name)
    return _TOP.fullmatch(name) is not None or (match is not None and (agents is None or match["agent"] in agents))


def is_model(name: str) -> bool:
    match = _AGENT.fullmatch(name)
    return match is not None and match["model"] is not None


def entries(opened: zipfile.ZipFile, max_bytes: int) -> tuple[str, list[Entry]]:
    """The run's id and what is to be unpacked, by the archive's own account. Raises ArchiveError."""
    infos = opened.infolist()
    if len(infos) > MAX_FILES:
        raise ArchiveError(f"{len(infos):,} files, and {MAX_FILES:,} are allowed")
    names = [info.filename for info in infos]
    if len(set(names)) < len(names):
        raise ArchiveError("a file is in it twice")
    for info in infos:
        _check_place(info)
    run_id, listed = _manifest(opened, names)
    if set(listed) != set(names) - {MANIFEST}:
        odd = sorted(set(listed) ^ (set(names) - {MANIFEST}))[0]
        raise ArchiveError(f"'{odd[:80]}' is not both in the archive and in its list")
    total = sum(entry.size for entry in listed.values())
    if total > max_bytes:
        raise ArchiveError(f"it unpacks to {total / 1e6:,.0f} MB, and {max_bytes / 1e6:,.0f} MB are allowed or free on the disk")
    for info in infos:
        if info.filename in listed and info.file_size != listed[info.filename].size:
            raise ArchiveError(f"{info.filename} has another size than its list says")
    if missing := [name for name in ("run.yaml", "status.json") if name not in listed]:
        raise ArchiveError(f"it has no {missing[0]}, so it is no run")
    return run_id, list(listed.values())


def _check_place(info: zipfile.ZipInfo) -> None:
    name, mode = info.filename, info.external_attr >> 16
    if mode and not stat.S_ISREG(mode) and stat.S_IFMT(mode):
        raise ArchiveError(f"'{name[:80]}' is a link, a folder or a device, and only files are unpacked")
    if name.startswith(("/", "\\")) or ".." in name.replace("\\", "/").split("/") or ":" in name or "\\" in name:
        raise ArchiveError(f"'{name[:80]}' leads out of the run's folder")
    if info.flag_bits & 0x1:
        raise ArchiveError("it is encrypted")
    if name != MANIFEST and not is_known(name):
        raise ArchiveError(f"'{name[:80]}' is no file of a run")
    if name in _SMALL and info.file_size > MAX_SMALL_BYTES:
        raise ArchiveError(f"{name} has {info.file_size:,} bytes, and {MAX_SMALL_BYTES:,} are allowed")


def _manifest(opened: zipfile.ZipFile, names: list[str]) -> tuple[str, dict[str, Entry]]:
    if MANIFEST not in names:
        raise ArchiveError(f"it has no {MANIFEST}: make one with 'python -m corl_core archive RUN'")
    with opened.open(MANIFEST) as file:
        text = file.read(MAX_MANIFEST_BYTES + 1)
    try:
        if len(text) > MAX_MANIFEST_BYTES:
            raise ValueError("too long")
        values: dict[str, Any] = json.loads(text)
        run_id = values["id"]
        listed = {str(name): Entry(str(name), int(each["size"]), str(each["sha256"])) for name, each in values["files"].items()}
        if values["format"] != 1 or not isinstance(run_id, str) or not ID.fullmatch(run_id):
            raise ValueError("another format, or no run's id")
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArchiveError(f"{MANIFEST} is not the list of an archived run: {str(error)[:100]}") from error
    return run_id, listed


def content(folder: Path) -> None:
    """That an unpacked folder is a run that has ended, file by file by its content. Raises ArchiveError."""
    run = Run(folder)
    try:
        agents = {agent.name for agent in run.config.agents}
        status = Status(**json.loads((folder / "status.json").read_text(encoding="utf-8")))
        _ = status.raised
        if (folder / labels.FILE).exists():
            labels.parsed((folder / labels.FILE).read_bytes())
    except (ConfigError, ValueError, TypeError, RecursionError) as error:
        reason = str(error).replace(f"{folder}/", "")
        raise ArchiveError(f"its run.yaml, status.json or labels.json cannot be read: {reason[:300]}") from error
    if status.state not in FINAL or not _has_sound_numbers(status):
        raise ArchiveError(f"its status.json says '{str(status.state)[:20]}', and only a run that has ended is imported")
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = path.relative_to(folder).as_posix()
        if not is_known(name, agents):
            raise ArchiveError(f"{name} belongs to no agent of its run.yaml")
        _check_kind(path, name)


def _has_sound_numbers(status: Status) -> bool:
    moments = (status.created, status.started, status.first_started, status.ended, status.heartbeat)
    numbers = (status.step, status.max_steps, *(moment or 0 for moment in moments))
    texts = (status.reason, status.phase, status.cause)
    return all(isinstance(number, (int, float)) for number in numbers) and all(isinstance(text, str) for text in texts)


def _check_kind(path: Path, name: str) -> None:
    with path.open("rb") as file:
        start = file.read(16)
        if name.endswith(".parquet") and not start.startswith(b"PAR1"):
            raise ArchiveError(f"{name} is no Parquet file")
        if name.endswith(".safetensors") and not (len(start) > 8 and start[8:9] == b"{"):
            raise ArchiveError(f"{name} is no safetensors file")
        if name.endswith(".jsonl"):
            file.seek(0)
            while line := file.readline(MAX_LINE_BYTES):
                _check_line(line, name)


def _check_line(line: bytes, name: str) -> None:
    try:
        values = json.loads(line)
        sound = isinstance(values["event"], str) and isinstance(values["time"], (int, float))
        sound = sound and isinstance(values.get("step", 0), int) and isinstance(values.get("metrics", {}), dict)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        sound = not line.endswith(b"\n")  # an unfinished last line, which readers leave alone
    if not sound:
        raise ArchiveError(f"{name} has a line that no run writes: {line[:60]!r}")
