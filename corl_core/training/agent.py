"""One agent, from its base model to its trained weights: the training loop read from top to bottom.

The supervisor starts `main` in a process of its own for every agent. Agents share nothing but the votes that go through
`exchange`; each writes its own journal, log and rollouts.
"""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import torch
from datasets import Dataset
from transformers import PreTrainedModel, PrinterCallback, TrainerCallback

from corl_core.data.preflight import Report, preflight
from corl_core.data.questions import Question
from corl_core.data.sources import question_order
from corl_core.runs.folder import Run, is_alive
from corl_core.seeds import derive
from corl_core.training import lengths, models, supervision
from corl_core.training.evaluate import evaluate
from corl_core.training.exchange import CohortError, Exchange, RunStopped
from corl_core.training.recorder import Recorder
from corl_core.training.rollout import Sampler
from corl_core.training.step import StepScorer
from corl_core.training.trainer import CohortTrainer, grpo_arguments

EXIT_ERROR = 1
NICENESS = 5  # agents take every core they can get; the supervisor and the dashboard must still answer at once


class Agent:
    """Everything one agent needs, made once; `run` trains it."""

    def __init__(self, run: Run, name: str, port: int):
        self.run_folder, self.name, self.config = run, name, run.config
        self.settings = self.config.agent(name)
        self.folder = run.agent_path(name)
        self.recorder = Recorder(self.folder, name)
        self.stop_requested = False
        self.model: PreTrainedModel | None = None
        self._port = port

    def run(self) -> None:
        """Trains to the last step, or until asked to stop; leaves the weights in model/ if there are any by then."""
        try:
            self._learn()
        except RunStopped:
            self.stop_requested = True
        self.recorder.flush()
        if self.model is not None:
            self.model.save_pretrained(self.folder / "model")
            self.tokenizer.save_pretrained(self.folder / "model")
        self.recorder.journal.write("end", stopped=self.stop_requested)

    def _learn(self) -> None:
        config = self.config
        torch.set_num_threads(config.threads_per_agent)
        device = "cuda" if config.device != "cpu" and torch.cuda.is_available() else "cpu"
        self._say("loading the base model")
        self.model, self.tokenizer = models.load(config, self.settings, device, self._warm_up_progress)
        templated = models.is_templated(config.data, self.tokenizer)
        grpo = config.grpo
        self.sampler = Sampler(self.model, self.tokenizer, grpo.max_completion_length, grpo.temperature, templated)
        report = self._preflight()
        order = question_order(report.train.questions, config.grpo.max_steps * config.grpo.questions_per_step, config.seed)
        self.held_out = list(report.held_out.questions) if report.held_out else []
        self.held_out_prompts = [models.prompt(question.question, config.data, self.tokenizer) for question in self.held_out]
        scorer = StepScorer(self.recorder, order, self._supervision(order), config, self.settings.paraphrase)
        self._evaluate(0)
        if not self.stop_requested:
            self._train(order, scorer, device)

    def _train(self, order: list[Question], scorer: StepScorer, device: str) -> None:
        seed = derive("trainer", self.config.seed, self.name) % 2**31
        trainer = CohortTrainer(
            model=self.model,
            processing_class=self.tokenizer,
            reward_funcs=scorer.score,
            rollout_func=lambda prompts, trainer: self._rollouts(prompts, trainer.state.global_step, scorer),
            args=grpo_arguments(self.config, str(self.folder), seed, use_cpu=device == "cpu"),
            train_dataset=Dataset.from_dict({"prompt": [self._prompt(q) for q in order], "question_id": [q.id for q in order]}),
            callbacks=[_Steps(self, scorer)],
        )
        trainer.remove_callback(PrinterCallback)
        trainer.train()

    def _rollouts(self, prompts: list[str], step: int, scorer: StepScorer) -> dict[str, list]:
        """TRL hands each prompt K times over, groups contiguous; all completions of a question vote, the first K train."""
        num_generations, num_votes = self.config.grpo.num_generations, self.config.num_votes
        seed = derive("rollouts", self.config.seed, self.name, step)
        with scorer.timed("generate_time_s"):
            samples = self.sampler.sample(prompts[::num_generations], num_votes, seed)
        scorer.sampled(samples)
        return samples.for_training(num_votes, num_generations)

    def _preflight(self) -> Report:
        """The run's questions, looked at; what is doubtful goes to the log. Raises DataError for what is refused."""
        report = preflight(self.config, self._lengths())
        for text in report.warnings:
            print(f"data: {text}", flush=True)
        report.require()
        return report

    def _lengths(self) -> Callable[[Sequence[Question]], Sequence[lengths.Lengths]]:
        return partial(lengths.measure, self.name, self.model.config, self.tokenizer, self.config.data, self._prompt)

    def _supervision(self, order: list[Question]) -> supervision.Supervision:
        config = self.config
        if config.method == "ground_truth":
            return supervision.from_truth({question.id: question.answer for question in order})
        if config.method == "ttrl":
            return supervision.from_self(config.vote)
        exchange = Exchange(
            self.name, config.peers()[self.name], self._port, config.exchange.timeout_s, lambda: self.stop_requested
        )
        self._say("waiting for the peer")
        exchange.ready()
        return supervision.from_peer(exchange, config.vote)

    def _prompt(self, question: Question) -> str:
        return models.prompt(question.asked(self.settings.paraphrase), self.config.data, self.tokenizer)

    def _evaluate(self, step: int) -> None:
        if not self.held_out:
            return
        seed = derive("eval", self.config.seed, self.name) % 2**31
        result = evaluate(
            self.sampler, self.held_out, self.held_out_prompts, self.config.eval.num_samples, seed, self.config.vote.tie
        )
        print(_one_line(step, result.metrics()), flush=True)
        votes = [cast.key for cast in result.votes]
        self.recorder.journal.write("eval", step=step, metrics=result.metrics(), votes=votes, truths=result.truths)

    def _warm_up_progress(self, done: int, total: int) -> None:
        if self.stop_requested:
            raise RunStopped
        if done % max(1, total // 50) == 0 or done == total:
            self.recorder.journal.write("phase", phase="making the base model", done=done, total=total)

    def _say(self, phase: str) -> None:
        self.recorder.journal.write("phase", phase=phase)


class _Steps(TrainerCallback):
    """Evaluates on time, writes a step down once its update is done, and ends the training when asked to."""

    def __init__(self, agent: Agent, scorer: StepScorer):
        self.agent, self.scorer = agent, scorer

    def on_step_begin(self, args, state, control, **kwargs):
        self.scorer.begin()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" not in (logs or {}):
            return
        step = state.global_step  # updates done
        metrics = self.scorer.finish(step - 1, logs, tokens=int(state.num_input_tokens_seen))
        if metrics:
            print(_one_line(step - 1, metrics), flush=True)
        config = self.agent.config
        if self.agent.stop_requested:
            control.should_training_stop = True
        if step % config.eval.every_steps == 0 or step == config.grpo.max_steps or control.should_training_stop:
            self.agent._evaluate(step)


def _one_line(step: int, metrics: dict[str, float]) -> str:
    """What the log says of a step or an evaluation: enough to see whether it learns."""
    evaluation, training = ("eval/accuracy", "eval/majority_accuracy"), ("reward", "reward_std", "vote_share")
    shown = (*evaluation, *training, "pseudo_label_accuracy", "step_time_s")
    return f"step {step}: " + ", ".join(f"{name} {metrics[name]:.3f}" for name in shown if name in metrics)


def main(run_path: str, name: str, port: int, supervisor_pid: int, supervisor_created: float) -> None:
    """An agent's process: its own session, its own log, an exit code of 0 only when it did what it was asked."""
    os.setsid()
    os.nice(NICENESS)
    run = Run(Path(run_path))
    folder = run.agent_path(name)
    folder.mkdir(parents=True, exist_ok=True)
    _log_to(folder / "log.txt")
    _die_with(supervisor_pid, supervisor_created)
    agent = Agent(run, name, port)
    signal.signal(signal.SIGTERM, lambda *_: setattr(agent, "stop_requested", True))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the supervisor, which asks the agents to stop
    try:
        agent.run()
    except Exception as error:  # the process boundary: the reason goes to the journal, the traceback to the log
        expected = isinstance(error, (CohortError, ValueError))
        agent.recorder.journal.write("error", kind=type(error).__name__, message=str(error) or type(error).__name__)
        agent.recorder.flush()
        if expected:
            print(f"error: {error}", file=sys.stderr, flush=True)
            os._exit(EXIT_ERROR)
        raise


def _log_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)


def _die_with(pid: int, created: float) -> None:
    """Ends this process soon after the supervisor's: an agent without a supervisor would train for nobody."""

    def watch() -> None:
        while is_alive(pid, created):
            time.sleep(1)
        print("the supervisor is gone; this agent ends", file=sys.stderr, flush=True)
        os._exit(EXIT_ERROR)

    threading.Thread(target=watch, daemon=True, name="supervisor-watch").start()
