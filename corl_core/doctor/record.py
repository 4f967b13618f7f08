"""One line of the examination."""

from dataclasses import dataclass, field
from typing import Any, Literal

LEVELS = ("ok", "note", "bad")  # fine; worth knowing; something does not work


@dataclass(frozen=True)
class Finding:
    """What was looked at, what was found, and what to do ('' when nothing is to be done).

    `repair` names the repair that `--repair` would do, and `about` is what it needs: ids, paths, or a process with its start.
    """

    name: str
    level: Literal["ok", "note", "bad"]
    found: str
    remedy: str = ""
    repair: Literal["", "close run", "end process", "remove", "wake dispatcher"] = ""
    about: dict[str, Any] = field(default_factory=dict)
