"""`bench demo`, `bench engine` and `bench answers`: measurements as commands."""

import argparse
import json
from dataclasses import asdict

from corl_core.cli.runs import add_overrides


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    bench = verbs.add_parser("bench", help="measure, and print a Markdown table")
    what = bench.add_subparsers(dest="what", required=True, metavar="WHAT")
    demo = what.add_parser("demo", parents=[common], help="what each demo preset learns, over seeds")
    demo.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    demo.add_argument("--presets", nargs="+", default=None, metavar="PRESET")
    demo.add_argument("--jobs", type=int, default=1, help="runs at a time; each agent wants a core (default: 1)")
    demo.set_defaults(run=_demo)
    methods = what.add_parser("methods", parents=[common], help="every method and cohort design on the demo task, over seeds")
    methods.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    methods.add_argument("--arms", nargs="+", default=None, metavar="NAME", help="only the arms whose name has this in it")
    methods.add_argument("--jobs", type=int, default=1, help="runs at a time; each agent wants a core (default: 1)")
    methods.set_defaults(run=_methods)
    pairs = what.add_parser("pairs", parents=[common], help="the cohort picker's predictions against training")
    pairs.add_argument("--seeds", type=int, nargs="+", default=[0])
    pairs.add_argument("--rings", type=int, default=8, help="rings of three to train beside every pair (default: 8)")
    pairs.add_argument("--models", type=int, default=6, help="only the pairs of the first so many base models (default: 6, all)")
    pairs.add_argument("--jobs", type=int, default=1, help="runs at a time; each agent wants a core (default: 1)")
    pairs.set_defaults(run=_pairs)
    engine = what.add_parser("engine", parents=[common], help="a cohort of two beside two plain TRL trainers")
    engine.add_argument("--steps", type=int, default=60, help="steps of each run (default: 60)")
    engine.add_argument("--repeats", type=int, default=3, help="times each arm runs (default: 3)")
    engine.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    engine.set_defaults(run=_engine)
    answers = what.add_parser("answers", parents=[common], help="seconds to read and key answers")
    answers.add_argument("--answers", type=int, default=10_000, dest="num_answers", help="how many (default: 10000)")
    answers.set_defaults(run=_answers)
    for verb in (demo, methods, pairs, engine):
        add_overrides(verb)


def _demo(arguments: argparse.Namespace) -> int:
    from corl_core.bench import demo

    presets = arguments.presets or list(demo.PRESETS)
    rows = demo.measure(presets, arguments.seeds, arguments.runs, arguments.overrides, arguments.jobs)
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else demo.table(rows))
    return 0


def _methods(arguments: argparse.Namespace) -> int:
    from corl_core.bench import methods

    arms = methods.chosen(arguments.arms)
    rows = methods.measure(arms, arguments.seeds, arguments.runs, arguments.overrides, arguments.jobs)
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else methods.table(rows))
    return 0


def _pairs(arguments: argparse.Namespace) -> int:
    from corl_core.bench import pairs

    bases = pairs.BASES[: arguments.models]
    rows = pairs.measure(bases, arguments.seeds, arguments.rings, arguments.runs, arguments.overrides, arguments.jobs)
    if arguments.json:
        print(json.dumps({"cohorts": [asdict(row) for row in rows], "checks": [asdict(check) for check in pairs.checks(rows)]}))
    else:
        print(pairs.table(rows))
    return 0


def _engine(arguments: argparse.Namespace) -> int:
    from corl_core.bench import engine

    arms = engine.measure(engine.configuration(arguments.steps, arguments.device, arguments.overrides), arguments.repeats)
    if arguments.json:
        shares = {name: {part: arm.share(part) for part in engine.PARTS} for name, arm in arms.items()}
        print(json.dumps({name: {"step_s": arm.step(), "shares": shares[name]} for name, arm in arms.items()}))
    else:
        print(engine.table(arms))
    return 0


def _answers(arguments: argparse.Namespace) -> int:
    from corl_core.bench import answers

    timing = answers.measure(arguments.num_answers)
    print(json.dumps(asdict(timing)) if arguments.json else answers.table(timing))
    return 0
