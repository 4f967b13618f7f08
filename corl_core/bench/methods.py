"""`bench methods`: every method and every cohort design on the demo task, under one budget; the table of the README.

An arm is a demo preset with a few fields changed. All arms take as many steps of as many completions (questions a step times
completions a question), with the same questions, base models, evaluation and optimiser settings.
"""

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from corl_core.bench.demo import spread, train_all
from corl_core.config import ConfigError, load_config
from corl_core.runs import journal
from corl_core.runs.folder import Run
from corl_core.runs.results import results

RING = "{name: llama, model: 'tiny:llama'}, {name: qwen2, model: 'tiny:qwen2'}, {name: gpt_neox, model: 'tiny:gpt_neox'}"
FOURTH, FIFTH = "{name: llama-1, model: 'tiny:llama', seed: 1}", "{name: qwen2-1, model: 'tiny:qwen2', seed: 1}"
ROLLOUTS = 64  # questions a step times completions a question
LAST_STEPS = 25  # training metrics are means over so many steps at the end
COLLAPSED_BELOW = 0.5  # of the base accuracy


@dataclass(frozen=True)
class Arm:
    """One line of the table: a preset and what is changed in it."""

    name: str
    preset: str
    overrides: tuple[str, ...] = ()


def _method(label: str, method: str) -> Arm:
    return Arm(label, "demo", (f"method={method}",))


def _group_size(k: int) -> Arm:
    return Arm(f"Co-RL, K = {k}", "demo", (f"grpo.num_generations={k}", f"grpo.questions_per_step={ROLLOUTS // k}"))


ARMS = (
    Arm("Co-RL, ring of 3, different families", "demo"),
    Arm("Co-RL, ring of 2", "demo-pair"),
    Arm("Co-RL, ring of 4", "demo", (f"agents=[{RING}, {FOURTH}]",)),
    Arm("Co-RL, ring of 5", "demo", (f"agents=[{RING}, {FOURTH}, {FIFTH}]",)),
    Arm("Co-RL, ring of 3, same family", "demo-same-family"),
    Arm("Co-RL, ring of 2, one paraphrased", "demo-paraphrase"),
    _group_size(2),
    _group_size(4),
    _group_size(16),
    _method("TTRL", "ttrl"),
    _method("Supervised GRPO", "ground_truth"),
    _method("Intuitor", "intuitor"),
    _method("RENT", "rent"),
    _method("Co-rewarding-I", "co_rewarding_1"),
    _method("Co-rewarding-II", "co_rewarding_2"),
    _method("Random reward", "random"),
    _method("Format reward", "format"),
)


@dataclass(frozen=True)
class Row:
    """One run: means over its agents. None: not defined for this method."""

    arm: str
    seed: int
    base: float
    accuracy: float
    majority_accuracy: float
    pseudo_label_accuracy: float | None  # last steps of training
    agreement: float | None  # held-out, last evaluation
    collapsed: float  # share of agents whose accuracy ended below half of the base model's


def measure(arms: Sequence[Arm], seeds: Sequence[int], runs_dir: Path, overrides: list[str], jobs: int = 1) -> Iterator[Row]:
    """Trains every arm with every seed, `jobs` runs at a time; a cell that has finished before is not trained again."""
    cells = [
        ((arm, seed), load_config(arm.preset, [f"name={arm.name}", f"seed={seed}", *arm.overrides, *overrides]))
        for arm in arms for seed in seeds
    ]  # fmt: skip
    for (arm, seed), run in train_all(cells, runs_dir, jobs):
        yield _row(arm, seed, run)


def chosen(names: Sequence[str] | None) -> list[Arm]:
    """The arms whose name contains one of `names`, whatever the case; all without names. Raises ConfigError."""
    if not names:
        return list(ARMS)
    found = [arm for arm in ARMS if any(name.lower() in arm.name.lower() for name in names)]
    if not found:
        raise ConfigError(f"--arms {' '.join(names)}: no arm is called that; there are {'; '.join(arm.name for arm in ARMS)}")
    return found


def _row(arm: Arm, seed: int, run: Run) -> Row:
    report = results(run)
    ends = list(report["agents"].values())
    base, last = ([end[when]["eval/accuracy"] for end in ends] for when in ("first", "last"))
    labels = [value for agent in report["agents"] if (value := _last_mean(run, agent, "pseudo_label_accuracy")) is not None]
    return Row(
        arm.name,
        seed,
        statistics.mean(base),
        statistics.mean(last),
        statistics.mean(end["last"]["eval/majority_accuracy"] for end in ends),
        statistics.mean(labels) if labels else None,
        report["cohort"]["last"].get("eval/agreement"),
        statistics.mean(float(after < COLLAPSED_BELOW * before) for before, after in zip(base, last, strict=True)),
    )


def _last_mean(run: Run, agent: str, metric: str) -> float | None:
    lines = [line for line in journal.read(run.journal_paths()[agent]) if line["event"] == "step"][-LAST_STEPS:]
    values = [line["metrics"][metric] for line in lines if metric in line["metrics"]]
    return statistics.mean(values) if values else None


def table(rows: Sequence[Row]) -> str:
    """Markdown: mean ± standard deviation over seeds, a line for each arm."""
    columns = {"base accuracy": "base", "accuracy": "accuracy", "majority accuracy": "majority_accuracy",
               "pseudo-label accuracy": "pseudo_label_accuracy", "agreement": "agreement", "collapsed": "collapsed"}  # fmt: skip
    lines = ["| arm | seeds | " + " | ".join(columns) + " |", "| --- " * (2 + len(columns)) + "|"]
    for arm in dict.fromkeys(row.arm for row in rows):
        of_arm = [row for row in rows if row.arm == arm]
        cells = " | ".join(spread([getattr(row, column) for row in of_arm]) for column in columns.values())
        lines.append(f"| {arm} | {len(of_arm)} | {cells} |")
    return "\n".join(lines)
