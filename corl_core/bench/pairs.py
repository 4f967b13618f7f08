"""`bench pairs`: is the cohort picker right? Predicted against measured accuracy after training, over pairs and rings of three.

Base models of the demo's families and schools are sampled once, before any training; from these answers alone the theory predicts
the final accuracy of every agent of every cohort (`corl_core/diversity/cohorts.py`). Then every cohort is trained as the preset
`demo-pair` trains, and its last held-out accuracy is compared: Spearman's rank correlation over pairs, rings and agents, and the
mean absolute error. Beside the theory stand simple rules that need no theory, ranked by the same measure.
"""

import json
import random
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

import numpy as np

from corl_core.bench.demo import POLL_S, train_all
from corl_core.config import RunConfig, load_config
from corl_core.data.sources import ARITHMETIC
from corl_core.diversity import jobs
from corl_core.diversity.answers import Answers
from corl_core.diversity.cohorts import Cohort, Forecaster, pair_cycles, ring_cycles
from corl_core.diversity.pairs import pairs
from corl_core.diversity.reading import read_answers
from corl_core.diversity.request import of_agents
from corl_core.runs.folder import Run
from corl_core.runs.results import results

BASES = (
    {"name": "llama", "model": "tiny:llama"},
    {"name": "qwen2", "model": "tiny:qwen2"},
    {"name": "gpt_neox", "model": "tiny:gpt_neox"},
    {"name": "llama-1", "model": "tiny:llama", "seed": 1},
    {"name": "qwen2-careless", "model": "tiny:qwen2", "school": "careless"},
    {"name": "gpt_neox-stubborn", "model": "tiny:gpt_neox", "school": "stubborn"},
)
"""Three families with a slip each; a second model with llama's slip; one whose votes are mostly right; one that always slips."""
NUM_QUESTIONS, NUM_SAMPLES = 300, 32
RULES = {
    "theory": "predicted mean final accuracy",
    "base": "mean accuracy of a sample before training",
    "union": "at least one right (u), mean over pairs",
    "complementary": "exactly one right (c), mean over pairs",
    "kappa": "minus Cohen's kappa, mean over pairs",
    "same_wrong": "minus both wrong with the same answer (w), mean over pairs",
}


@dataclass(frozen=True)
class Row:
    """One cohort of one seed; tuples are in ring order."""

    seed: int
    models: tuple[str, ...]
    base: tuple[float, ...]  # accuracy of a sample, on the sampled questions
    alone: tuple[float, ...]  # predicted, trained on own votes
    predicted: tuple[float, ...]
    measured: tuple[float, ...]  # last held-out accuracy
    rules: dict[str, float]  # what each of RULES says of the cohort
    warned: bool

    @property
    def kind(self) -> str:
        return "pair" if len(self.models) == 2 else "ring"


def measure(
    bases: Sequence[dict], seeds: Sequence[int], num_rings: int, runs_dir: Path, overrides: list[str], jobs_at_once: int = 1
) -> Iterator[Row]:
    """Samples, predicts, and trains every cohort that has not finished before, `jobs_at_once` runs at a time."""
    cells = [
        ((seed, cohort, answers), training(bases, seed, cohort.models, overrides))
        for seed in seeds for cohort, answers in _predict(bases, seed, num_rings, runs_dir)
    ]  # fmt: skip
    for (seed, cohort, answers), run in train_all(cells, runs_dir, jobs_at_once):
        yield _row(seed, cohort, answers, run)


def training(bases: Sequence[dict], seed: int, models: Sequence[str], overrides: Iterable[str] = ()) -> RunConfig:
    """The run of one cohort: the settings of `demo-pair`, with these agents in this order."""
    by_name = {base["name"]: base for base in bases}
    agents = json.dumps([by_name[model] for model in models])  # JSON is YAML
    return load_config("demo-pair", [f"name={' x '.join(models)}", f"agents={agents}", f"seed={seed}", *overrides])


def _predict(bases: Sequence[dict], seed: int, num_rings: int, runs_dir: Path) -> list[tuple[Cohort, Answers]]:
    """All pairs and some rings, from answers that are sampled once for each seed."""
    answers = read_answers(_sampled(bases, seed, runs_dir))
    answers = answers.only([base["name"] for base in bases])
    forecaster = Forecaster(answers, load_config("demo-pair").grpo.num_generations, seed)
    return [
        (cohort, answers)
        for cycles in (pair_cycles(len(bases)), chosen_rings(len(bases), num_rings))
        for cohort in forecaster.ranked(cycles)
    ]


def chosen_rings(num_models: int, num_rings: int) -> list[tuple[int, ...]]:
    """The same rings for every seed: a draw from all of them."""
    rings = ring_cycles(num_models)
    return random.Random("rings").sample(rings, min(num_rings, len(rings)))


def _sampled(bases: Sequence[dict], seed: int, runs_dir: Path) -> Path:
    """The file of the bases' answers, found or sampled now."""
    request = of_agents(list(bases), ARITHMETIC, NUM_QUESTIONS, NUM_SAMPLES, [f"seed={seed}"])
    found = next((job for job in jobs.all_jobs(runs_dir) if job.request == request and not _failed(job)), None)
    job = found or jobs.launch(request, runs_dir)
    while not (status := job.status()).final:
        time.sleep(POLL_S)
    if status.state != "finished" or job.answers is None:
        raise RuntimeError(f"sampling {job.id} {status.state}: {status.reason}")
    return job.answers


def _failed(job: jobs.Job) -> bool:
    return job.status().state in ("failed", "stopped", "stopping")


def _row(seed: int, cohort: Cohort, answers: Answers, run: Run) -> Row:
    ends = results(run)["agents"]
    measured = tuple(ends[model]["last"]["eval/accuracy"] for model in cohort.models)
    return Row(
        seed, cohort.models, cohort.start, cohort.alone, cohort.final, measured, _rules(cohort, answers), bool(cohort.warnings)
    )


def _rules(cohort: Cohort, answers: Answers) -> dict[str, float]:
    inside = pairs(answers.only(cohort.models))

    def mean(measure: str) -> float:
        return fmean(pair[measure] or 0.0 for pair in inside)

    return {
        "theory": cohort.mean_final, "base": fmean(cohort.start), "union": mean("union"),
        "complementary": mean("exactly_one_right"), "kappa": -mean("kappa"), "same_wrong": -mean("same_wrong"),
    }  # fmt: skip


def spearman(a: Sequence[float], b: Sequence[float]) -> float | None:
    """Rank correlation, ties at their mean rank; None where one side does not vary."""
    from scipy.stats import rankdata

    if len(a) < 2:
        return None
    ranks = [rankdata(values) for values in (a, b)]
    return None if min(np.ptp(rank) for rank in ranks) == 0 else float(np.corrcoef(*ranks)[0, 1])


@dataclass(frozen=True)
class Check:
    """How well one rule ranks the measured accuracies, and for the theory how far off its numbers are."""

    what: str
    num: int
    rank_correlation: float | None
    mean_absolute_error: float | None = None


def checks(rows: Sequence[Row]) -> list[Check]:
    """The theory over pairs, rings, all cohorts and agents; then every simple rule over all cohorts."""
    made = [_check(f"theory, {kind}s", [row for row in rows if row.kind == kind]) for kind in ("pair", "ring")]
    made.append(_check("theory, all cohorts", rows))
    predicted = [value for row in rows for value in row.predicted]
    measured = [value for row in rows for value in row.measured]
    made.append(Check("theory, every agent", len(predicted), spearman(predicted, measured), _error(predicted, measured)))
    means = [fmean(row.measured) for row in rows]
    for rule in list(RULES)[1:]:
        made.append(Check(f"rule: {RULES[rule]}", len(rows), spearman([row.rules[rule] for row in rows], means)))
    return made


def _check(what: str, rows: Sequence[Row]) -> Check:
    predicted, measured = [fmean(row.predicted) for row in rows], [fmean(row.measured) for row in rows]
    return Check(what, len(rows), spearman(predicted, measured), _error(predicted, measured))


def _error(predicted: Sequence[float], measured: Sequence[float]) -> float | None:
    return float(np.abs(np.subtract(predicted, measured)).mean()) if predicted else None


def table(rows: Sequence[Row]) -> str:
    """Markdown: every cohort, mean over seeds, the best measured first; then how well each rule ranked them."""
    lines = ["| cohort | seeds | base | alone, predicted | predicted | measured | agents: predicted → measured | warned |"]
    lines.append("| --- " * 8 + "|")
    groups = {models: [row for row in rows if row.models == models] for models in dict.fromkeys(row.models for row in rows)}
    for models, own in sorted(groups.items(), key=lambda item: -fmean(fmean(row.measured) for row in item[1])):
        lines.append(_line(models, own))
    lines += ["", "| rule | cases | Spearman | mean absolute error |", "| --- | --- | --- | --- |"]
    for check in checks(rows):
        lines.append(f"| {check.what} | {check.num} | {_two(check.rank_correlation)} | {_two(check.mean_absolute_error)} |")
    return "\n".join(lines)


def _line(models: tuple[str, ...], own: Sequence[Row]) -> str:
    def mean(name: str) -> list[float]:
        return [fmean(values) for values in zip(*(getattr(row, name) for row in own), strict=True)]

    cells = [f"{fmean(mean(name)):.2f}" for name in ("base", "alone", "predicted", "measured")]
    agents = ", ".join(f"{a:.2f} → {b:.2f}" for a, b in zip(mean("predicted"), mean("measured"), strict=True))
    joined = (" × " if len(models) == 2 else " → ").join(models)
    warned = f"{sum(row.warned for row in own)} of {len(own)}" if any(row.warned for row in own) else ""
    return f"| {joined} | {len(own)} | {' | '.join(cells)} | {agents} | {warned} |"


def _two(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
