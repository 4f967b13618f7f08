"""Scoring one step: from completions to answers, votes, targets and rewards, with everything measured on the way."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import fmean
from typing import Any

from corl_core.answers import Answer, parse
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

    def __init__(self, recorder: Recorder, questions: Sequence[Question], supervision: Supervision, config: RunConfig):
        self._recorder, self._supervision, self._config = recorder, supervision, config
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
        num_generations = self._config.grpo.num_generations
        ids = question_id[::num_generations]
        with self.timed("grade_time_s"):
            answers = [parse(text) for text in completions]
            groups = [tuple(answers[i : i + num_generations]) for i in range(0, len(answers), num_generations)]
            votes = tuple(vote(group, self._config.vote.tie) for group in groups)
        with self.timed("exchange_wait_s"):
            labels = self._supervision(trainer_state.global_step, ids, votes)
        with self.timed("grade_time_s"):
            scored = tuple(rewards(group, label) for group, label in zip(groups, labels, strict=True))
        with self.timed("log_time_s"):
            keys = tuple(tuple(answer.key if answer else None for answer in group) for group in groups)
            truths = tuple(self._truths[question] for question in ids)
            self._record, self._ids = Step(keys, votes, tuple(labels), scored, truths), ids
            self._recorder.rollouts(trainer_state.global_step, self._rows(completions, answers))
        return [value for group in scored for value in (group or (0.0,) * num_generations)]

    def finish(self, step: int, logs: dict[str, float], tokens: int) -> dict[str, float]:
        """Writes the step down, once its update is done; returns its metrics ({} when it reused older rollouts)."""
        if self._record is None:
            return {}
        measured = self._completion_metrics() | self._times | {"tokens": float(tokens)}
        measured |= {name: float(logs[name]) for name in ("loss", "grad_norm", "learning_rate") if name in logs}
        measured["step_time_s"] = time.perf_counter() - self._started
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

    def _rows(self, completions: list[str], answers: list[Answer | None]) -> list[dict[str, Any]]:
        assert self._record is not None
        num_generations, rows = self._config.grpo.num_generations, []
        for index, (completion, answer) in enumerate(zip(completions, answers, strict=True)):
            group, rollout = divmod(index, num_generations)
            question, scored = self._questions[self._ids[group]], self._record.rewards[group]
            rows.append(
                {
                    "question_id": question.id,
                    "question": question.question,
                    "completion": completion,
                    "answer": answer.text if answer else None,
                    "key": answer.key if answer else None,
                    "pseudo_label": self._record.labels[group],
                    "reward": scored[rollout] if scored else None,
                    "truth": question.answer,
                }
            )
        return rows
