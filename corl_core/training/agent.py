"""One agent, from its base model to its trained weights: the training loop read from top to bottom.

The supervisor starts `process.main` for every agent. Agents share nothing but votes (`exchange`); each has its own journal.
"""

import json
import math
import shutil
from collections.abc import Sequence
from functools import partial
from math import gcd
from pathlib import Path

import torch
from datasets import Dataset
from transformers import PreTrainedModel, PrinterCallback, TrainerCallback

from corl_core.data.preflight import Report, preflight
from corl_core.data.questions import Question
from corl_core.diagnostics import agreement
from corl_core.rewards.batch import Signal
from corl_core.runs import checkpoints
from corl_core.runs.folder import Run, write_atomically
from corl_core.seeds import derive
from corl_core.training import adapters, compiled, lengths, model_card, models, samplers, supervision, whole
from corl_core.training.clock import Clock
from corl_core.training.evaluate import Evaluation, evaluate
from corl_core.training.exchange import LOOPBACK, Exchange, RunStopped
from corl_core.training.layout import Asked, lay_out
from corl_core.training.pulse import Pulse
from corl_core.training.ranks import Ranks
from corl_core.training.recorder import NoRecorder, Recorder, one_line
from corl_core.training.selection import Selection
from corl_core.training.step import StepScorer
from corl_core.training.teacher import Teacher
from corl_core.training.trainer import CohortTrainer, grpo_arguments


class NonFiniteError(ValueError):
    """The loss or the gradient is no number any more; the weights are lost, their last checkpoint is not."""


class Agent:
    """Everything one agent needs, made once; `run` trains it."""

    def __init__(
        self, run: Run, name: str, port: int, resume_step: int | None = None, host: str = LOOPBACK, rank: int = 0
    ):  # fmt: skip
        """`resume_step`: for a run that is resumed, updates done in the checkpoint to go on from; 0 starts over. `port`, `host`:
        of the vote store. `rank`: of this process among the agent's; all but the first keep no record."""
        self.run_folder, self.name, self.config = run, name, run.config.for_agent(name)
        self.settings = self.config.agent(name)
        self.folder = run.agent_path(name)
        self.recorder = NoRecorder() if rank else Recorder(self.folder, name)
        self.ranks = Ranks(rank, self.settings.placement.num_processes)
        self.pulse = Pulse(self.folder)
        self.clock = Clock()
        self.selection = Selection(self.config.eval.checkpoint, self.folder, self.recorder.journal, self.save)
        self.stop_requested = self.save_requested = False  # by signals
        self.is_stopped = False  # has ended before its last step, at its own request or its cohort's
        self.model: PreTrainedModel | None = None
        self.whole: PreTrainedModel | None = None  # the same, but where the weights are split over processes: what samples
        self.exchange: Exchange | None = None
        self.teacher: Teacher | None = None
        self.step = self.resume_step = resume_step or 0  # updates done
        self._is_resumed, self._num_questions = resume_step is not None, 0
        self._store = (host, port)

    def run(self) -> None:
        """Trains to the last step, or until asked to stop; leaves the weights in model/ if there are any by then."""
        if self.ranks.first:
            self.pulse.start()
        try:
            self._learn()
        except RunStopped:
            self.is_stopped = True
        if self.model is not None:
            whole.refresh(self.whole, self.model)
        if not self.ranks.first:
            return
        self.pulse.is_training = False
        asked, stopped = self.stop_requested, self.stop_requested or self.is_stopped
        if self.exchange is not None:
            self.exchange.leave()
        self.recorder.flush()
        if self.model is not None:
            self.selection.finish(self.step, may_go_on=stopped)
            model_card.write(self.folder / "model", self.run_folder, self.name, self.step, self._num_questions)
        if not stopped:
            shutil.rmtree(checkpoints.folder(self.folder), ignore_errors=True)  # nothing is left to go on with
        self.recorder.journal.write("end", stopped=stopped, asked=asked)

    def stops_at(self, step: int) -> bool:
        """Whether to end after `step` updates: agents that exchange votes all end at the same one, whoever of them was asked, and
        only where new rollouts would begin, so that the run can go on from there."""
        if step % self.config.grpo.num_iterations:
            return False
        if self.exchange is not None:
            return self.exchange.stop_step is not None and step >= self.exchange.stop_step
        return self.stop_requested

    def save(self, folder: Path) -> None:
        """The weights as they are now, in a folder that `from_pretrained` reads."""
        adapters.save(self.whole, folder)
        self.tokenizer.save_pretrained(folder)
        model_card.write(folder, self.run_folder, self.name, self.step, self._num_questions)

    def _learn(self) -> None:
        config = self.config
        device = models.pick_device(config.device)
        self.ranks = Ranks.join(self.ranks.size, on_cpu=device == "cpu")
        torch.set_num_threads(config.threads_per_agent)
        self._say("loading the base model")
        load = partial(models.trainable, config, self.settings, device, self._warm_up_progress)
        self.model, self.tokenizer = self.ranks.in_turn(load)
        templated = models.is_templated(config.data, self.tokenizer)
        self.whole = whole.whole_model(self.model, whole.is_split(self.ranks.size))
        self.sampler = samplers.make(config, self.name, self.whole, self.tokenizer, templated, self.recorder, self.pulse.mark)
        report = self._preflight()
        if self._is_resumed:
            self.recorder.resume(self.resume_step)
        self._num_questions = len({question.id for question in report.train.questions})
        layout = lay_out(config, self.settings, report.train.questions)
        self.held_out = list(report.held_out.questions) if report.held_out else []
        self.held_out_prompts = [self._prompt(question.question) for question in self.held_out]
        signals: dict[str, Signal] = {}
        self.ranks.from_first(lambda: signals.update(self._signals(layout, templated)))
        scorer = StepScorer(self.recorder, layout, signals, config, self.clock, self.ranks)
        if not self.resume_step:
            self._evaluate(0)
        if not self.ranks.from_first(lambda: self.stop_requested):
            self._train(layout, scorer, device)

    def _train(self, layout: list[Asked], scorer: StepScorer, device: str) -> None:
        seed = derive("trainer", self.config.seed, self.name) % 2**31
        rows = {
            "prompt": [self._prompt(asked.text) for asked in layout],
            "question_id": [asked.question.id for asked in layout],
            "paraphrased": [asked.paraphrased for asked in layout],
        }
        trainer = CohortTrainer(
            model=self.model,
            processing_class=self.tokenizer,
            reward_funcs=scorer.score,
            rollout_func=lambda prompts, trainer: self._rollouts(prompts, trainer.state.global_step, scorer),
            args=grpo_arguments(self.config, self.folder, seed, device == "cpu", self.ranks.size, self.settings),
            train_dataset=Dataset.from_dict(rows),
            callbacks=[_Steps(self, scorer)],
        )
        trainer.remove_callback(PrinterCallback)
        samplers.fit(trainer, self.config)
        compiled.fit(trainer, self.config.grpo, self.ranks.size)
        for module in {self.model, adapters.plain(self.whole)}:  # the trainer runs the one, the sampler the other
            module.register_forward_hook(self.pulse.mark)
        self.pulse.is_training = True
        trainer.train(resume_from_checkpoint=str(self._checkpoint) if self.resume_step else None)

    @property
    def _checkpoint(self) -> Path:
        return checkpoints.path(self.folder, self.resume_step)

    def _rollouts(self, prompts: list[str], step: int, scorer: StepScorer) -> dict[str, list]:
        """TRL hands each prompt K times over, groups contiguous; all completions of a question vote, the first K train. With
        several ranks a slice may begin or end inside a group, and each rank samples its part of it."""
        num_generations, num_samples = self.config.grpo.num_generations, self.config.num_samples
        rank, part = self.ranks.rank, gcd(len(prompts), num_generations)
        seed = derive("rollouts", self.config.seed, self.name, step, *([rank] if rank else []))
        with self.clock.timed("generate_time_s"):
            whole.refresh(self.whole, self.model)
            samples = self.sampler.sample(prompts[::part], part * num_samples // num_generations, seed, part)
        scorer.sampled(samples)
        return samples.for_training()

    def _preflight(self) -> Report:
        """The run's questions, looked at; what is doubtful goes to the log. Raises DataError for what is refused."""
        measure = partial(lengths.measure, self.name, self.model.config, self.tokenizer, self.config.data, self._read_prompt)
        report = preflight(self.config, measure)
        for text in report.warnings:
            print(f"data: {text}", flush=True)
        report.require()
        return report

    def _signals(self, layout: Sequence[Asked], templated: bool) -> dict[str, Signal]:
        return supervision.build(
            self.config,
            self.name,
            self.clock,
            exchange=self._join_ring,
            teacher=lambda: self._hire_teacher(templated),
            truths=lambda: {asked.question.id: asked.question.answer for asked in layout},
        )

    def _hire_teacher(self, templated: bool) -> Teacher:
        self.teacher = Teacher(self.whole, self.tokenizer, self.config, self.name, templated, self.pulse.mark)
        if self.resume_step:
            self.teacher.load(self._checkpoint)
        return self.teacher

    def _join_ring(self) -> Exchange:
        """My end of the ring, once the peer is there."""
        peer, timeout_s = self.config.peers()[self.name], self.config.exchange.timeout_s
        notice = len(self.config.agents) * self.config.grpo.num_iterations  # steps until every agent knows of a stop
        host, port = self._store
        self.exchange = Exchange(self.name, peer, port, timeout_s, self._looks_for_votes, notice, host)
        self._say("waiting for the peer")
        self.exchange.ready()
        return self.exchange

    def _looks_for_votes(self) -> bool:
        """Whether this agent was asked to stop. One that waits for its peer asks this again and again: it is alive."""
        self.pulse.mark()
        return self.stop_requested

    def _read_prompt(self, question: Question) -> str:
        return self._prompt(question.asked(self.settings.paraphrase))

    def _prompt(self, text: str) -> str:
        return models.prompt(text, self.config.data, self.tokenizer)

    def _evaluate(self, step: int) -> None:
        self.step = step
        if not self.held_out:
            return
        seed = derive("eval", self.config.seed, self.name) % 2**31
        whole.refresh(self.whole, self.model)
        result = evaluate(
            self.sampler, self.held_out, self.held_out_prompts, self.config.eval.num_samples, seed, self.config.vote.tie,
            self.ranks,
        )  # fmt: skip
        self.ranks.from_first(lambda: self._tell(step, result))

    def _tell(self, step: int, result: Evaluation) -> None:
        print(one_line(step, result.metrics()), flush=True)
        votes = [cast.key for cast in result.votes]
        self.recorder.journal.write("eval", step=step, metrics=result.metrics(), votes=votes, truths=result.truths)
        self.selection.consider(step, self._merit(step, result))

    def _merit(self, step: int, result: Evaluation) -> float | None:
        """What the run's checkpoint rule goes by; peers swap their held-out votes for it."""
        rule = self.config.eval.checkpoint
        if rule == "ground_truth":
            return result.metrics().get("eval/accuracy")
        if rule != "peer_agreement" or self.exchange is None:
            return None
        ids = [question.id for question in self.held_out]
        keys = [cast.key for cast in result.votes]
        return agreement(keys, self.exchange.swap(f"eval-{step}", ids, keys))

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
        self.agent.clock.begin()

    def on_log(self, args, state, control, logs=None, **kwargs):
        if "loss" not in (logs or {}):
            return
        step = state.global_step  # updates done
        metrics = self.scorer.finish(step - 1, logs, tokens=int(state.num_input_tokens_seen))
        if metrics:
            print(one_line(step - 1, metrics), flush=True)
        for name in ("loss", "grad_norm"):
            if not math.isfinite(float(logs.get(name, 0.0))):
                raise NonFiniteError(f"{name} is {logs[name]} at step {step - 1}; lower grpo.learning_rate or grpo.max_grad_norm")
        config, self.agent.step = self.agent.config, step
        if self.agent.ranks.from_first(lambda: self.agent.save_requested):
            whole.refresh(self.agent.whole, self.agent.model)
            self.agent.ranks.from_first(lambda: self._save_weights(step))
        if self.agent.ranks.from_first(lambda: self.agent.stops_at(step)):
            control.should_training_stop = control.should_save = self.agent.is_stopped = True
        if step % config.eval.every_steps == 0 or step == config.grpo.max_steps or control.should_training_stop:
            self.agent._evaluate(step)

    def _save_weights(self, step: int) -> None:
        self.agent.save_requested = False
        self.agent.save(self.agent.folder / "weights" / f"step-{step:06d}")

    def on_save(self, args, state, control, **kwargs):
        """TRL has written its checkpoint; the rest of the agent's state, and last the mark that it is whole."""
        self.agent.ranks.meet()
        if not self.agent.ranks.first:
            return
        folder = checkpoints.path(self.agent.folder, state.global_step)
        self.agent.recorder.flush()
        if self.agent.teacher:
            self.agent.teacher.save(folder)
        write_atomically(folder / checkpoints.COMPLETE, json.dumps({"step": state.global_step}))
