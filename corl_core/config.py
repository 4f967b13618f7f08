"""Everything a person can set about a run: the whole configuration, presets, files and overrides.

Defaults are the released Co-RL code's optimiser settings (loss `bnpo`, beta 0, group-scaled rewards, temperature 1) and
the paper's learning rate for text (arXiv 2608.17253, experiments); the demo presets bring their own.
"""

import math
import re
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, model_validator

from corl_core import ring
from corl_core.config_errors import ConfigError, did_you_mean, explain, with_override
from corl_core.config_models import RaySettings, RolloutSettings
from corl_core.config_placement import check_placement
from corl_core.config_rollouts import check_rollouts
from corl_core.config_sections import (
    AgentConfig,
    CheckpointConfig,
    DataConfig,
    EvalConfig,
    ExchangeConfig,
    GRPOSettings,
    VoteConfig,
)
from corl_core.config_sections_base import AgentName, Strict
from corl_core.config_signals import AlarmConfig, SignalConfig
from corl_core.methods import METHODS, SIGNALS, WEIGHTED, Method
from corl_core.security_yaml import UnsafeYAML
from corl_core.security_yaml import load as load_yaml

PRESETS = Path(__file__).parent / "presets"


class RunConfig(Strict):
    """One training of one cohort."""

    name: str = Field(min_length=1, max_length=80, description="What the run is called.")
    preset: str | None = Field(None, description="Preset this configuration started from.")
    notes: str = Field("", max_length=2000, description="Anything worth remembering.")
    method: Literal[tuple(METHODS)] = Field(
        "corl",
        description="What an agent is rewarded for: "
        + "; ".join(f"{name}: {method.about}" for name, method in METHODS.items())
        + ".",
    )
    seed: int = Field(0, ge=0, description="What makes two runs of one preset differ: base models, question order, sampling.")
    agents: list[AgentConfig] = Field(min_length=1, max_length=16, description="The cohort.")
    ring: list[AgentName] | dict[AgentName, AgentName] | None = Field(
        None,
        description="Order of the agents on the ring; each one's vote rewards the next. None: as listed. Or 'agent: peer' for "
        "every agent, for several rings in one cohort.",
    )
    data: DataConfig = Field(default_factory=DataConfig, description="Questions and prompts.")
    grpo: GRPOSettings = Field(default_factory=GRPOSettings, description="Optimisation.")
    vote: VoteConfig = Field(default_factory=VoteConfig, description="Voting.")
    signal: SignalConfig = Field(default_factory=SignalConfig, description="Supervision signals.")
    eval: EvalConfig = Field(default_factory=EvalConfig, description="Evaluation.")
    exchange: ExchangeConfig = Field(default_factory=ExchangeConfig, description="Vote exchange.")
    checkpoints: CheckpointConfig = Field(default_factory=CheckpointConfig, description="Checkpoints.")
    alarms: AlarmConfig = Field(default_factory=AlarmConfig, description="Alarms.")
    rollouts: RolloutSettings = Field(default_factory=RolloutSettings, description="Sampling.")
    launcher: Literal["local", "ray"] = Field("local", description="Who starts the agents: this machine, or a Ray cluster.")
    ray: RaySettings = Field(default_factory=RaySettings, description="Ray cluster.")
    device: Literal["auto", "cpu", "cuda"] = Field("auto", description="Where agents train; auto takes a GPU if there is one.")
    threads_per_agent: int = Field(1, ge=1, description="CPU threads of each agent.")

    @model_validator(mode="after")
    def _cohort_fits_method(self) -> "RunConfig":
        names = [agent.name for agent in self.agents]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"agents: the name '{repeated[0]}' is used twice; every agent needs its own")
        self._signals_fit()
        if self.has_ring and len(names) < 2:
            raise ValueError(
                f"agents: method 'corl' needs at least 2 agents and has {len(names)}; add one, or use method 'ttrl' "
                "(a ring of one)"
            )
        if self.ring is not None:
            if not self.has_ring:
                raise ValueError(f"ring: method '{self.method}' has no ring; remove 'ring' or use method 'corl'")
            ring.check(self.ring, names)
        self._agents_can_train()
        check_placement(self)
        check_rollouts(self)
        if self.checkpoints.every_steps % self.grpo.num_iterations:
            raise ValueError(
                f"checkpoints.every_steps={self.checkpoints.every_steps} must be a multiple of grpo.num_iterations="
                f"{self.grpo.num_iterations}: a run can only go on where new rollouts begin"
            )
        self._ring_can_resume()
        return self

    def _agents_can_train(self) -> None:
        """Raises ValueError where an agent cannot do what its settings say."""
        if self.grpo.warmup_steps and self.grpo.lr_scheduler_type == "constant":
            raise ValueError(
                f"grpo.warmup_steps={self.grpo.warmup_steps} with grpo.lr_scheduler_type='constant', which has no warm-up: take "
                "'constant_with_warmup', or 0 steps"
            )
        rollouts = self.grpo.questions_per_step * self.grpo.num_generations
        rule = f"must divide questions_per_step × num_generations = {rollouts}"
        if rollouts % self.grpo.gradient_accumulation_steps:
            raise ValueError(f"grpo.gradient_accumulation_steps={self.grpo.gradient_accumulation_steps} {rule}")
        for agent in self.agents:
            if agent.gradient_accumulation_steps is not None and rollouts % agent.gradient_accumulation_steps:
                slices = agent.gradient_accumulation_steps
                raise ValueError(f"agents: '{agent.name}' has gradient_accumulation_steps={slices}, which {rule}")
            if agent.gguf_file is not None and agent.lora is None and self.grpo.beta:
                raise ValueError(
                    f"agents: '{agent.name}' has gguf_file={agent.gguf_file!r} with grpo.beta={self.grpo.beta:g}: the KL "
                    "penalty's reference cannot be loaded from a GGUF file; take beta 0, or train adapters (lora)"
                )
            if self.device == "cpu" and agent.lora is not None and agent.lora.load_in_4bit:
                raise ValueError(
                    f"agents: '{agent.name}' has lora.load_in_4bit=True with device='cpu': bitsandbytes needs a GPU; remove "
                    "load_in_4bit, or take another device"
                )

    def _ring_can_resume(self) -> None:
        """Raises ValueError unless agents on a ring always have a checkpoint in common: each may be one batch of rollouts ahead
        of its peer, so the first up to N - 1 of them ahead of the last."""
        every, keep = self.checkpoints.every_steps, self.checkpoints.keep
        apart = (len(self.agents) - 1) * self.grpo.num_iterations
        if self.has_ring and every and keep < (needed := 1 + math.ceil(apart / every)):
            raise ValueError(
                f"checkpoints.keep={keep} with checkpoints.every_steps={every} and {len(self.agents)} agents on a ring: agents "
                f"may be {apart} steps apart, so at least {needed} are needed for one that all have; raise either"
            )

    def _signals_fit(self) -> None:
        """Raises ValueError where the signals and their settings do not go together."""
        if (self.signal.weights is not None) != (self.method == WEIGHTED):
            raise ValueError(
                f"signal.weights={self.signal.weights} with method '{self.method}': method 'weighted' needs weights such as "
                "{corl: 1, format: 0.1}, and no other method has any"
            )
        num_votes, num_generations = self.vote.num_votes, self.grpo.num_generations
        if num_votes is not None and num_votes < num_generations:
            raise ValueError(
                f"vote.num_votes={num_votes} must be at least grpo.num_generations={num_generations}: "
                "what is trained on also votes; raise the one or lower the other"
            )
        if num_votes is not None and not any(signal.votes for signal in self.signals.values()):
            raise ValueError(
                f"vote.num_votes={num_votes}: method '{self.method}' needs no votes, and the completions beyond "
                "num_generations would be sampled for nothing; remove vote.num_votes"
            )
        if "co_rewarding_1" in self.signals:
            if self.grpo.questions_per_step % 2:
                raise ValueError(
                    f"grpo.questions_per_step={self.grpo.questions_per_step} must be even with 'co_rewarding_1', which asks "
                    "every question in two wordings, each a group of its own"
                )
            if asked := [agent.name for agent in self.agents if agent.paraphrase]:
                raise ValueError(
                    f"agents: '{asked[0]}' has paraphrase: true, but with 'co_rewarding_1' every agent reads both wordings; "
                    "remove it"
                )
        if self.eval.checkpoint == "peer_agreement" and not self.has_ring:
            raise ValueError(f"eval.checkpoint='peer_agreement': method '{self.method}' has no peers; use 'last'")
        if self.eval.checkpoint != "last" and not self.eval.num_questions:
            raise ValueError(
                f"eval.checkpoint='{self.eval.checkpoint}' chooses by held-out questions, and eval.num_questions is 0; use 'last'"
            )

    @property
    def signals(self) -> dict[str, Method]:
        """The supervision signals whose rewards the agents get, by name."""
        return {name: SIGNALS[name] for name in (self.signal.weights or [self.method]) if name in SIGNALS}

    @property
    def has_ring(self) -> bool:
        return "corl" in self.signals

    def peers(self) -> dict[str, str]:
        """agent → the agent whose vote rewards it; itself where its own votes do; empty where no vote does."""
        names = [agent.name for agent in self.agents]
        if self.has_ring:
            return ring.peers(self.ring or names)
        return {name: name for name in names} if any(signal.votes for signal in self.signals.values()) else {}

    @property
    def variant(self) -> str:
        """The paper's name of a Co-RL cohort (arXiv 2608.17253): whether families, or wordings too, differ; '' without ring."""
        if not self.has_ring:
            return ""
        if len({agent.model for agent in self.agents}) == 1:
            return "same family"
        return "different family+" if any(agent.paraphrase for agent in self.agents) else "different family"

    @property
    def num_votes(self) -> int:
        """Completions of a question that vote."""
        return self.vote.num_votes or self.grpo.num_generations

    @property
    def num_samples(self) -> int:
        """Completions that each agent samples for each question: those that vote, or just those it trains on."""
        own = any(signal.votes and signal.labels_from != "teacher" for signal in self.signals.values())
        return self.num_votes if own else self.grpo.num_generations

    def agent(self, name: str) -> AgentConfig:
        return next(agent for agent in self.agents if agent.name == name)

    def for_agent(self, name: str) -> "RunConfig":
        """This configuration as one agent goes by it: where it has a setting of its own, that stands in place of the
        cohort's. Everything that asks for an agent's prompt, temperature, lengths or learning rate asks here."""
        own = self.agent(name).own
        return self.model_copy(update={section: getattr(self, section).model_copy(update=own[section]) for section in own})

    @property
    def longest_completion(self) -> int:
        """Longest completion of any agent, in tokens."""
        return max(self.for_agent(agent.name).grpo.max_completion_length for agent in self.agents)

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
        values = load_yaml(text)
    except yaml.YAMLError as error:
        raise ConfigError(f"{source} is not valid YAML: {' '.join(str(error).split())[:400]}") from error
    except UnsafeYAML as error:
        raise ConfigError(f"{source} is too large for a configuration: {error}") from error
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
    if re.fullmatch(r"[a-z0-9.-]+", name) and (PRESETS / f"{name}.yaml").is_file():
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
