"""`bench placement`."""

import argparse
import json
from dataclasses import asdict

from corl_core.cli.numbers import at_least, multiple_of
from corl_core.cli.runs import add_overrides


def add(what: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = what.add_parser("placement", parents=[common], help="agents on a GPU each, on one GPU, and one agent on two")
    verb.add_argument("--model", default="tiny", help="a shape, e.g. qwen2.5-3b (default: tiny)")
    verb.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    verb.add_argument("--rows", type=multiple_of(8), default=128, help="completions a step, 8 of a question (default: 128)")
    verb.add_argument("--tokens", type=at_least(1), default=256, help="longest completion (default: 256)")
    verb.add_argument("--steps", type=at_least(4), default=8, help="steps of each arm (default: 8)")
    verb.add_argument("--parallel", nargs="*", choices=["ddp", "fsdp", "deepspeed"], default=["ddp"], metavar="HOW")
    add_overrides(verb)
    verb.set_defaults(run=_placement)


def _placement(arguments: argparse.Namespace) -> int:
    from corl_core.bench import machine, placement

    machine.require(arguments.device)
    setting = placement.Setting(
        arguments.model, arguments.device, arguments.rows, arguments.tokens, arguments.steps, tuple(arguments.parallel)
    )
    rows = placement.measure(setting, arguments.overrides)
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else placement.table(setting, rows))
    return int(any(row.step_s is None for row in rows))
