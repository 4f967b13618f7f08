"""What a person calls a run and writes about it: a name, a note, tags. Kept in labels.json beside run.yaml.

They never change run.yaml, which says what was run. Nothing here is ever code, HTML or a path: whoever shows it escapes it.
"""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from filelock import FileLock

from corl_core.config import ConfigError
from corl_core.runs.folder import Run, write_atomically
from corl_core.runs.inside import leads_out

FILE = "labels.json"
MAX_NAME, MAX_NOTE, MAX_TAG, MAX_TAGS = 80, 4000, 40, 20  # characters, and tags a run
MAX_BYTES = 65_536


@dataclass(frozen=True)
class Labels:
    """`name` '' keeps the configuration's. `note` may have lines; tags are sorted, each once."""

    name: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()


def labels(run: Run) -> Labels:
    """The run's labels; a file that is damaged, or a link that leads out of the run's folder, counts as none."""
    if leads_out(run.path, run.path / FILE):
        return Labels()
    try:
        with (run.path / FILE).open("rb") as file:
            return parsed(file.read(MAX_BYTES + 1))
    except (OSError, ConfigError):
        return Labels()


def parsed(content: bytes) -> Labels:
    """Raises ConfigError."""
    if len(content) > MAX_BYTES:
        raise ConfigError(f"{FILE} has more than {MAX_BYTES:,} bytes")
    try:
        values: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{FILE} is not JSON: {str(error)[:100]}") from error
    known = isinstance(values, dict) and set(values) <= {"name", "note", "tags"}
    if not known or not isinstance(values.get("tags", []), list):
        raise ConfigError(f"{FILE} holds something else than a name, a note and tags")
    texts = [values.get("name", ""), values.get("note", ""), *values.get("tags", [])]
    if not all(isinstance(text, str) for text in texts):
        raise ConfigError(f"{FILE}: name, note and tags are text")
    return Labels(checked_name(texts[0]), checked_note(texts[1]), checked_tags(texts[2:]))


def shown_name(run: Run) -> str:
    """The name that a person gave the run, else its configuration's."""
    return labels(run).name or run.config.name


def rename(run: Run, name: str) -> Labels:
    """'' gives the configuration's name back. Raises ConfigError."""
    return change(run, lambda own: replace(own, name=checked_name(name)))


def write_note(run: Run, note: str) -> Labels:
    """'' removes the note. Raises ConfigError."""
    return change(run, lambda own: replace(own, note=checked_note(note)))


def change_tags(run: Run, add: list[str], remove: list[str]) -> Labels:
    """Raises ConfigError, also for a tag to remove that the run does not have."""

    def changed(own: Labels) -> Labels:
        if missing := sorted(set(remove) - set(own.tags)):
            raise ConfigError(f"tag '{missing[0]}': {run.id} has {', '.join(own.tags) or 'no tags'}")
        return replace(own, tags=checked_tags([tag for tag in (*own.tags, *add) if tag not in remove]))

    return change(run, changed)


def put(run: Run, name: str, note: str, tags: list[str]) -> Labels:
    """All three at once, or none. Raises ConfigError."""
    new = Labels(checked_name(name), checked_note(note), checked_tags(tags))
    return change(run, lambda _: new)


def change(run: Run, new: Callable[[Labels], Labels]) -> Labels:
    """Reads and writes in one go, so that two who write at once lose nothing."""
    with FileLock(run.path / ".labels.lock"):
        own = new(labels(run))
        write_atomically(run.path / FILE, json.dumps(asdict(own), ensure_ascii=False))
    return own


def checked_name(name: str) -> str:
    name = " ".join(name.split())
    if not name.isprintable():
        raise ConfigError("the name holds characters that cannot be shown; use letters, digits and signs")
    return _short(name, MAX_NAME, "the name")


def checked_note(note: str) -> str:
    note = note.strip()
    if not all(letter.isprintable() or letter in "\n\t" for letter in note.replace("\r\n", "\n")):
        raise ConfigError("the note holds characters that cannot be shown; use plain text")
    return _short(note, MAX_NOTE, "the note")


def checked_tags(tags: list[str]) -> tuple[str, ...]:
    found = sorted({" ".join(tag.split()) for tag in tags if tag.strip()})
    for tag in found:
        _short(tag, MAX_TAG, "a tag")
        if "," in tag or not tag.isprintable():
            raise ConfigError(f"tag {tag!r}: a tag is letters, digits and signs, without commas")
    if len(found) > MAX_TAGS:
        raise ConfigError(f"{len(found)} tags, and a run has at most {MAX_TAGS}")
    return tuple(found)


def _short(text: str, limit: int, what: str) -> str:
    if len(text) > limit:
        raise ConfigError(f"{what} has {len(text):,} characters, and {limit:,} are allowed: {text[:20]!r}…")
    return text
