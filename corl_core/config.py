"""Everything a person can set about a run: the whole configuration, presets, files and overrides.

Defaults are the released Co-RL code's optimiser settings (loss `bnpo`, beta 0, group-scaled rewards, temperature 1) and
the paper's learning rate for text (arXiv 2608.17253, experiments); the demo presets bring their own.
"""

import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, model_validator

from corl_core import ring
from corl_core.config_errors import ConfigError, did_you_mean, explain, with_override
from corl_core.config_sections import (
    AgentConfig,
    AgentName,
    DataConfig,
    EvalConfig,
    ExchangeConfig,
    GRPOSettings,
    Strict,
    VoteConfig,
)

PRESETS = Path(__file__).parent / "presets"
METHOD_LABELS = {"corl": "Co-RL", "ttrl": "TTRL", "ground_truth": "Supervised GRPO"}

class RunConfig(Strict):
    """One training of one cohort."""

    name: str = Field(min_length=1, max_length=80, description="What the run is called.")
    preset: str | None = Field(None, description="Preset this configuration started from.")
    notes: str = Field("", max_length=2000, description="Anything worth remembering.")
    method: Literal["corl", "ttrl", "ground_truth"] = Field(
        "corl",
        description="Where an agent's reward target comes from: its peer's vote (corl), its own vote (ttrl), the truth.",
    )
    seed: int = Field(0, ge=0, description="What makes two runs of one preset differ: base models, question order, sampling.")
    agents: list[AgentConfig] = Field(min_length=1, max_length=16, description="The cohort.")
    ring: list[AgentName] | None = Field(
        None, description="Order of the agents on the ring; each one's vote rewards the next. None: as listed."
    )
    data: DataConfig = Field(default_factory=DataConfig, description="Questions and prompts.")
    grpo: GRPOSettings = Field(default_factory=GRPOSettings, description="Optimisation.")
    vote: VoteConfig = Field(default_factory=VoteConfig, description="Voting.")
    eval: EvalConfig = Field(default_factory=EvalConfig, description="Evaluation.")
    exchange: ExchangeConfig = Field(default_factory=ExchangeConfig, description="Vote exchange.")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="Where agents train; auto takes a GPU if there is one.")
    threads_per_agent: int = Field(1, ge=1, description="CPU threads of each agent.")

    @model_validator(mode="after")
    def _cohort_fits_method(self) -> "RunConfig":
        names = [agent.name for agent in self.agents]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"agents: the name '{repeated[0]}' is used twice; every agent needs its own")
        if self.method == "corl" and len(names) < 2:
            raise ValueError(
                f"agents: method 'corl' needs at least 2 agents and has {len(names)}; add one, or use method 'ttrl' "
                "(a ring of one)"
            )
        if self.ring is not None:
            if self.method != "corl":
                raise ValueError(f"ring: method '{self.method}' has no ring; remove 'ring' or use method 'corl'")
            ring.check_order(self.ring, names)
        if self.vote.num_votes is not None and self.vote.num_votes < self.grpo.num_generations:
            raise ValueError(
                f"vote.num_votes={self.vote.num_votes} must be at least grpo.num_generations={self.grpo.num_generations}: "
                "what is trained on also votes; raise the one or lower the other"
            )
        rollouts, slices = self.grpo.questions_per_step * self.grpo.num_generations, self.grpo.gradient_accumulation_steps
        if rollouts % slices:
            raise ValueError(
                f"grpo.gradient_accumulation_steps={slices} must divide questions_per_step × num_generations = {rollouts}"
            )
        return self

    def peers(self) -> dict[str, str]:
        """agent → the agent whose vote rewards it; itself for `ttrl`; empty for `ground_truth`."""
        names = [agent.name for agent in self.agents]
        if self.method == "corl":
            return ring.peers(self.ring or names)
        return {name: name for name in names} if self.method == "ttrl" else {}

    @property
    def num_votes(self) -> int:
        """Completions that each agent samples for each question."""
        return self.vote.num_votes or self.grpo.num_generations

    def agent(self, name: str) -> AgentConfig:
        return next(agent for agent in self.agents if agent.name == name)

    def families(self) -> str:
        """The models in words, in cohort order, e.g. 'tiny:llama × tiny:qwen2'."""
        return " × ".join(agent.model for agent in self.agents)

    def to_yaml(self) -> str:
        """This configuration as YAML, without the fields that keep their default."""
        values = self.model_dump(exclude_defaults=True)
        return yaml.safe_dump({"name": self.name, "method": self.method} | values, sort_keys=False, allow_unicode=True)

    @classmethod
    def from_yaml(cls, text: str, overrides: list[str] = (), source: str = "configuration") -> "RunConfig":
        return from_values(parse_yaml(text, source), overrides, source)

    def flat(self) -> dict[str, str | int | float | bool | None]:
        """Every field as 'grpo.learning_rate' → value (lists by index), for tables and MLflow params."""
        return dict(_flatten(self.model_dump()))


def _flatten(value: Any, prefix: str = ""):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flatten(inner, f"{prefix}{key}.")
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from _flatten(inner, f"{prefix}{index}.")
    else:
        yield prefix.removesuffix("."), value


def parse_yaml(text: str, source: str) -> dict[str, Any]:
    try:
        values = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict):
        raise ConfigError(f"{source} holds {type(values).__name__}, not 'key: value' lines")
    return values


def from_values(values: dict[str, Any], overrides: list[str], source: str) -> RunConfig:
    """Builds the configuration; `overrides` are `dotted.key=value` strings. Raises ConfigError."""
    for override in overrides:
        values = with_override(values, override)
    try:
        return RunConfig.model_validate(values)
    except ValueError as error:
        raise ConfigError(explain(error, source)) from error


def preset_names() -> list[str]:
    return sorted(path.stem for path in PRESETS.glob("*.yaml"))


def load_config(source: str | Path, overrides: list[str] = ()) -> RunConfig:
    """A preset's name or a YAML file, with `dotted.key=value` overrides. Raises ConfigError."""
    name = str(source)
    path = Path(source)
    if re.fullmatch(r"[a-z0-9-]+", name) and (PRESETS / f"{name}.yaml").is_file():
        values = parse_yaml((PRESETS / f"{name}.yaml").read_text(encoding="utf-8"), f"preset '{name}'")
        return from_values({"name": name, "preset": name} | values, list(overrides), f"preset '{name}'")
    if path.suffix in (".yaml", ".yml"):
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"cannot read '{path}': {getattr(error, 'strerror', None) or error}") from error
        return RunConfig.from_yaml(text, list(overrides), f"'{path}'")
    raise ConfigError(
        f"'{name}' is neither a preset nor a .yaml file{did_you_mean(name, preset_names()) or '.'} "
        f"Presets: {', '.join(preset_names())}"
    )
