"""`bench memory` and `bench exchange`: what a run's size costs."""

import argparse
import json
from dataclasses import asdict

from corl_core.cli.numbers import at_least


def add(what: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    memory = what.add_parser("memory", parents=[common], help="the forecast of memory against a step of models of real shapes")
    memory.add_argument("--device", choices=["cuda", "trace"], default="trace", help="trace: the update alone, without a GPU")
    memory.add_argument("--shapes", nargs="+", default=None, metavar="NAME", help="only these (default: all)")
    memory.set_defaults(run=_memory)
    exchange = what.add_parser("exchange", parents=[common], help="bytes and time of a round of votes, by agents and questions")
    exchange.add_argument("--agents", type=at_least(2), nargs="+", default=[2, 4, 8])
    exchange.add_argument("--questions", type=at_least(1), nargs="+", default=[8, 128, 1024])
    exchange.add_argument("--rounds", type=at_least(1), default=40, help="rounds of each (default: 40)")
    exchange.set_defaults(run=_exchange)


def _memory(arguments: argparse.Namespace) -> int:
    from corl_core.bench import memory

    rows = memory.measure(arguments.device, arguments.shapes)
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else memory.table(rows))
    return 0


def _exchange(arguments: argparse.Namespace) -> int:
    from corl_core.bench import exchange

    rows = exchange.measure(tuple(arguments.agents), tuple(arguments.questions), arguments.rounds)
    print(exchange.as_json(rows) if arguments.json else exchange.table(rows))
    return 0
