"""The documents cannot rot: the README's commands exist, and so does every file it names."""

import re
import shlex
from pathlib import Path

import pytest

from corl_core.cli import parser
from corl_core.config import RunConfig

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
EXAMPLES = {"RUN": "some-run", "PRESET": "demo", "…": ""}


def commands() -> list[str]:
    blocks = "\n".join(re.findall(r"```bash\n(.*?)```", README, re.S))
    lines = [line.split("#")[0].strip() for line in blocks.splitlines()]
    inline = re.findall(r"`(python -m corl_core [^`]+)`", README)
    return [line for line in [*lines, *inline] if "-m corl_core" in line]


@pytest.mark.parametrize("command", commands())
def test_every_command_of_the_readme_is_understood(command):
    arguments = shlex.split(command.split("-m corl_core", 1)[1])
    parser().parse_args(arguments)  # exits with 2 for anything it does not know


def test_the_readme_has_commands_to_check():
    assert len(commands()) >= 5


def test_the_readmes_configuration_is_valid():
    (text,) = re.findall(r"```yaml\n(.*?)```", README, re.S)
    config = RunConfig.from_yaml(text)
    assert config.method == "corl" and len(config.agents) == 2


def test_every_file_that_the_readme_names_exists():
    named = set(re.findall(r"`((?:corl_core|pages|tests|static)/[\w./]*|[\w]+\.(?:py|txt))`", README))
    named |= set(re.findall(r"\]\((static/[^)]+)\)", README))
    assert len(named) >= 10
    inside = ("", "corl_core/", "corl_core/training/", "corl_core/runs/", "corl_core/data/", "corl_core/figures/")
    missing = [name for name in named if not any((ROOT / folder / name).exists() for folder in inside)]
    assert missing == []


def test_make_targets_of_the_readme_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"`?make (\w+)", README)):
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_the_project_names_no_machine_paths():
    texts = [path for pattern in ("*.md", "corl_core/**/*.py", "pages/**/*.py", "tests/**/*.py") for path in ROOT.glob(pattern)]
    for path in texts:
        assert not re.search(r"/(?:home|Users|work)/\w", path.read_text(encoding="utf-8").replace("/work)/", "")), path
