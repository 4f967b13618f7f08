"""Scoring one step: from completions to answers, votes, targets and rewards, with everything measured on the way."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from corl_core.answers import Reading, read
from corl_core.config import RunConfig
from corl_core.diagnostics import Step
from corl_core.methods import WEIGHTED
from corl_core.rewards.batch import Batch, Scored, Signal
from corl_core.rewards.weighted import combine
from corl_core.training.clock import Clock
from corl_core.training.evaluate import truth_key
from corl_core.training.layout import Asked
from corl_core.training.ranks import Ranks
from corl_core.training.recorder import Recorder
from corl_core.training.rollout import Samples
from corl_core.votes import vote

PARTS = ("generate_time_s", "grade_time_s", "exchange_wait_s", "log_time_s")


@dataclass(frozen=True)
class Completion:
    """A sampled completion, as ranks send it to each other."""

    question_id: str
    paraphrased: bool
    prompt: str
    text: str
    trained: bool  # the update uses it; otherwise it only votes
    finished: bool
    num_tokens: int
    entropy: float  # mean over its tokens, nats
    self_certainty: float  # likewise


class StepScorer:
    """The reward function that TRL calls, and the record it leaves behind.

    True answers are read for the record only: they reach `Step.truths` and the Parquet rows, never a signal.
    """

    def __init__(self, recorder: Recorder, layout: Sequence[Asked], signals: Mapping[str, Signal], config: RunConfig,
                 clock: Clock, ranks: Ranks | None = None):  # fmt: skip
        self._recorder, self._signals, self._config, self._clock = recorder, signals, config, clock
        self._ranks = ranks or Ranks()
        self._is_sum = config.method == WEIGHTED
        self._unlabelled = None if config.grpo.scale_rewards == "batch" else 0.0  # TRL's batch is then the labelled groups
        self._questions = {asked.question.id: asked.question for asked in layout}
        self._truths = {id: truth_key(question.answer) for id, question in self._questions.items()}
        self._samples: Samples | None = None
        self._record: Step | None = None
        self._measured: dict[str, float] = {}
        self._ids: list[str] = []

    def sampled(self, samples: Samples) -> None:
        self._samples = samples

    def score(
        self, prompts: list[str], completions: list[str], question_id: list[str], paraphrased: list[bool], trainer_state: Any,
        **_: Any,
    ) -> list[float | None]:  # fmt: skip
        """Rewards of this rank's rollouts of a step, groups contiguous over the ranks. An unlabelled group has no gradient and is
        left out of the recorded reward. TRL gets 0 for it throughout, and None where its rewards would be in the standard
        deviation that scales the others."""
        mine = self._completions(prompts, question_id, paraphrased)
        everybody = self._ranks.gather(mine)  # (P*V,)
        rewards = self._ranks.from_first(lambda: self._score(everybody, trainer_state.global_step))
        first = self._ranks.rank * len(mine)
        return [
            value for row, value in zip(mine, rewards[first : first + len(mine)], strict=True) if row.trained
        ]  # fmt: skip

    def _completions(self, prompts: list[str], question_id: list[str], paraphrased: list[bool]) -> list[Completion]:
        """What this rank sampled. TRL's rows are the trained completions; others of the same prompt only vote."""
        samples = self._samples
        assert samples is not None
        rows = list(zip(prompts, question_id, paraphrased, strict=True))
        row, made = -1, []
        for index, text in enumerate(samples.texts):
            row += samples.trained[index]
            prompt, question, other_wording = rows[row]
            made.append(
                Completion(
                    question, other_wording, prompt, text, samples.trained[index], samples.finished[index],
                    len(samples.completion_ids[index]), _mean(samples.entropies[index]), _mean(samples.self_certainties[index]),
                )
            )  # fmt: skip
        return made

    def _score(self, rows: list[Completion], step: int) -> list[float | None]:
        """The reward of every completion, (P*V,), and the record of the step."""
        with self._clock.timed("grade_time_s"):
            readings = [read(row.text) for row in rows]
            batch = self._batch(rows, readings, step)
        parts = {name: signal(batch) for name, signal in self._signals.items()}
        scored = combine(parts, self._config.signal.weights) if self._is_sum else next(iter(parts.values()))
        with self._clock.timed("log_time_s"):
            self._ids = list(batch.question_ids)
            self._record = self._step(rows, readings, batch, scored)
            self._measured = _completion_metrics(rows) | (_signal_means(parts) if self._is_sum else {})
            self._recorder.rollouts(step, self._rows(rows, readings, scored))
        return [value for group in scored.rewards for value in (group or (self._unlabelled,) * self._config.num_samples)]

    def _batch(self, rows: list[Completion], readings: list[Reading], step: int) -> Batch:
        size = self._config.num_samples
        starts = range(0, len(rows), size)
        answers = tuple(tuple(reading.answer for reading in readings[i : i + size]) for i in starts)

        def groups(field: str) -> tuple[tuple[Any, ...], ...]:
            return tuple(tuple(getattr(row, field) for row in rows[i : i + size]) for i in starts)

        return Batch(
            step=step,
            question_ids=tuple(rows[i].question_id for i in starts),
            prompts=tuple(rows[i].prompt for i in starts),
            completions=groups("text"),
            answers=answers,
            votes=tuple(vote(group, self._config.vote.tie) for group in answers),
            entropies=groups("entropy"),
            self_certainties=groups("self_certainty"),
        )

    def _step(self, rows: list[Completion], readings: list[Reading], batch: Batch, scored: Scored) -> Step:
        """The record, with keys and rewards of the trained completions alone."""
        size = self._config.num_samples
        kept = [[index for index in range(i, i + size) if rows[index].trained] for i in range(0, len(rows), size)]
        keys = tuple(tuple(answer.key if (answer := readings[i].answer) else None for i in group) for group in kept)
        rewards = tuple(
            None if group is None else tuple(group[i - number * size] for i in kept[number])
            for number, group in enumerate(scored.rewards)
        )
        return Step(
            keys=keys,
            votes=batch.votes,
            labels=scored.labels,
            rewards=rewards,
            truths=tuple(self._truths[question] for question in batch.question_ids),
            min_share=self._config.vote.min_share,
            is_sum=self._is_sum,
            outcomes=tuple(reading.outcome for reading in readings),
        )

    def finish(self, step: int, logs: dict[str, float], tokens: int) -> dict[str, float]:
        """Writes the step down, once its update is done; returns its metrics ({} when it reused older rollouts)."""
        measured = {name: float(logs[name]) for name in ("loss", "grad_norm", "learning_rate", "kl") if name in logs}
        measured["step_time_s"] = self._clock.elapsed_s
        if not self._ranks.first:
            return {}
        if self._record is None:
            self._recorder.journal.write("update", step=step, metrics=measured)
            return {}
        times = self._clock.times
        measured |= self._measured | times | {"tokens": float(tokens)}
        measured["update_time_s"] = measured["step_time_s"] - sum(times.get(name, 0.0) for name in PARTS)
        metrics = self._recorder.step(step, self._ids, self._record, measured)
        self._record = None
        return metrics

    def _rows(self, rows: list[Completion], readings: list[Reading], scored: Scored) -> list[dict[str, Any]]:
        """A Parquet row for every completion that was sampled; `trained` says which of them the update used."""
        made = []
        for index, (row, reading) in enumerate(zip(rows, readings, strict=True)):
            group, rollout = divmod(index, self._config.num_samples)
            question, answer, rewarded = self._questions[row.question_id], reading.answer, scored.rewards[group]
            made.append(
                {
                    "group": group,
                    "question_id": question.id,
                    "question": question.asked(row.paraphrased),
                    "completion": row.text,
                    "answer": answer.text if answer else None,
                    "key": answer.key if answer else None,
                    "outcome": reading.outcome,
                    "pseudo_label": scored.labels[group] if scored.labels else None,
                    "reward": rewarded[rollout] if rewarded else None,
                    "truth": question.answer,
                    "trained": row.trained,
                }
            )
        return made


def _mean(values: Sequence[float]) -> float:
    return fmean(values) if values else 0.0


def _completion_metrics(rows: Sequence[Completion]) -> dict[str, float]:
    """Over every completion that was sampled; entropy and self-certainty are means over tokens, and left out where the sampler
    does not know them."""
    num_tokens = sum(row.num_tokens for row in rows)
    metrics = {
        "entropy": sum(row.entropy * row.num_tokens for row in rows) / max(1, num_tokens),
        "self_certainty": sum(row.self_certainty * row.num_tokens for row in rows) / max(1, num_tokens),
        "completions/mean_length": num_tokens / len(rows),
        "completions/clipped_ratio": fmean(float(not row.finished) for row in rows),
    }
    return {name: value for name, value in metrics.items() if not math.isnan(value) or name not in ("entropy", "self_certainty")}


def _signal_means(parts: Mapping[str, Scored]) -> dict[str, float]:
    """Of a weighted sum, each signal's own mean reward over the groups that it labels."""
    known = {name: [value for group in part.rewards if group for value in group] for name, part in parts.items()}
    return {f"reward/{name}": fmean(values) for name, values in known.items() if values}
