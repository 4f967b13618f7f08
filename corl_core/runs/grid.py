"""An ablation grid: every combination of some values of some settings, over one configuration.

A grid is a name, a base configuration and its axes, `key → values`; a key is a setting as `--set` writes it, or `cohort`, whose
values are presets (or .yaml files) that give the agents and their ring. `grid_runs.py` queues its cells and says which runs
cover them.

Where the method is an axis, what only another method has goes: a ring without Co-RL, votes beyond those trained on where nobody
votes, weights of signals without a weighted sum.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import yaml

from corl_core.config import RunConfig, from_values, load_config
from corl_core.config_errors import ConfigError, with_override
from corl_core.methods import SIGNALS, WEIGHTED

T = TypeVar("T")
COHORT = "cohort"
MAX_CELLS = 500
MAX_TEXT = 4000  # characters of one axis


@dataclass(frozen=True)
class Grid:
    """What is varied over what. `base` is the configuration as YAML."""

    name: str
    base: str
    axes: dict[str, list[Any]]


@dataclass(frozen=True)
class Cell:
    """One combination; without a configuration there is a problem."""

    values: dict[str, Any]
    config: RunConfig | None
    problem: str = ""


def parse_axes(texts: Sequence[str]) -> dict[str, list[Any]]:
    """Raises ConfigError, for a key that is varied twice too."""
    axes: dict[str, list[Any]] = {}
    for key, values in map(parse_axis, texts):
        if key in axes:
            raise ConfigError(f"--vary {key}: the key is varied twice; give all its values at once, e.g. {key}=1,2")
        axes[key] = values
    return axes


def parse_axis(text: str) -> tuple[str, list[Any]]:
    """('seed', [0, 1]) of 'seed=0,1'; each value is YAML, as after `--set`. Raises ConfigError."""
    key, separator, listed = text.partition("=")
    if not separator or not key.strip():
        raise ConfigError(f"--vary {text!r}: expected key=value,value, e.g. seed=0,1,2")
    return key.strip(), parse_values(key.strip(), listed)


def parse_values(key: str, text: str) -> list[Any]:
    """The values of one axis, 'a, b' → ['a', 'b']. Raises ConfigError for none, for twice the same, and for what is no YAML."""
    if len(text) > MAX_TEXT:
        raise ConfigError(f"{key}: {len(text):,} characters of values; at most {MAX_TEXT:,}")
    try:
        if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(f"[{text}]")):
            raise ConfigError(f"{key}: YAML aliases (*name) are not used here; write the value out")
        values = yaml.safe_load(f"[{text}]")
        written = [json.dumps(value) for value in values]
    except (yaml.YAMLError, TypeError) as error:
        raise ConfigError(f"{key}: {text[:80]!r} is not a list of YAML values with commas between them") from error
    if not values:
        raise ConfigError(f"{key}: no values; give some with commas between them, e.g. {key}=1,2")
    if len(set(written)) < len(written):
        twice = next(value for value in written if written.count(value) > 1)
        raise ConfigError(f"{key}: the value {twice} stands there twice; each cell is one run")
    return values


def make(base: RunConfig, axes: dict[str, list[Any]], name: str = "") -> Grid:
    """Raises ConfigError for no axis, and for more cells than anybody means."""
    if not axes:
        raise ConfigError("a grid needs at least one key that varies: --vary seed=0,1,2")
    num = 1
    for values in axes.values():
        num *= len(values)
    if num > MAX_CELLS:
        raise ConfigError(f"{num:,} cells; a grid has at most {MAX_CELLS}: leave out values, or make several grids")
    return Grid((name.strip() or f"{base.name}: {' × '.join(axes)}")[:80], base.to_yaml(), axes)


def cells(grid: Grid) -> list[Cell]:
    """Every combination, in the order of the axes; the last one moves fastest."""
    base = RunConfig.from_yaml(grid.base, source=f"grid '{grid.name}'").model_dump()
    return [_cell(base, chosen) for chosen in combinations(grid)]


def combinations(grid: Grid) -> list[dict[str, Any]]:
    """The values of each cell, in the order of the cells."""
    return [dict(zip(grid.axes, chosen, strict=True)) for chosen in itertools.product(*grid.axes.values())]


def _cell(base: dict[str, Any], chosen: dict[str, Any]) -> Cell:
    values = base | {"name": _name(base["name"], chosen)}
    try:
        for key, value in chosen.items():
            if key == COHORT:
                other = load_config(str(value))
                values |= {"agents": [agent.model_dump() for agent in other.agents], "ring": other.ring}
            else:
                values = with_override(values, f"{key}={json.dumps(value, ensure_ascii=False)}")
        if "method" in chosen:
            values = _without_others(values, chosen)
        return Cell(chosen, from_values(values, [], words(chosen)))
    except ConfigError as error:
        told = str(error)
        return Cell(chosen, None, told if told.startswith(words(chosen)) else f"{words(chosen)}: {told}")


def _without_others(values: dict[str, Any], chosen: dict[str, Any]) -> dict[str, Any]:
    """What only another method has, taken away unless it is varied itself."""
    method = values["method"]
    if method != WEIGHTED and "signal.weights" not in chosen:
        values = values | {"signal": values["signal"] | {"weights": None}}
    signals = [SIGNALS[name] for name in (values["signal"].get("weights") or [method]) if name in SIGNALS]
    if "ring" not in chosen and not any(signal.labels_from == "peer" for signal in signals):
        values = values | {"ring": None}
    if "vote.num_votes" not in chosen and not any(signal.votes for signal in signals):
        values = values | {"vote": values["vote"] | {"num_votes": None}}
    return values


def _name(base: str, chosen: dict[str, Any]) -> str:
    """The base's name and what differs, but for the seed, which is shown beside a name."""
    own = [f"{key.rsplit('.', 1)[-1]}={label(value)}" for key, value in chosen.items() if key != "seed"]
    return " ".join([base, *own])[:80]


def label(value: Any) -> str:
    """One value of an axis in words: a cohort by its models, anything else as it is written."""
    if isinstance(value, list) and value and all(isinstance(item, dict) and "model" in item for item in value):
        return " × ".join(str(item["model"]).removeprefix("tiny:") for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def words(chosen: dict[str, Any]) -> str:
    """A cell's values: 'method=ttrl, seed=1'."""
    return ", ".join(f"{key}={label(value)}" for key, value in chosen.items())


def completions(config: RunConfig) -> int:
    """What a run samples for training, all its agents together."""
    grpo = config.grpo
    return len(config.agents) * grpo.max_steps * grpo.questions_per_step * config.num_samples


def across(grid: Grid) -> str:
    """The axis that goes from left to right in a matrix: seeds if they vary, else the last one."""
    return "seed" if "seed" in grid.axes else list(grid.axes)[-1]


def matrix(grid: Grid, of_cells: Sequence[T]) -> list[tuple[dict[str, Any], list[T]]]:
    """What belongs to the cells (in their order), as rows: the values of the other axes, and what stands beside them along
    `across`."""
    rows: dict[str, tuple[dict[str, Any], list[T]]] = {}
    for chosen, one in zip(combinations(grid), of_cells, strict=True):
        own = {key: value for key, value in chosen.items() if key != across(grid)}
        rows.setdefault(json.dumps(own), (own, []))[1].append(one)
    return list(rows.values())
