"""`answers`: how answers are read and compared, as JSON lines.

A line {"completion": …} gives the answer in its last box; {"a": …, "b": …} whether two answers are the same; {"answer": …}
reads an answer's own text. Other fields are ignored.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from corl_core.answers import read, read_answer, same
from corl_core.config import ConfigError


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("answers", parents=[common], help="read and compare answers of a JSONL file")
    verb.add_argument("file", type=Path, metavar="FILE.jsonl", help='lines {"completion": …} or {"a": …, "b": …}')
    verb.set_defaults(run=_answers)


def _answers(arguments: argparse.Namespace) -> int:
    """Prints a result for every good line, an error on stderr for every other; 2 when there was one."""
    num_bad = 0
    for number, line in _lines(arguments.file):
        try:
            print(json.dumps({"line": number} | _result(line)))
        except ValueError as error:
            num_bad += 1
            print(f"error: {arguments.file}, line {number}: {error}", file=sys.stderr)
    return 2 if num_bad else 0


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line := line.removeprefix(b"\xef\xbb\xbf").strip():
                    yield number, line
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror or error}; give the path of a JSONL file") from error


def _result(line: bytes) -> dict[str, Any]:
    """Raises ValueError with what is wrong with the line."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON ({error}); write one object a line") from error
    if not isinstance(row, dict):
        raise ValueError(f"{type(row).__name__} instead of an object; write {{...}} with completion, or a and b")
    if "completion" in row:
        reading = read(_text(row, "completion"))
    elif "a" in row or "b" in row:
        return {"same": same(_text(row, "a"), _text(row, "b"))}
    elif "answer" in row:
        reading = read_answer(_text(row, "answer"))
    else:
        raise ValueError(f"has {', '.join(map(repr, row)) or 'no field'}; needs 'completion', or 'a' and 'b', or 'answer'")
    answer = reading.answer
    return {"answer": answer and answer.shown, "key": answer and answer.key, "outcome": reading.outcome}


def _text(row: dict[str, Any], name: str) -> str:
    if name not in row:
        raise ValueError(f"field {name!r} is missing; 'a' and 'b' are compared, so give both")
    value = row[name]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise ValueError(f"{name} is {json.dumps(value)[:60]}; give a string or a number")
    return value
