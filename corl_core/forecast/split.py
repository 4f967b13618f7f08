"""Whether an agent's weights, gradients and moments are split over its processes, from its placement alone."""

from pathlib import Path
from typing import Any

from corl_core.config import AgentConfig, ConfigError, parse_yaml

SPLIT = ("fsdp", "deepspeed")  # `placement.parallel`


def is_split(agent: AgentConfig) -> bool:
    """An `accelerate config` file takes the place of `parallel`. Of DeepSpeed only ZeRO stage 3 counts: the stages below split a
    part, and are forecast as if they split nothing, which is on the safe side. Raises ConfigError for a file that is none."""
    placement = agent.placement
    if placement.num_processes == 1:
        return False
    if placement.accelerate_config is None:
        return placement.parallel in SPLIT
    values = accelerate_values(agent)
    kind = str(values.get("distributed_type", "")).upper()
    zero = values.get("deepspeed_config")
    return kind == "FSDP" or (kind == "DEEPSPEED" and isinstance(zero, dict) and str(zero.get("zero_stage")) == "3")


def accelerate_values(agent: AgentConfig) -> dict[str, Any]:
    """What the agent's `accelerate config` file says; {} without one. Raises ConfigError."""
    placement = agent.placement
    if placement.accelerate_config is None:
        return {}
    where = f"agent '{agent.name}': placement.accelerate_config='{placement.accelerate_config}'"
    try:
        text = Path(placement.accelerate_config).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ConfigError(f"{where} cannot be read: {reason}; make one with: accelerate config --config_file FILE") from error
    return parse_yaml(text, where)
