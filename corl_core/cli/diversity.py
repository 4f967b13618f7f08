"""`diversity`: whom to pair. From a file of answers that exist (seconds, no torch), or from candidates that are sampled here."""

import argparse
import json
import sys
import time
from pathlib import Path

from tqdm import tqdm

from corl_core.cli.runs import add_overrides
from corl_core.config import ConfigError
from corl_core.data.sources import ARITHMETIC
from corl_core.diversity import jobs
from corl_core.diversity.answers import Answers
from corl_core.diversity.cohorts import Cohort
from corl_core.diversity.measures import MEASURES
from corl_core.diversity.reading import read_answers
from corl_core.diversity.report import Predictions, Report, as_json, predictions, report
from corl_core.diversity.request import DEFAULT_QUESTIONS, DEFAULT_SAMPLES, request

POLL_S = 0.5
SHOWN = {"kappa": "kappa", "exactly_one_right": "c", "same_wrong": "w", "union": "u", "jaccard": "Jaccard", "agreement": "agree"}
MOST_SHOWN = 10
MAX_GROUP = 64


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("diversity", parents=[common], help="whom to pair: measures of pairs, from answers or from models")
    verb.add_argument(
        "--answers", metavar="FILE",
        help="answers that exist: rows of question_id, model, answer or completion, truth if known; or a row a question and a "
        "column a model; or the id of a sampling that was kept",
    )  # fmt: skip
    verb.add_argument(
        "--models", nargs="+", default=[], metavar="MODEL",
        help="candidates to sample: tiny:llama, tiny:llama@careless, a Hugging Face id, a folder; with --answers: whose",
    )  # fmt: skip
    verb.add_argument("--questions", default=ARITHMETIC, metavar="SOURCE", help="as data.train (default: arithmetic)")
    verb.add_argument("--num-questions", type=int, default=DEFAULT_QUESTIONS, metavar="N", help="(default: %(default)s)")
    verb.add_argument("-k", "--num-samples", type=int, default=DEFAULT_SAMPLES, metavar="K", help="(default: %(default)s)")
    verb.add_argument("--seeds", type=int, nargs="+", default=[0], metavar="SEED", help="one candidate a model and seed")
    verb.add_argument("--paraphrases", action="store_true", help="ask the paraphrases, too, as candidates of their own")
    verb.add_argument("--basis", choices=["first", "vote"], default="first", help="first sample (as the paper) or majority vote")
    verb.add_argument("--group-size", type=int, default=8, metavar="K", help="K in training, for predictions (default: 8)")
    verb.add_argument("--no-predictions", action="store_true", help="the measures alone")
    verb.add_argument("--background", action="store_true", help="print the sampling's id at once instead of waiting")
    add_overrides(verb)
    verb.set_defaults(run=_diversity)


def _diversity(arguments: argparse.Namespace) -> int:
    if arguments.answers is None and not arguments.models:
        raise ConfigError("diversity needs --answers FILE, or --models to sample: e.g. --models tiny:llama tiny:qwen2")
    if not 2 <= arguments.group_size <= MAX_GROUP:
        raise ConfigError(f"--group-size {arguments.group_size}: a group in training has between 2 and {MAX_GROUP} completions")
    if arguments.answers is not None:
        return _print(arguments, read_answers(_kept(arguments) or Path(arguments.answers), arguments.models))
    asked = request(
        arguments.models, arguments.questions, arguments.num_questions, arguments.num_samples, arguments.seeds,
        arguments.paraphrases, arguments.overrides,
    )  # fmt: skip
    job = jobs.launch(asked, arguments.runs)
    if arguments.background:
        print(json.dumps({"id": job.id, "path": str(job.path)}) if arguments.json else job.id)
        return 0
    return _follow(arguments, job)


def _kept(arguments: argparse.Namespace) -> Path | None:
    """The answers of a kept sampling that is called that."""
    job = None if Path(arguments.answers).exists() else jobs.find_job(arguments.runs, arguments.answers)
    if job is not None and job.answers is None:
        raise ConfigError(f"sampling {job.id} is {job.status().state} and no candidate is done yet")
    return job.answers if job else None


def _follow(arguments: argparse.Namespace, job: jobs.Job) -> int:
    """Waits with a progress bar, then prints; Ctrl-C stops the sampling, and what is done stays."""
    try:
        with tqdm(total=job.status().max_steps, unit="completion", dynamic_ncols=True, disable=arguments.json) as bar:
            while not (status := job.status()).final:
                bar.total, bar.n = status.max_steps, status.step
                bar.set_description(status.phase or status.state)
                time.sleep(POLL_S)
    except KeyboardInterrupt:
        jobs.stop(job)
        raise ConfigError(f"stopped; what is done stays: python -m corl_core diversity --answers {job.id}") from None
    if status.state != "finished" or job.answers is None:
        print(f"error: sampling {job.id} {status.state}: {status.reason} (log: {job.path / jobs.LOG})", file=sys.stderr)
        return 1
    return _print(arguments, read_answers(job.answers), job.id)


def _print(arguments: argparse.Namespace, answers: Answers, kept: str | None = None) -> int:
    made = report(answers, arguments.basis)
    if arguments.no_predictions:
        predicted = Predictions([], [], "not asked for (--no-predictions)")
    else:
        predicted = predictions(answers, arguments.group_size)
    if arguments.json:
        print(json.dumps(as_json(made, predicted) | ({"id": kept} if kept else {}), ensure_ascii=False))
        return 0
    print("\n".join(_lines(made, predicted)))
    if kept:
        print(f"\nkept: python -m corl_core diversity --answers {kept}")
    return 0


def _lines(made: Report, predicted: Predictions) -> list[str]:
    answers = made.answers
    lines = [
        f"{len(answers.models)} models, {len(answers.questions):,} questions, {answers.num_labelled:,} with known truth, "
        f"up to {answers.num_samples} samples each; pairs compared by {'vote' if made.basis == 'vote' else 'first sample'}"
    ]
    lines += [f"note: {note}" for note in answers.notes]
    if made.label_free:
        lines.append("no truth is known: agreement is the one measure that needs none")
    lines += ["", *_accuracies(made), "", *_pairs(made)]
    if made.edges:
        lines += ["", "pseudo-label accuracy that each model would receive (peer → agent), against its own vote:"]
        lines += [
            f"  {edge.peer} → {edge.agent}: {_share(edge.pseudo_label_accuracy)}{_interval(edge.interval)}, "
            f"own vote {_share(edge.own_vote_accuracy)}; rights {_share(edge.corrects)} of its wrong votes, "
            f"misleads {_share(edge.misleads)} of its right ones"
            for edge in made.edges
        ]
    return [*lines, "", *_predicted(predicted)]


def _accuracies(made: Report) -> list[str]:
    width = max(len(model.model) for model in made.models)
    return [
        f"{model.model:<{width}}  accuracy {_share(model.sample)}, of the vote {_share(model.vote)}, read {_share(model.read)}"
        for model in made.models
    ]


def _pairs(made: Report) -> list[str]:
    shown = {name: label for name, label in SHOWN.items() if name in made.measures}
    titles = [f"{pair.a} × {pair.b}" for pair in made.pairs] + [f"{pair.a}, seeds only" for pair in made.selves]
    width = max(map(len, titles))
    lines = [" " * width + "".join(f"  {label:>20}" for label in shown.values())]
    for title, pair in zip(titles, [*made.pairs, *made.selves], strict=True):
        cells = [f"{_share(pair[name])}{_interval(pair.intervals[name])}" for name in shown]
        lines.append(f"{title:<{width}}" + "".join(f"  {cell:>20}" for cell in cells))
    reasons = {
        f"  {MEASURES[name].label} of {pair.a} × {pair.b} is not defined: {text}"
        for pair in made.pairs
        for name, text in pair.reasons.items()
        if name in made.measures
    }
    return lines + sorted(reasons)


def _predicted(predicted: Predictions) -> list[str]:
    if predicted.why_not:
        return [f"not predicted: {predicted.why_not}"]
    lines = ["predicted accuracy after training (mean, and each model: today → alone | in the cohort):"]
    for cohort in [*predicted.pairs[:MOST_SHOWN], *predicted.rings[:MOST_SHOWN]]:
        lines.append(f"  {_cohort(cohort)}")
        lines += [f"    warning: {warning}" for warning in cohort.warnings]
    return lines + [f"note: {note}" for note in predicted.notes]


def _cohort(cohort: Cohort) -> str:
    arrow = " × " if len(cohort.models) == 2 else " → "
    agents = "; ".join(
        f"{model} {start:.2f} → {alone:.2f} | {final:.2f}"
        for model, start, alone, final in zip(cohort.models, cohort.start, cohort.alone, cohort.final, strict=True)
    )
    return f"{cohort.mean_final:.3f}{_interval(cohort.interval)}  {arrow.join(cohort.models)}: {agents}"


def _share(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _interval(interval: tuple[float, float] | None) -> str:
    return f" [{interval[0]:.2f}, {interval[1]:.2f}]" if interval else ""
