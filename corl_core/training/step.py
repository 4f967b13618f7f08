"""Scoring one step: from completions to answers, votes, targets and rewards, with everything measured on the way."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from corl_core.answers import Reading, read
from corl_core.config import RunConfig
from corl_core.data.questions import Question
from corl_core.diagnostics import Step
from corl_core.rewards.matching import rewards
from corl_core.training.evaluate import truth_key
from corl_core.training.recorder import Recorder
from corl_core.training.rollout import Samples
from corl_core.training.supervision import Supervision
from corl_core.votes import vote


class StepScorer:
    """The reward function that TRL calls, and the record it leaves behind.

    True answers are read for the record only: they reach `Step.truths` and the Parquet rows, never `supervision`.
    """

    def __init__(self, recorder: Recorder, questions: Sequence[Question], supervision: Supervision, config: RunConfig,
                 paraphrase: bool = False):  # fmt: skip
        self._recorder, self._supervision, self._config, self._paraphrase = recorder, supervision, config, paraphrase
        self._questions = {question.id: question for question in questions}
        self._truths = {question.id: truth_key(question.answer) for question in questions}
        self._samples: Samples | None = None
        self._record: Step | None = None
        self._ids: list[str] = []
        self._times: dict[str, float] = {}
        self._started = time.perf_counter()

    @contextmanager
    def timed(self, name: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self._times[name] = self._times.get(name, 0.0) + time.perf_counter() - start

    def begin(self) -> None:
        self._started, self._times = time.perf_counter(), {}

    def sampled(self, samples: Samples) -> None:
        self._samples = samples

    def score(self, completions: list[str], question_id: list[str], trainer_state: Any, **_: Any) -> list[float]:
        """Rewards of a step's rollouts, (P*K,) with groups contiguous. An unlabelled group gets 0 throughout: the same
        (absent) gradient as no reward at all, and it is left out of the recorded reward."""
        assert self._samples is not None
        num_generations, num_votes, tie = self._config.grpo.num_generations, self._config.num_votes, self._config.vote.tie
        self._ids = question_id[::num_generations]
        with self.timed("grade_time_s"):
            readings = [read(text) for text in self._samples.texts]  # (P*V,), V >= K completions that vote
            groups = [tuple(r.answer for r in readings[i : i + num_votes]) for i in range(0, len(readings), num_votes)]
            votes = tuple(vote(group, tie) for group in groups)
        with self.timed("exchange_wait_s"):
            labels = self._supervision(trainer_state.global_step, self._ids, votes)
        with self.timed("grade_time_s"):
            scored = [rewards(group, label) for group, label in zip(groups, labels, strict=True)]  # (P, V)
        with self.timed("log_time_s"):
            self._record = Step(
                keys=tuple(tuple(answer.key if answer else None for answer in group[:num_generations]) for group in groups),
                votes=votes,
                labels=tuple(labels),
                rewards=tuple(group[:num_generations] if group else None for group in scored),
                truths=tuple(self._truths[question] for question in self._ids),
                min_share=self._config.vote.min_share,
                outcomes=tuple(reading.outcome for reading in readings),
            )
            self._recorder.rollouts(trainer_state.global_step, self._rows(readings, scored))
        return [value for group in self._record.rewards for value in (group or (0.0,) * num_generations)]

    def finish(self, step: int, logs: dict[str, float], tokens: int) -> dict[str, float]:
        """Writes the step down, once its update is done; returns its metrics ({} when it reused older rollouts)."""
        measured = {name: float(logs[name]) for name in ("loss", "grad_norm", "learning_rate") if name in logs}
        measured["step_time_s"] = time.perf_counter() - self._started
        if self._record is None:
            self._recorder.journal.write("update", step=step, metrics=measured)
            return {}
        measured |= self._completion_metrics() | self._times | {"tokens": float(tokens)}
        known = sum(self._times.get(name, 0.0) for name in ("generate_time_s", "grade_time_s", "exchange_wait_s", "log_time_s"))
        measured["update_time_s"] = measured["step_time_s"] - known
        metrics = self._recorder.step(step, self._ids, self._record, measured)
        self._record = None
        return metrics

    def _completion_metrics(self) -> dict[str, float]:
        assert self._samples is not None
        lengths = [len(ids) for ids in self._samples.completion_ids]
        entropies = [value for row in self._samples.entropies for value in row]
        return {
            "entropy": fmean(entropies),
            "completions/mean_length": fmean(lengths),
            "completions/clipped_ratio": fmean(float(not finished) for finished in self._samples.finished),
        }

    def _rows(self, readings: list[Reading], scored: list[tuple[float, ...] | None]) -> list[dict[str, Any]]:
        """A row for every completion that was sampled; `trained` says which of them the update used."""
        assert self._record is not None and self._samples is not None
        num_generations, num_votes, rows = self._config.grpo.num_generations, self._config.num_votes, []
        for index, (completion, reading) in enumerate(zip(self._samples.texts, readings, strict=True)):
            group, rollout = divmod(index, num_votes)
            question, answer, rewarded = self._questions[self._ids[group]], reading.answer, scored[group]
            rows.append(
                {
                    "question_id": question.id,
                    "question": question.asked(self._paraphrase),
                    "completion": completion,
                    "answer": answer.text if answer else None,
                    "key": answer.key if answer else None,
                    "outcome": reading.outcome,
                    "pseudo_label": self._record.labels[group],
                    "reward": rewarded[rollout] if rewarded else None,
                    "truth": question.answer,
                    "trained": rollout < num_generations,
                }
            )
        return rows
