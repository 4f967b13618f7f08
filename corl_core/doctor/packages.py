"""Python, and the packages with their versions against the pins in requirements.txt."""

import re
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from corl_core.doctor.record import Finding
from corl_core.runs.launch import PROJECT

OLDEST = (3, 11)
INSTALL = "python -m pip install -r requirements.txt"
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;#]+)")


def check(runs_dir: Path) -> list[Finding]:
    requirements = PROJECT / "requirements.txt"
    text = requirements.read_text(encoding="utf-8") if requirements.exists() else ""
    return [python(sys.version_info[:2]), *against_pins(pins(text), _installed)]


def python(found: tuple[int, int]) -> Finding:
    words = f"{found[0]}.{found[1]}, {sys.prefix}"
    if found >= OLDEST:
        return Finding("Python", "ok", words)
    return Finding("Python", "bad", words, f"Python {OLDEST[0]}.{OLDEST[1]} or newer is needed: make the environment with it")


def pins(text: str) -> dict[str, str]:
    """Package → pinned version."""
    return {match["name"]: match["version"] for line in text.splitlines() if (match := _PIN.match(line.strip()))}


def against_pins(pinned: dict[str, str], installed=None) -> list[Finding]:
    """A line for each package that is missing or another version, or one for all of them; a local build (+cpu) is the version."""
    if not pinned:
        return [Finding("packages", "note", "requirements.txt was not found, so nothing is compared")]
    wrong = []
    for name, pin in sorted(pinned.items()):
        found = (installed or _installed)(name)
        if found is None:
            wrong.append(Finding(name, "bad", f"not installed; {pin} is pinned", INSTALL))
        elif found.partition("+")[0] != pin:
            wrong.append(Finding(name, "note", f"{found}, and {pin} is pinned and tested", INSTALL))
    right = len(pinned) - len(wrong)
    return [Finding("packages", "ok", f"{right} of {len(pinned)} are the pinned versions"), *wrong]


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
