"""One plain TRL `GRPOTrainer` on the same model, questions and settings as an agent: what the engine is compared with.

Nothing of this project's trainer, sampler or exchange is used; the reward is the group's own majority, in a few lines.
"""

import json
import random
import time
from collections import Counter
from pathlib import Path

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl import GRPOTrainer

from corl_core.answers import parse
from corl_core.config import RunConfig
from corl_core.data.sources import question_order, training_questions
from corl_core.seeds import derive
from corl_core.training import models
from corl_core.training.trainer import grpo_arguments


class _Clock(TrainerCallback):
    """When each step ended."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step_end(self, args, state, control, **kwargs):
        self.ends.append(time.time())


class _TimedTrainer(GRPOTrainer):
    """Notes the seconds of each generation."""

    generate_s: list[float]

    def _generate(self, prompts):
        start = time.perf_counter()
        try:
            return super()._generate(prompts)
        finally:
            self.generate_s.append(time.perf_counter() - start)


def majority_reward(num_generations: int):
    def own_majority(completions, **kwargs) -> list[float]:
        keys = [answer.key if (answer := parse(text)) else None for text in completions]
        rewards: list[float] = []
        for start in range(0, len(keys), num_generations):
            group = keys[start : start + num_generations]
            counts = Counter(key for key in group if key is not None)
            top = counts.most_common(1)[0][0] if counts else None
            rewards += [float(key is not None and key == top) for key in group]
        return rewards

    return own_majority


def coin(completions, **kwargs) -> list[float]:
    """A reward without meaning, so that every row has an advantage."""
    return [float(random.random() < 0.5) for _ in completions]


def main(config_yaml: str, agent_name: str, folder: str, defaults: bool, coins: bool = False) -> None:
    """Trains and writes {ends, generate, generate_s} to `folder`/AGENT.json: when each step ended, seconds of each generation
    and their mean. `defaults` keeps TRL's bf16 and checkpointing; `coins` rewards by coins instead of the group's majority."""
    config = RunConfig.from_yaml(config_yaml).for_agent(agent_name)
    torch.set_num_threads(config.threads_per_agent)
    device = models.pick_device(config.device)
    model, tokenizer = models.load(config, config.agent(agent_name), device)
    num = config.grpo.max_steps * config.grpo.questions_per_step
    order = question_order(training_questions(config.data, num, derive("questions", config.seed) % 2**31), num, config.seed)
    arguments = grpo_arguments(config, Path(folder), derive("trainer", config.seed, agent_name) % 2**31, use_cpu=device == "cpu")
    if defaults:
        arguments.bf16 = arguments.gradient_checkpointing = True
    clock = _Clock()
    trainer = _TimedTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=coin if coins else majority_reward(config.grpo.num_generations),
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": [models.prompt(q.question, config.data, tokenizer) for q in order]}),
        callbacks=[clock],
    )
    trainer.generate_s = []
    trainer.train()
    seconds = trainer.generate_s
    result = {"ends": clock.ends, "generate": seconds, "generate_s": sum(seconds) / len(clock.ends)}
    (Path(folder) / f"{agent_name}.json").write_text(json.dumps(result))
