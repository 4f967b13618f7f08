"""What is said before a run that cannot fit the GPUs of this machine is started."""

from corl_core.config import ConfigError, RunConfig
from corl_core.data.questions import DataError
from corl_core.runs.placement import visible_gpus
from corl_core.tiny_names import is_tiny


def warning(config: RunConfig) -> str:
    """One line, or '' where the run fits, trains on the CPU, or cannot be forecast: starting is never held up by this."""
    elsewhere = config.device == "cpu" or config.launcher == "ray"
    if elsewhere or all(is_tiny(agent.model) for agent in config.agents) or not visible_gpus():
        return ""
    from corl_core.forecast import plan, prompts, remedies, report  # numpy, which other commands need not wait for
    from corl_core.forecast.device import device_for

    try:
        device, characters = device_for(config), prompts.longest(config)
        made = plan.forecast(config, device, characters=characters)
        found = [] if made.fits else remedies.remedies(config, device, characters=characters)
    except (ConfigError, DataError):
        return ""
    return " ".join(report.problems(made, found))
