"""Where the parts of a configuration that place agents do not go together."""

from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corl_core.config import RunConfig
    from corl_core.config_sections import AgentConfig


def check_placement(config: "RunConfig") -> None:
    """Raises ValueError for agents that cannot be placed as they ask, whatever machine it is."""
    for agent in config.agents:
        _agent_fits(config, agent)
        if agent.placement.num_processes > 1:
            _slices_fit(config, agent)
            _gpus_of_ray_suffice(config, agent)
    if config.launcher == "ray" and config.device == "cuda" and not config.ray.resources.get("GPU"):
        asked = config.ray.resources
        raise ValueError(f"device='cuda' with launcher='ray' and ray.resources={asked}: ask for GPUs, e.g. {{GPU: 1}}")
    if config.launcher == "local" and (config.ray.resources or config.ray.address != "auto"):
        asked = config.ray.model_dump(exclude_defaults=True)
        raise ValueError(f"ray={asked} with launcher='local': use launcher 'ray', or remove it")


def _agent_fits(config: "RunConfig", agent: "AgentConfig") -> None:
    placement, where = agent.placement, f"agents: '{agent.name}' has placement"
    if placement.node is not None and config.launcher != "ray":
        raise ValueError(f"{where}.node={placement.node!r} with launcher='local', which knows no nodes; use launcher 'ray'")
    if placement.gpus and config.device == "cpu":
        raise ValueError(f"{where}.gpus={placement.gpus} with device='cpu'; remove the one or take device 'auto'")
    if placement.gpus and config.launcher == "ray":
        raise ValueError(
            f"{where}.gpus={placement.gpus} with launcher='ray', which numbers no GPUs; give ray.resources such as "
            "{GPU: 1}, and placement.processes for an agent that takes several"
        )
    if placement.num_processes == 1 and (placement.parallel != "ddp" or placement.accelerate_config):
        asked = placement.accelerate_config or placement.parallel
        raise ValueError(f"{where}: '{asked}' is for several processes; name several 'gpus', or give 'processes', or remove it")
    if placement.parallel != "ddp" and config.device == "cpu":
        raise ValueError(f"{where}.parallel='{placement.parallel}' with device='cpu': it needs GPUs; use 'ddp'")


def _gpus_of_ray_suffice(config: "RunConfig", agent: "AgentConfig") -> None:
    """Ray gives an agent of several processes the GPUs that it asks for; with fewer than processes, some would have none."""
    asked, ranks = config.ray.resources.get("GPU", 0), agent.placement.num_processes
    if config.launcher == "ray" and 0 < asked < ranks:
        raise ValueError(
            f"agents: '{agent.name}' trains in {ranks} processes, one GPU each, but ray.resources={config.ray.resources} "
            f"asks for {asked:g} for each agent; ask for {{GPU: {ranks}}}"
        )


def _slices_fit(config: "RunConfig", agent: "AgentConfig") -> None:
    """Every process samples, and then trains on, an equal share of a step's rollouts."""
    ranks, grpo = agent.placement.num_processes, config.grpo
    rows = grpo.questions_per_step * grpo.num_generations
    slices = agent.gradient_accumulation_steps or grpo.gradient_accumulation_steps
    if rows % (ranks * slices):
        raise ValueError(
            f"agents: '{agent.name}' trains in {ranks} processes × gradient_accumulation_steps={slices}, which must divide "
            f"questions_per_step × num_generations = {rows}"
        )
    part = gcd(rows // ranks, grpo.num_generations)  # of a group, on one process
    if part * config.num_samples % grpo.num_generations:
        raise ValueError(
            f"agents: '{agent.name}' trains in {ranks} processes, which split groups into parts of {part}: vote.num_votes="
            f"{config.num_samples} must then be a multiple of {grpo.num_generations // part}"
        )
