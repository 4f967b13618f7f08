"""`bench …`: measurements as commands."""

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import TypeVar

from corl_core.bench.telling import tell, versions
from corl_core.cli import bench_placement, bench_scale
from corl_core.cli.numbers import at_least, multiple_of
from corl_core.cli.runs import add_overrides
from corl_core.config import ConfigError

T = TypeVar("T")
WAYS = ("products", "kernel", "efficient", "cudnn")  # to compute attention
ROLLOUT_ARMS = ["generate", "static", "generate:no-cudnn", "shared", *(f"static:{way}" for way in WAYS)]
STEPS = 60
ALONE_STEPS = 6  # of a model of real size: a plain TRL step takes seconds


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    bench = verbs.add_parser("bench", help="measure, and print a Markdown table")
    what = bench.add_subparsers(dest="what", required=True, metavar="WHAT")
    demo = what.add_parser("demo", parents=[common], help="what each demo preset learns, over seeds")
    demo.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    demo.add_argument("--presets", nargs="+", default=None, metavar="PRESET")
    demo.add_argument("--jobs", type=at_least(1), default=1, help="runs at a time; each agent wants a core (default: 1)")
    demo.set_defaults(run=_demo)
    methods = what.add_parser("methods", parents=[common], help="every method and cohort design on the demo task, over seeds")
    methods.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    methods.add_argument("--arms", nargs="+", default=None, metavar="NAME", help="only the arms whose name has this in it")
    methods.add_argument("--jobs", type=at_least(1), default=1, help="runs at a time; each agent wants a core (default: 1)")
    methods.set_defaults(run=_methods)
    pairs = what.add_parser("pairs", parents=[common], help="the cohort picker's predictions against training")
    pairs.add_argument("--seeds", type=int, nargs="+", default=[0])
    pairs.add_argument("--rings", type=at_least(0), default=8, help="rings of three to train beside every pair (default: 8)")
    pairs.add_argument("--models", type=at_least(2), default=6, help="pairs of the first so many base models (default: 6, all)")
    pairs.add_argument("--jobs", type=at_least(1), default=1, help="runs at a time; each agent wants a core (default: 1)")
    pairs.set_defaults(run=_pairs)
    engine = what.add_parser("engine", parents=[common], help="a cohort of two beside two plain TRL trainers")
    engine.add_argument("--steps", type=at_least(1), help=f"steps of each run (default: {STEPS}; with --model {ALONE_STEPS})")
    engine.add_argument("--repeats", type=at_least(1), default=3, help="times each arm runs (default: 3)")
    engine.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    engine.add_argument("--model", default=None, help="a shape, e.g. qwen2.5-3b: agents alone, beside plain TRL ones")
    engine.add_argument("--agents", type=at_least(1), default=1, help="with --model: agents at once (default: 1)")
    engine.add_argument("--rows", type=multiple_of(8), default=128, help="with --model: completions a step (default: 128)")
    engine.add_argument("--tokens", type=at_least(1), default=256, help="with --model: tokens of each (default: 256)")
    engine.add_argument("--arms", nargs="+", choices=["plain", "plain-no-cudnn", "engine", "engine-no-cudnn"],
                        default=["plain", "engine"],
                        help="with --model: what to compare (default: plain engine)")  # fmt: skip
    engine.set_defaults(run=_engine)
    _add_rollouts(what, common)
    bench_scale.add(what, common)
    bench_placement.add(what, common)
    _add_learn(what, common)
    answers = what.add_parser("answers", parents=[common], help="seconds to read and key answers")
    answers.add_argument("--answers", type=at_least(1), default=10_000, dest="num_answers", help="how many (default: 10000)")
    answers.set_defaults(run=_answers)
    for verb in (demo, methods, pairs, engine):
        add_overrides(verb)


def _add_rollouts(what: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    rollouts = what.add_parser("rollouts", parents=[common], help="sampling: transformers' generate beside this engine's paths")
    rollouts.add_argument("--model", default="tiny:llama", help="a shape, e.g. qwen2.5-3b, or tiny:FAMILY (default: tiny:llama)")
    rollouts.add_argument("--rows", type=multiple_of(8), default=128, help="completions at once, 8 of a prompt (default: 128)")
    rollouts.add_argument("--tokens", type=at_least(1), default=None, help="length of a completion (default: 256; tiny: 40)")
    rollouts.add_argument("--prompt-tokens", type=at_least(1), default=None, help="length of a prompt (default: 128; tiny: 16)")
    rollouts.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    rollouts.add_argument("--dtype", choices=["float32", "bfloat16"], default=None, help="default: bfloat16 on cuda")
    rollouts.add_argument("--repeats", type=at_least(1), default=3, help="times each arm runs; the fastest counts (default: 3)")
    rollouts.add_argument("--arms", nargs="+", choices=ROLLOUT_ARMS, default=None)
    rollouts.add_argument("--profile", action="store_true", help="also what a decode step spends its time on")
    rollouts.set_defaults(run=_rollouts)


def _demo(arguments: argparse.Namespace) -> int:
    from corl_core.bench import demo

    presets = arguments.presets or list(demo.PRESETS)
    rows, code = _all_that_finish(demo.measure(presets, arguments.seeds, arguments.runs, arguments.overrides, arguments.jobs))
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else demo.table(rows))
    return code


def _all_that_finish(measured: Iterable[T]) -> tuple[list[T], int]:
    """Rows, and the exit code: 1 where some runs did not finish, which is told."""
    from corl_core.bench.demo import Unfinished

    rows: list[T] = []
    try:
        rows.extend(measured)
    except Unfinished as error:
        print(f"error: {error}", file=sys.stderr)
        return rows, 1
    return rows, 0


def _methods(arguments: argparse.Namespace) -> int:
    from corl_core.bench import methods

    arms = methods.chosen(arguments.arms)
    rows, code = _all_that_finish(methods.measure(arms, arguments.seeds, arguments.runs, arguments.overrides, arguments.jobs))
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else methods.table(rows))
    return code


def _pairs(arguments: argparse.Namespace) -> int:
    from corl_core.bench import pairs

    bases = pairs.BASES[: arguments.models]
    rows, code = _all_that_finish(
        pairs.measure(bases, arguments.seeds, arguments.rings, arguments.runs, arguments.overrides, arguments.jobs)
    )
    if arguments.json:
        print(json.dumps({"cohorts": [asdict(row) for row in rows], "checks": [asdict(check) for check in pairs.checks(rows)]}))
    else:
        print(pairs.table(rows))
    return code


def _engine(arguments: argparse.Namespace) -> int:
    from corl_core.bench import alone, engine, machine

    machine.require(arguments.device)
    _check_engine(arguments, alone.SKIP + 1 if arguments.model else engine.SKIP + 2)
    if arguments.model is not None:
        size = (arguments.device, arguments.rows, arguments.tokens, arguments.agents)
        found = alone.bench(
            arguments.model, arguments.steps or ALONE_STEPS, *size, arguments.overrides, arguments.arms,
            lambda name, arm: tell(arm=name, **asdict(arm)),
        )  # fmt: skip
        lines = "\n".join([alone.table(found, arguments.rows, arguments.tokens), versions()])
        print(json.dumps({name: asdict(arm) for name, arm in found.items()}) if arguments.json else lines)
        return int(any(arm.error for arm in found.values()))
    config = engine.configuration(arguments.steps or STEPS, arguments.device, arguments.overrides)
    arms = engine.measure(config, arguments.repeats)
    if arguments.json:
        shares = {name: {part: arm.share(part) for part in engine.PARTS} for name, arm in arms.items()}
        print(json.dumps({name: {"step_s": arm.step(), "shares": shares[name]} for name, arm in arms.items()}))
    else:
        print(engine.table(arms))
    return 0


def _check_engine(arguments: argparse.Namespace, least: int) -> None:
    """Raises ConfigError for arguments that would come to nothing."""
    if arguments.steps is not None and arguments.steps < least:
        raise ConfigError(f"--steps {arguments.steps}: the first steps pay for start-up and are left out; give at least {least}")
    size = (arguments.agents, arguments.rows, arguments.tokens)
    if arguments.model is None and size != (1, 128, 256):
        raise ConfigError("--agents, --rows and --tokens are of agents alone: add --model, such as --model tiny")


def _answers(arguments: argparse.Namespace) -> int:
    from corl_core.bench import answers

    timing = answers.measure(arguments.num_answers)
    print(json.dumps(asdict(timing)) if arguments.json else answers.table(timing))
    return 0


def _rollouts(arguments: argparse.Namespace) -> int:
    from corl_core.bench import rollouts

    tiny, device = arguments.model.startswith("tiny"), arguments.device
    setting = rollouts.Setting(
        model=arguments.model,
        rows=arguments.rows,
        tokens=arguments.tokens or (40 if tiny else 256),
        prompt_tokens=arguments.prompt_tokens or (16 if tiny else 128),
        device=device,
        dtype=arguments.dtype or ("bfloat16" if device == "cuda" else "float32"),
        repeats=arguments.repeats,
    )
    rollouts.check(setting)
    measured = rollouts.measure(setting, arguments.arms or (), lambda text: tell(say=text), lambda row: tell(**asdict(row)))
    print(json.dumps(asdict(measured)) if arguments.json else rollouts.table(measured), flush=True)
    if arguments.profile:
        from corl_core.bench import profile

        print(profile.of_a_step(setting))
    return int(any(row.error for row in measured.rows))


def _add_learn(what: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    learn = what.add_parser("learn", parents=[common], help="whether a pretrained model learns here, with and without labels")
    learn.add_argument("--model", required=True, help="a Hugging Face id or a local folder, of a small model")
    learn.add_argument("--gguf-file", help="its weights' file, of a GGUF repository or folder")
    learn.add_argument("--steps", type=at_least(1), default=100, help="GRPO steps of each run (default: 100)")
    learn.add_argument("--warm-up-steps", type=at_least(0), default=300, help="supervised steps before (default: 300)")
    learn.add_argument("--methods", nargs="+", choices=["ground_truth", "corl", "ttrl"], default=["ground_truth", "corl", "ttrl"])
    learn.add_argument("--seed", type=int, default=0)
    learn.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    learn.add_argument("--jobs", type=at_least(1), default=1, help="runs at a time, of two agents each (default: 1)")
    add_overrides(learn)
    learn.set_defaults(run=_learn)


def _learn(arguments: argparse.Namespace) -> int:
    from corl_core.bench import learn

    check = learn.Check(
        arguments.model, arguments.gguf_file, arguments.steps, arguments.warm_up_steps, arguments.device, arguments.seed
    )  # fmt: skip
    rows, code = _all_that_finish(learn.measure(check, arguments.runs, arguments.overrides, arguments.methods, arguments.jobs))
    print(json.dumps([asdict(row) for row in rows]) if arguments.json else learn.table(check, rows))
    return code
