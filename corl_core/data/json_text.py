"""Rows out of JSON text: lines of objects, one list, one object that holds a list; whatever the file is called."""

import json
from collections.abc import Iterator, Mapping
from json.decoder import WHITESPACE
from typing import Any

from corl_core.data.questions import DataError
from corl_core.data.tables import Row, Table

ROW_KEYS = ("data", "rows", "questions", "examples", "train", "test", "items")
"""Names under which one big object keeps its list of rows."""
_DECODER = json.JSONDecoder(strict=False)  # line breaks inside strings are common and harmless


def looks_like_json(text: str) -> bool:
    return text.lstrip()[:1] in ("{", "[")


def read_json(text: str, name: str) -> Table:
    """The rows of JSON text; `name` is what errors call it. Raises DataError with the line."""
    start = WHITESPACE.match(text, 0).end()
    if text.startswith("[", start):
        return Table(tuple(_rows(_listed(text, start, name), name, numbered=True)))
    values = list(_concatenated(text, start, name))
    if len(values) == 1 and isinstance(values[0][1], dict) and (inner := _inner_list(values[0][1])):
        return Table(tuple(_rows(((1, item) for item in inner), name, numbered=True)))
    return Table(tuple(_rows(values, name, numbered=False)))


def _inner_list(whole: Mapping[str, Any]) -> list | None:
    """The list of objects that one big object keeps its rows in."""
    lists = {key: value for key, value in whole.items() if isinstance(value, list) and value and isinstance(value[0], dict)}
    lists = {key: value for key, value in lists.items() if not {"role", "from"} & set(value[0])}  # one row's chat messages
    named = [lists[key] for key in ROW_KEYS if key in lists]
    return named[0] if named else next(iter(lists.values()), None) if len(whole) == 1 else None


def _rows(values: Any, name: str, numbered: bool) -> Iterator[Row]:
    for number, (line, value) in enumerate(values, start=1):
        where = f"item {number} (line {line})" if numbered else f"line {line}"
        if not isinstance(value, dict):
            kind = "null" if value is None else type(value).__name__
            raise DataError(
                f'data \'{name}\', {where}: {kind} where an object like {{"question": …, "answer": …}} is needed; '
                "write one object for each question"
            )
        yield Row(where, value)


def _listed(text: str, start: int, name: str) -> Iterator[tuple[int, Any]]:
    """(line, value) of each item of the list that opens at `start`; nothing but white space may follow it."""
    at, line, counted = WHITESPACE.match(text, start + 1).end(), 1, 0
    while not text.startswith("]", at):
        line, counted = line + text.count("\n", counted, at), at
        value, at = _decode(text, at, name)
        yield line, value
        at = WHITESPACE.match(text, at).end()
        if text.startswith(",", at):
            at = WHITESPACE.match(text, at + 1).end()
        elif not text.startswith("]", at):
            raise _error(json.JSONDecodeError("expecting ',' or ']' after an item", text, at), name)
    if (end := WHITESPACE.match(text, at + 1).end()) != len(text):
        raise _error(json.JSONDecodeError("more text after the list's closing ']'", text, end), name)


def _concatenated(text: str, at: int, name: str) -> Iterator[tuple[int, Any]]:
    """(line, value) of JSON values that follow each other, as in JSON Lines."""
    line, counted = 1, 0
    while at < len(text):
        line, counted = line + text.count("\n", counted, at), at
        value, at = _decode(text, at, name)
        yield line, value
        at = WHITESPACE.match(text, at).end()


def _decode(text: str, at: int, name: str) -> tuple[Any, int]:
    try:
        return _DECODER.raw_decode(text, at)
    except json.JSONDecodeError as error:
        raise _error(error, name) from error
    except RecursionError as error:
        raise DataError(f"data '{name}': JSON nested too deeply to be a table of questions") from error


def _error(error: json.JSONDecodeError, name: str) -> DataError:
    return DataError(
        f"data '{name}', line {error.lineno}: not valid JSON ({error.msg}, at character {error.colno}); fix or remove this line"
    )
