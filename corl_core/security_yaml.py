"""YAML from people: plain values alone, and never more of them than a configuration can hold.

The safe loader makes no objects, but an alias counts as often as it is used: nine aliases of nine aliases, ten deep, are three
billion values in 400 bytes ("billion laughs"), and a deep nest ends the interpreter's stack.
"""

from typing import Any

import yaml

LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where there is one: ten times faster on a list of runs
MAX_CHARACTERS = 1_000_000
MAX_VALUES = 20_000  # with every alias written out
MAX_DEPTH = 32
SHORT = 2000  # characters; what is shorter cannot nest deep enough to do harm while it is read


class UnsafeYAML(ValueError):
    """YAML that is larger or deeper than any configuration; the text says by which limit."""


def load(text: str) -> Any:
    """The values. Raises yaml.YAMLError for what is no YAML or has a tag of its own, UnsafeYAML for what is too much."""
    if len(text) > MAX_CHARACTERS:
        raise UnsafeYAML(f"{len(text):,} characters, and {MAX_CHARACTERS:,} are allowed")
    if len(text) > SHORT:
        _check_nesting(text)
    values = yaml.load(text, LOADER)
    check(values)
    return values


def check(values: Any) -> None:
    """Raises UnsafeYAML for values that are too many or too deep, counted as they would be written out."""
    waiting, seen = [(values, 1)], 0
    while waiting:
        value, depth = waiting.pop()
        seen += 1
        if depth > MAX_DEPTH:
            raise UnsafeYAML(f"values nest more than {MAX_DEPTH} deep")
        if seen > MAX_VALUES:
            raise UnsafeYAML(f"more than {MAX_VALUES:,} values, aliases written out")
        inner = [*value.keys(), *value.values()] if isinstance(value, dict) else value if isinstance(value, (list, set)) else ()
        waiting += [(item, depth + 1) for item in inner]


def _check_nesting(text: str) -> None:
    """By the parser's events, which are read one by one, before anything is built out of them."""
    depth = 0
    for event in yaml.parse(text, LOADER):
        depth += isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent))
        depth -= isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent))
        if depth > MAX_DEPTH:
            raise UnsafeYAML(f"values nest more than {MAX_DEPTH} deep")
