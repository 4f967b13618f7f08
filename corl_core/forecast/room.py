"""What cannot fit this machine is not started, unless somebody who knows better says so."""

import sys

from corl_core.config import ConfigError, RunConfig
from corl_core.data.questions import DataError
from corl_core.runs.launch import LaunchError
from corl_core.tiny_names import is_tiny


def lack_of_room(config: RunConfig) -> str:
    """Why the run cannot fit this machine, and what would, in one line; '' where it fits or cannot be forecast, and for a run
    that trains elsewhere."""
    if config.launcher == "ray" or all(is_tiny(agent.model) for agent in config.agents):
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


def require_room(config: RunConfig, anyway: bool) -> None:
    """Raises LaunchError where the run cannot fit; `anyway`: it is only said."""
    said = lack_of_room(config)
    if said and not anyway:
        raise LaunchError(f"{said} To start it all the same: --anyway")
    if said:
        print(f"warning: {said}", file=sys.stderr)
