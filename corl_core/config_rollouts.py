"""Where sampling and the other parts of a configuration do not go together."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from corl_core.config import RunConfig

NEED_DISTRIBUTIONS = ("intuitor", "rent")  # rewarded by self-certainty or entropy


def check_rollouts(config: "RunConfig") -> None:
    """Raises ValueError for what vLLM cannot do."""
    settings = config.rollouts
    if settings.backend != "vllm":
        if settings.vllm_servers:
            raise ValueError("rollouts.vllm_servers is for backend 'vllm' with vllm_mode 'server'; remove it")
        return
    what = "rollouts.backend='vllm'"
    if config.device == "cpu":
        raise ValueError(f"{what} with device='cpu': vLLM needs a GPU; use backend 'auto'")
    if unknown := [name for name in config.signals if name in NEED_DISTRIBUTIONS]:
        raise ValueError(
            f"{what} with method '{unknown[0]}': vLLM does not tell the entropy or self-certainty that rewards it; use backend "
            "'auto'"
        )
    if several := [agent.name for agent in config.agents if agent.placement.num_processes > 1]:
        raise ValueError(f"{what}: agent '{several[0]}' has several processes, and vLLM serves one here; use backend 'auto'")
    missing = [agent.name for agent in config.agents if agent.name not in settings.vllm_servers]
    if settings.vllm_mode == "server" and missing:
        raise ValueError(
            f"{what} with vllm_mode='server': agent '{missing[0]}' has no server; give rollouts.vllm_servers, such as "
            f"{{{missing[0]}: 'http://127.0.0.1:8000'}}, one server for each agent"
        )
    if settings.vllm_mode == "colocate" and settings.vllm_servers:
        raise ValueError(f"{what} with vllm_mode='colocate' and vllm_servers: use vllm_mode 'server', or remove vllm_servers")
