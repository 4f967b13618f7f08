"""`forecast`: memory an agent and hours, before a run is started."""

import argparse
import json
import sys

from corl_core.cli.numbers import at_least
from corl_core.cli.runs import add_overrides
from corl_core.config import ConfigError, RunConfig, load_config


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("forecast", parents=[common], help="memory an agent and hours for a configuration")
    verb.add_argument("config", help="a preset's name or a .yaml file")
    verb.add_argument("--gpu-memory", metavar="SIZE", help="size of each GPU, e.g. 80GiB (default: those visible here)")
    verb.add_argument("--card", metavar="NAME", help="a card, e.g. H200 or 'RTX 4090': its size and datasheet")
    verb.add_argument("--gpus", type=at_least(1), metavar="N", help="how many (default: those visible, else one a process)")
    verb.add_argument("--prompt-tokens", type=at_least(1), metavar="N", help="longest prompt (default: by its characters)")
    verb.add_argument("--probe", action="store_true", help="train a few steps here and scale what they took")
    verb.add_argument("--probe-steps", type=at_least(1), default=4, metavar="N", help="steps of the probe (default: 4)")
    add_overrides(verb)
    verb.set_defaults(run=_forecast)


def _forecast(arguments: argparse.Namespace) -> int:
    """Exit code 1 when the run cannot fit."""
    from corl_core.forecast import plan, prompts, remedies, report
    from corl_core.forecast.device import device_for, memory_size

    config = load_config(arguments.config, arguments.overrides)
    size = memory_size(arguments.gpu_memory) if arguments.gpu_memory else None
    device = device_for(config, size, arguments.card, arguments.gpus)
    characters = None if arguments.prompt_tokens else prompts.longest(config)
    try:
        made = plan.forecast(config, device, arguments.prompt_tokens, characters)
    except ConfigError as error:
        if not arguments.probe:
            raise
        print(f"not forecast: {error}", file=sys.stderr)
        probed = _probe(config, arguments)
        print(json.dumps({"probe": probed.as_json()}) if arguments.json else "\n".join(f"* {note}" for note in probed.notes()))
        return 0
    found = [] if made.fits else remedies.remedies(config, device, arguments.prompt_tokens, characters)
    probed = _probe(config, arguments) if arguments.probe and made.fits else None
    if arguments.json:
        print(json.dumps(report.as_json(made, found) | ({"probe": probed.as_json()} if probed else {})))
    else:
        print(report.table(made))
        if probed:
            print("\n".join(["", *(f"* {note}" for note in probed.notes())]))
    for problem in report.problems(made, found):
        print(problem, file=sys.stderr)
    return int(not made.fits)


def _probe(config: RunConfig, arguments: argparse.Namespace):
    from corl_core.forecast.probe import probe

    return probe(config, arguments.probe_steps)
