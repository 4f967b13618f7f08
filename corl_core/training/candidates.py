"""Samples candidate models on questions, before any training: `python -m corl_core.training.candidates FOLDER`.

The process behind `corl_core/diversity/jobs.py`. One model at a time is loaded, asked every question K times at the training
temperature, and let go; its answers are kept before the next one begins, so a stop loses one candidate at most.
"""

import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import torch
from pyarrow import parquet

from corl_core.answers import parse
from corl_core.config import AgentConfig, RunConfig
from corl_core.data.questions import Question
from corl_core.data.sources import ARITHMETIC, training_questions
from corl_core.diversity.jobs import ANSWERS, Job
from corl_core.runs.folder import read_status, write_status
from corl_core.seeds import derive
from corl_core.training import models
from corl_core.training.rollout import Sampler

ROWS_AT_ONCE = 512  # completions sampled together; models that are not tiny take fewer
LARGE_ROWS_AT_ONCE = 64
BEAT_S = 0.5
SCHEMA = pa.schema(
    [("question_id", pa.string()), ("question", pa.string()), ("truth", pa.string()), ("model", pa.string()),
     ("sample", pa.int32()), ("answer", pa.string()), ("completion", pa.string())]
)  # fmt: skip


class Stopped(Exception):
    """Somebody asked to stop."""


def questions_of(request: RunConfig) -> list[Question]:
    """The questions to ask: `eval.num_questions` of the training questions, drawn by the seed; each one once."""
    num = request.eval.num_questions
    source = training_questions(request.data, num, derive("candidates", request.seed) % 2**31)
    distinct = list({question.id: question for question in source}.values())
    if request.data.train == ARITHMETIC or len(distinct) <= num:
        return distinct[:num]
    return random.Random(f"candidates/{request.seed}").sample(distinct, num)


def sample(
    request: RunConfig, agent: AgentConfig, questions: list[Question], device: str,
    warm_up: Callable[[int, int], None], sampled: Callable[[int], None],
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """The rows of one candidate. `warm_up` follows the making of a tiny base model; `sampled` gets each batch's completions."""
    model, tokenizer = models.load(request, agent, device, warm_up)
    request = request.for_agent(agent.name)
    templated, num = models.is_templated(request.data, tokenizer), request.eval.num_samples
    sampler = Sampler(
        model, tokenizer, request.grpo.max_completion_length, request.grpo.temperature, templated,
        bf16=request.grpo.bf16, keep=request.rollouts.keep_cache,
    )  # fmt: skip
    tiny = sum(weight.numel() for weight in model.parameters()) < 10_000_000
    at_once = max(1, (ROWS_AT_ONCE if tiny else LARGE_ROWS_AT_ONCE) // num)
    for start in range(0, len(questions), at_once):
        batch = questions[start : start + at_once]
        prompts = [models.prompt(question.asked(agent.paraphrase), request.data, tokenizer) for question in batch]
        texts = sampler.sample(prompts, num, derive("candidates", request.seed, agent.name, start)).texts
        for place, text in enumerate(texts):
            question, found = batch[place // num], parse(text)
            yield {
                "question_id": question.id, "question": question.question, "truth": question.answer,
                "model": agent.name, "sample": place % num, "answer": found.text if found else None, "completion": text,
            }  # fmt: skip
        sampled(len(texts))


class Sampling:
    """One job, from its request to its answers."""

    def __init__(self, job: Job):
        self.job, self.request = job, job.request
        self.rows: list[dict[str, Any]] = []
        self._beat = 0.0
        self._say(force=True, state="running", started=time.time(), pid=os.getpid())

    def run(self) -> None:
        """Samples every candidate. Raises Stopped."""
        torch.set_num_threads(self.request.threads_per_agent)
        device = models.pick_device(self.request.device)
        questions = questions_of(self.request)
        total = len(self.request.agents) * len(questions) * self.request.eval.num_samples
        for number, agent in enumerate(self.request.agents, start=1):
            phase = f"{agent.name} ({number} of {len(self.request.agents)})"
            self._say(force=True, phase=f"loading {phase}", max_steps=total)
            rows = sample(self.request, agent, questions, device, self._warm_up(phase), self._sampled(f"sampling {phase}"))
            self.rows += rows
            self._keep()

    def end(self, state: str, reason: str = "") -> None:
        self._say(force=True, state=state, reason=reason, phase="", ended=time.time())

    def _warm_up(self, phase: str) -> Callable[[int, int], None]:
        return lambda done, total: self._say(phase=f"making the base model of {phase}: {done * 100 // total}%")

    def _sampled(self, phase: str) -> Callable[[int], None]:
        def told(completions: int) -> None:
            self._say(force=True, phase=phase, step=read_status(self.job.path).step + completions)

        return told

    def _say(self, force: bool = False, **fields: Any) -> None:
        """Writes the status, at most twice a second unless it matters; the place where a stop is noticed."""
        now = time.time()
        if self.job.stop_requested and "state" not in fields:
            raise Stopped
        if force or now - self._beat >= BEAT_S:
            self._beat = now
            write_status(self.job.path, replace(read_status(self.job.path), heartbeat=now, **fields))

    def _keep(self) -> None:
        path = self.job.path / ANSWERS
        parquet.write_table(pa.Table.from_pylist(self.rows, SCHEMA), path.with_suffix(".part"), compression="zstd")
        os.replace(path.with_suffix(".part"), path)


def main(path: str) -> int:
    """The process: its end, whatever it is, stands in status.json."""
    os.nice(5)  # the dashboard must still answer at once
    sampling = Sampling(Job(Path(path)))
    try:
        sampling.run()
    except Stopped:
        sampling.end("stopped", "stopped by hand")
        return 0
    except Exception as error:  # the process boundary: the reason goes to the page, the traceback to the log
        sampling.end("failed", str(error) or type(error).__name__)
        if isinstance(error, ValueError):
            print(f"error: {error}", file=sys.stderr, flush=True)
            return 1
        raise
    sampling.end("finished")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
