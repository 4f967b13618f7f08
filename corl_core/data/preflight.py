"""What should be known of a run's data before it starts, and what a run is refused for.

Refused: supervised training with under 90% of the true answers parsed; weights chosen by held-out questions where there are
none; an agent that is to read paraphrases where there are none; more than one prompt in ten too long for the model, or any where
it fails on it. Everything else is told and left to the person.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from corl_core.config import RunConfig
from corl_core.data import checks, paraphrase
from corl_core.data.checks import Finding, Lengths
from corl_core.data.hub import is_dataset_id
from corl_core.data.questions import DataError, Question
from corl_core.data.sources import ARITHMETIC, Loaded, load_held_out, load_training
from corl_core.seeds import derive


@dataclass(frozen=True)
class Report:
    """The data of a run and what was found. `pairs`: questions beside their paraphrases, flagged ones first."""

    train: Loaded
    held_out: Loaded | None
    findings: tuple[Finding, ...]
    pairs: tuple[paraphrase.Pair, ...] = ()

    @property
    def refusals(self) -> list[str]:
        return self._at("refusal")

    @property
    def warnings(self) -> list[str]:
        return self._at("warning")

    def _at(self, level: str) -> list[str]:
        return [finding.text for finding in self.findings if finding.level == level]

    def require(self) -> None:
        """Raises DataError with everything that the run is refused for."""
        if self.refusals:
            raise DataError("; ".join(self.refusals))


def preflight(
    config: RunConfig, lengths: Callable[[Sequence[Question]], Sequence[Lengths]] | None = None,
    accuracies: Callable[[Sequence[Question]], Sequence[float]] | None = None,
) -> Report:  # fmt: skip
    """Looks at a run's data. `lengths` measures prompts in tokens, without it they are told in characters; `accuracies`
    gives the accuracy of the questions where one is known. Raises DataError when the data cannot be loaded."""
    train, held_out = load(config)
    pairs = paraphrase.audit(train.questions, train.places)
    findings = [*checks.loaded("training", train), *(checks.loaded("held-out", held_out) if held_out else ())]
    findings += [checks.gold(config, train), *([checks.held_out_gold(held_out)] if held_out else ())]
    findings += checks.chosen_by(config, held_out)
    findings += checks.fit(config, train, lengths(train.questions) if lengths else ())
    if held_out and held_out.questions and lengths:
        findings += checks.held_out_fit(config, held_out, lengths(held_out.questions))
    findings += [*checks.repeats(config, train), *checks.overlapping(train, held_out)]
    findings += checks.paraphrases(config, train, pairs)
    findings.append(checks.signal(config, accuracies(train.questions) if accuracies else ()))
    return Report(train, held_out, tuple(findings), tuple(pairs))


def load(config: RunConfig) -> tuple[Loaded, Loaded | None]:
    """The training and held-out questions that the agents of a run will see."""
    num = config.grpo.max_steps * config.grpo.questions_per_step
    train = load_training(config.data, num, derive("questions", config.seed) % 2**31)
    return train, load_held_out(config.data, config.eval.num_questions)


def refuse_before_launch(config: RunConfig) -> None:
    """Raises DataError for what would be refused anyway, from data that lies on this machine; a dataset id is left to the
    agents, which look at it themselves before they train, since it may have to be downloaded."""
    sources = [source for source in (config.data.train, config.data.eval) if source]
    if any(source != ARITHMETIC and not Path(source).expanduser().is_file() and is_dataset_id(source) for source in sources):
        return
    preflight(config).require()
