"""Errors about a configuration, in words a person can act on: field and value, rule, remedy."""

import copy
import difflib
from typing import Any

import yaml
from pydantic import ValidationError

from corl_core.security_yaml import UnsafeYAML
from corl_core.security_yaml import load as load_yaml

SHOWN = 120  # characters of a value


class ConfigError(ValueError):
    """A configuration that cannot be used; its text is meant for the person who wrote it."""


def did_you_mean(word: str, known: list[str]) -> str:
    """'; did you mean …?' when something close is known, else ''."""
    near = difflib.get_close_matches(word, known, n=1, cutoff=0.5)
    return f"; did you mean '{near[0]}'?" if near else ""


def config_problems(error: BaseException) -> dict[str, str]:
    """Dotted field → what is wrong with it, for showing beside a form's field ('' is the whole configuration)."""
    if isinstance(error, ConfigError) and error.__cause__ is not None:
        error = error.__cause__
    if not isinstance(error, ValidationError):
        return {"": str(error)}
    problems = {}
    for item in error.errors(include_url=False):
        field = ".".join(str(part) for part in item["loc"])
        message = item["msg"].removeprefix("Value error, ")
        shown = item.get("input")
        if item["type"] != "value_error" and isinstance(shown, (str, int, float, bool)):
            message = f"{message} (got {brief(shown)})"
        problems[field] = message[:1].lower() + message[1:]
    return problems


def brief(value: Any) -> str:
    """A value as an error shows it: not the whole of a long one."""
    return repr(value) if len(repr(value)) <= SHOWN else f"{repr(value)[:SHOWN]}…, {len(str(value)):,} characters"


def explain(error: ValueError, source: str) -> str:
    lines = [f"{field}: {message}" if field else message for field, message in config_problems(error).items()]
    return f"{source}: " + "; ".join(lines)


def with_override(values: dict[str, Any], override: str) -> dict[str, Any]:
    """A copy of `values` with one `dotted.key=value` applied; the value is read as YAML, list items by index."""
    path, separator, text = override.partition("=")
    if not separator or not path.strip():
        raise ConfigError(f"--set {override!r}: expected dotted.key=value, e.g. grpo.learning_rate=1e-4")
    try:
        value = load_yaml(text)
        if isinstance(value, dict) and all(inner is None for inner in value.values()):
            value = text  # '{question}' is a template, not a mapping
    except (yaml.YAMLError, UnsafeYAML) as error:
        raise ConfigError(f"--set {brief(override)}: the value is not valid YAML; quote it") from error
    values = copy.deepcopy(values)
    target: Any = values
    *parents, last = path.strip().split(".")
    for key in parents:
        target = _step(target, key, override)
    if isinstance(target, list):
        target[_index(target, last, override)] = value
    else:
        target[last] = value
    return values


def _step(target: Any, key: str, override: str) -> Any:
    if isinstance(target, list):
        return target[_index(target, key, override)]
    if target.get(key) is None:
        target[key] = {}
    if not isinstance(target[key], (dict, list)):
        raise ConfigError(f"--set {override!r}: '{key}' is a single value, it has no fields of its own")
    return target[key]


def _index(items: list, key: str, override: str) -> int:
    if not key.isdigit() or int(key) >= len(items):
        raise ConfigError(f"--set {override!r}: '{key}' is not an index of a list of {len(items)} (0 to {len(items) - 1})")
    return int(key)
