"""`check-data`: what a run's data holds, before it starts. `paraphrase`: a column of paraphrases by a local model."""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from tqdm import tqdm

from corl_core.cli.runs import add_overrides
from corl_core.config import ConfigError, RunConfig, from_values, load_config, preset_names
from corl_core.config_errors import did_you_mean
from corl_core.data import paraphrase
from corl_core.data.hub import OWNER_NAME, is_bare_word
from corl_core.data.learning_signal import known_accuracies
from corl_core.data.preflight import Report, preflight
from corl_core.data.questions import DataError, Question
from corl_core.data.sources import ARITHMETIC, Loaded, load

PREVIEWED = 3
MODEL_FIELDS = {"method": "corl", "agents": [{"name": "a", "model": "any"}, {"name": "b", "model": "any"}]}


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    check = verbs.add_parser("check-data", parents=[common], help="look at questions and answers before training on them")
    check.add_argument("spec", metavar="SPEC", help="a preset, a run's .yaml, a file of questions, or a Hugging Face dataset id")
    check.add_argument("--rollouts", type=Path, metavar="PATH", help="a run's folder or a file of rollouts: the learning signal")
    check.add_argument("--pairs", type=int, default=3, metavar="N", help="paraphrases to show (default: 3)")
    add_overrides(check)
    check.set_defaults(run=_check)
    make = verbs.add_parser("paraphrase", parents=[common], help="write a file with a paraphrase beside every question")
    make.add_argument("source", metavar="SOURCE", help="a file of questions or a Hugging Face dataset id")
    make.add_argument("--model", required=True, help="a Hugging Face id or a local folder; an instruction-tuned model")
    make.add_argument("--model-revision", metavar="REVISION")
    make.add_argument("--out", required=True, type=Path, metavar="FILE", help="JSON Lines: question, answer, paraphrase")
    make.add_argument("--split", default="train", help="split of a dataset (default: train)")
    make.add_argument("--batch-size", type=int, default=16)
    make.add_argument("--attempts", type=int, default=2, help="tries for each question (default: 2)")
    make.add_argument("--limit", type=int, help="only the first so many questions")
    make.add_argument("--device", choices=["auto", "cpu"], default="auto")
    make.add_argument("--seed", type=int, default=0)
    make.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", dest="overrides",
        help="a field of the data, e.g. --set question_column=problem --set config=main",
    )  # fmt: skip
    make.set_defaults(run=_paraphrase)


def _check(arguments: argparse.Namespace) -> int:
    from corl_core.training.lengths import at_hand  # imports transformers

    config = _configuration(arguments.spec, arguments.overrides)
    known = partial(known_accuracies, arguments.rollouts) if arguments.rollouts else None
    report = preflight(config, partial(at_hand, config), known)
    if arguments.json:
        print(json.dumps(_as_json(config, report), ensure_ascii=False))
    else:
        print("\n".join(_lines(config, report, arguments.pairs)))
    return int(bool(report.refusals))


def _configuration(spec: str, overrides: Sequence[str]) -> RunConfig:
    """A preset or a YAML file as it is; a source of questions under the default settings."""
    if spec in preset_names() or spec.endswith((".yaml", ".yml")):
        return load_config(spec, list(overrides))
    if spec != ARITHMETIC and is_bare_word(spec) and not Path(spec).exists():
        near = did_you_mean(spec, [*preset_names(), ARITHMETIC])
        raise ConfigError(f"'{spec}' is neither a preset nor a file{near}; {OWNER_NAME}")
    return from_values({"name": "check-data", **MODEL_FIELDS, "data": {"train": spec}}, list(overrides), f"'{spec}'")


def _lines(config: RunConfig, report: Report, num_pairs: int) -> list[str]:
    lines = [f"{finding.level:<8} {finding.text}" for finding in report.findings]
    if report.train.names:
        lines.append(f"{'columns':<8} {', '.join(report.train.names)} (choose with --set data.question_column=… and the like)")
    for place, question in zip(_places(report.train), report.train.questions[:PREVIEWED], strict=False):
        lines += ["", f"--- {place}; true answer: {question.answer or 'none'}; the prompt:"]
        lines += _prompts(config, question)
    for pair in report.pairs[:num_pairs]:
        flag = f" ({pair.change()})" if pair.flagged else ""
        lines += ["", f"--- {pair.place}, paraphrased{flag}:", pair.question, "  →", pair.paraphrase]
    return lines


def _prompts(config: RunConfig, question: Question) -> list[str]:
    """A question as the agents read it, before any chat template: each wording once."""
    templates = dict.fromkeys(config.for_agent(agent.name).data.prompt_template for agent in config.agents)
    return [template.format(question=question.question) for template in templates]


def _places(loaded: Loaded) -> Sequence[str]:
    return loaded.places or [f"question {row + 1}" for row in range(PREVIEWED)]


def _as_json(config: RunConfig, report: Report) -> dict[str, Any]:
    def told(loaded: Loaded) -> dict[str, Any]:
        return {
            "source": loaded.source, "questions": len(loaded.questions), "labelled": loaded.num_labelled,
            "columns": asdict(loaded.columns) if loaded.columns else None, "names": loaded.names,
            "dropped": [asdict(trouble) for trouble in loaded.dropped],
            "unreadable": [asdict(trouble) for trouble in loaded.unreadable],
        }  # fmt: skip

    prompts = [prompt for q in report.train.questions[:PREVIEWED] for prompt in _prompts(config, q)]
    return {
        "refused": bool(report.refusals), "findings": [asdict(finding) for finding in report.findings],
        "train": told(report.train), "held_out": told(report.held_out) if report.held_out else None, "prompts": prompts,
        "changed_paraphrases": [asdict(pair) for pair in report.pairs if pair.flagged],
    }  # fmt: skip


def _paraphrase(arguments: argparse.Namespace) -> int:
    from corl_core.training.paraphrase import generator  # imports torch

    if arguments.out.exists():
        raise DataError(f"--out '{arguments.out}' exists already; give another name, for paraphrases take long to make")
    data = _configuration(arguments.source, [f"data.{override}" for override in arguments.overrides]).data
    loaded = load(data.train, data, arguments.split, data.config, data.revision, most=arguments.limit)
    generate = generator(arguments.model, arguments.model_revision, arguments.device, arguments.seed)
    done = _write(arguments, loaded.questions, generate)
    made = sum(text is not None for text in done.texts)
    report = {"questions": len(done.texts), "paraphrased": made, "failed": dict(done.failures), "out": str(arguments.out)}
    if arguments.json:
        print(json.dumps(report))
        return int(made == 0)
    print(f"{made:,} of {len(done.texts):,} questions have a paraphrase in {arguments.out}")
    for why, count in done.failures.most_common():
        print(f"  {count:,} without: {why}")
    print(f"See them side by side: python -m corl_core check-data {arguments.out} --pairs 20")
    return int(made == 0)


def _write(arguments: argparse.Namespace, questions: Sequence[Question], generate: paraphrase.Generate) -> paraphrase.Rewrites:
    """Writes every batch down as soon as it is done, in row order."""
    done, size = paraphrase.Rewrites(), arguments.batch_size
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    bar = tqdm(total=len(questions), unit="question", disable=arguments.json)
    with arguments.out.open("x", encoding="utf-8") as out, bar:
        for start in range(0, len(questions), size):
            batch = questions[start : start + size]
            rewrites = paraphrase.rewrite(batch, generate, arguments.attempts)
            for question, text in zip(batch, rewrites.texts, strict=True):
                row = {"question": question.question, "answer": question.answer, "paraphrase": text}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
            out.flush()
            done.texts += rewrites.texts
            done.failures += rewrites.failures
            bar.update(len(batch))
    return done
