"""The whole analysis of a set of answers, as one value: what the command prints and the page shows."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from corl_core.diversity.answers import BASES, NOT_ASKED, Answers, Basis
from corl_core.diversity.cohorts import FEW_SAMPLES, Cohort, Forecaster, pair_cycles, ring_cycles, why_not
from corl_core.diversity.edges import Edge, edges
from corl_core.diversity.measures import LABEL_FREE, MEASURES
from corl_core.diversity.pairs import Pair, pairs, selves
from corl_core.diversity.reference import PAPER_PAIRS, SOURCE


@dataclass(frozen=True)
class ModelAccuracy:
    """One model's accuracy on labelled questions it was asked; None without any."""

    model: str
    sample: float | None  # mean over all samples
    vote: float | None  # of the majority vote
    read: float | None  # share of the samples from which an answer could be read


@dataclass(frozen=True)
class Report:
    """See the modules named in the fields' types. Without truth, only the label-free measures have values."""

    answers: Answers
    basis: Basis
    models: list[ModelAccuracy]
    pairs: list[Pair]
    selves: list[Pair]
    edges: list[Edge]

    @property
    def label_free(self) -> bool:
        """Whether no truth is known."""
        return self.answers.num_labelled == 0

    @property
    def measures(self) -> list[str]:
        """The names of the measures that can be had."""
        return LABEL_FREE if self.label_free else list(MEASURES)


def report(answers: Answers, basis: Basis = "first", seed: int = 0) -> Report:
    """Everything but the predictions after training, in a fraction of a second."""
    models = [_accuracy(answers, place) for place in range(len(answers.models))]
    own = selves(answers, seed) if basis == "first" else []
    return Report(answers, basis, models, pairs(answers, basis, seed), own, edges(answers, seed))


@dataclass(frozen=True)
class Predictions:
    """Ranked cohorts; or, without any, `why_not`. `notes`: limits of these predictions."""

    pairs: list[Cohort]
    rings: list[Cohort]
    why_not: str = ""
    notes: tuple[str, ...] = ()


def predictions(answers: Answers, num_generations: int = 8, seed: int = 0, with_rings: bool = True) -> Predictions:
    """The theory's ranks of all pairs and, unless left out, rings of three: in seconds, or a minute for many candidates."""
    if why := why_not(answers):
        return Predictions([], [], why)
    forecaster, num = Forecaster(answers, num_generations, seed), len(answers.models)
    notes = ["each question is followed alone: nothing that a model learns from one question helps it on another"]
    if answers.num_samples < FEW_SAMPLES:
        notes.append(f"{answers.num_samples} samples a question are few: with {FEW_SAMPLES} or more, rare answers are seen")
    rings = ring_cycles(num) if with_rings else []
    if with_rings and len(rings) < num * (num - 1) * (num - 2) // 3:
        notes.append(f"only the first {len(rings)} rings of three are predicted")
    return Predictions(forecaster.ranked(pair_cycles(num)), forecaster.ranked(rings), "", tuple(notes))


def _accuracy(answers: Answers, place: int) -> ModelAccuracy:
    codes, vote, truths = answers.codes[place], answers.votes[place], answers.truths
    asked = codes != NOT_ASKED
    known = asked & (truths >= 0)[:, None]
    voted = known.any(1)
    right = codes == truths[:, None]
    return ModelAccuracy(answers.models[place], _mean(right[known]), _mean((vote == truths)[voted]), _mean((codes >= 0)[asked]))


def _mean(values: np.ndarray) -> float | None:
    return float(values.mean()) if len(values) else None


def as_json(made: Report, predicted: Predictions) -> dict[str, Any]:
    """The report as JSON values; shares are fractions, undefined ones null with a reason, intervals [low, high] of 95%."""
    answers = made.answers
    return {
        "models": [asdict(model) for model in made.models],
        "num_questions": len(answers.questions),
        "num_labelled": answers.num_labelled,
        "num_samples": answers.num_samples,
        "basis": made.basis,
        "basis_doc": BASES[made.basis],
        "label_free": made.label_free,
        "notes": list(answers.notes),
        "pairs": [_pair(pair) for pair in made.pairs],
        "seeds_only": [_pair(pair) for pair in made.selves],
        "edges": [asdict(edge) | {"gain": edge.gain} for edge in made.edges],
        "predicted": {
            "pairs": [_cohort(cohort) for cohort in predicted.pairs],
            "rings": [_cohort(cohort) for cohort in predicted.rings],
            "why_not": predicted.why_not,
            "notes": list(predicted.notes),
        },
        "reference": {"source": SOURCE, "pairs": [asdict(pair) for pair in PAPER_PAIRS]},
    }


def _pair(pair: Pair) -> dict[str, Any]:
    facts = {"a": pair.a, "b": pair.b, "num_labelled": pair.num_labelled, "num_answered": pair.num_answered}
    facts |= {"accuracy_a": pair.right_a, "accuracy_b": pair.right_b}
    return facts | pair.values | {"intervals": pair.intervals, "reasons": pair.reasons}


def _cohort(cohort: Cohort) -> dict[str, Any]:
    return asdict(cohort) | {"mean_final": cohort.mean_final, "gain": cohort.gain, "warnings": cohort.warnings}
