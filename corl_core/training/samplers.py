"""Which sampler an agent has, by `rollouts.backend`, and a record of it: the log and the journal say what samples and why."""

from collections.abc import Callable

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from corl_core.config import RunConfig
from corl_core.training import adapters
from corl_core.training.evaluate import ROWS_AT_ONCE
from corl_core.training.recorder import Recorder
from corl_core.training.rollout import Sampler
from corl_core.training.trainer import CohortTrainer
from corl_core.training.vllm_rollouts import VllmSampler

LONGEST_PROMPT = 8192  # tokens that vLLM makes room for


def make(
    config: RunConfig, name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, templated: bool,
    recorder: Recorder, tick: Callable[[], None] | None = None,
) -> Sampler | VllmSampler:  # fmt: skip
    """The sampler of agent `name`. `model`: peft's if there are adapters. `tick` is called while it samples without calling the
    model. Raises MissingPackage."""
    grpo, settings = config.grpo, config.rollouts

    def told(path: str, reason: str) -> None:
        print(f"rollouts: {path}: {reason}", flush=True)
        recorder.journal.write("rollouts", path=path, reason=reason)

    if settings.backend == "vllm":
        sampler = VllmSampler(
            model, tokenizer, grpo.max_completion_length, grpo.temperature, templated, settings,
            max_rows=max(grpo.questions_per_step * config.num_samples, min(ROWS_AT_ONCE, 256)),
            max_model_length=min(model.config.max_position_embeddings, LONGEST_PROMPT + grpo.max_completion_length),
            server=settings.vllm_servers.get(name), number=[agent.name for agent in config.agents].index(name), tick=tick,
        )  # fmt: skip
        told("vllm", f"{settings.vllm_mode}; entropy and self-certainty are not known")
        return sampler
    return Sampler(
        adapters.plain(model), tokenizer, grpo.max_completion_length, grpo.temperature, templated,
        bf16=grpo.bf16, keep=settings.keep_cache, told=told, tick=tick,
    )  # fmt: skip


def fit(trainer: CohortTrainer, config: RunConfig) -> None:
    """What the trainer must know of the sampler."""
    if config.rollouts.backend == "vllm":
        trainer.correct_for_vllm()
