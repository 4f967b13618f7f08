"""TRL's GRPOTrainer with the smallest change that a cohort needs.

Votes come in through a plain reward function and rollouts through `rollout_func`, both public. The one override makes
the update lean without changing its gradient: rows whose advantage is zero add nothing at beta = 0 (late in training they
are most of a batch), and equal rollouts of a group are one row with the sum of their advantages. The loss keeps its value
because it is scaled back to the full batch's token (or row) count.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from trl import GRPOConfig, GRPOTrainer

from corl_core.config import AgentConfig, RunConfig
from corl_core.runs import checkpoints

# Of rewards that are None, those of unlabelled groups, TRL prints one in full at every step; a metric counts them.
logging.getLogger("trl.trainer.grpo_trainer").addFilter(lambda record: "returned None" not in record.getMessage())


class CohortTrainer(GRPOTrainer):
    """GRPO for one agent. `lean` is safe at beta = 0 without an entropy bonus. `keeping_layers` keep their activations although
    others are checkpointed."""

    lean = True
    keeping_layers: Sequence[torch.nn.Module] = ()

    def _compute_loss(self, model: torch.nn.Module, inputs: dict[str, Any]) -> torch.Tensor:
        for layer in self.keeping_layers:  # TRL switches checkpointing off and on around sampling, for all layers
            layer.gradient_checkpointing = False
        size = self.accelerator.num_processes
        if not self.lean or self.beta != 0.0 or self._entropy_bonus_enabled:
            whole = super()._compute_loss(model, inputs)
            return whole * self._share(inputs, slice(None)) if size > 1 and self.loss_type == "bnpo" else whole
        rows, counts = _distinct_rows(inputs)  # (R,), (R,)
        if size > 1:
            rows, counts = self._as_many_as_others(rows, counts)
        if not len(rows):
            return sum(p.sum() for p in model.parameters() if p.requires_grad) * 0.0
        num = len(inputs["advantages"])
        kept = {key: value[rows] if _is_per_row(value, num) else value for key, value in inputs.items()}
        kept["advantages"] = kept["advantages"] * counts
        return super()._compute_loss(model, _trim(kept)) * self._share(inputs, rows)

    def correct_for_vllm(self) -> None:
        """vLLM's log-probabilities are not quite the model's: TRL weighs each token by the ratio (importance sampling). The
        weights are sent by the sampler, so what TRL calls for that does nothing."""
        self.use_vllm, self._last_loaded_step = True, -1
        self.vllm_generation = SimpleNamespace(sync_weights=lambda: None)

    def create_model_card(self, *_: Any, **__: Any) -> None:
        """None in checkpoints; what is left in model/ has one that says more (`model_card.py`)."""

    def _as_many_as_others(self, rows: torch.Tensor, counts: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Rows and counts (R,), with R the same on every rank, for TRL gathers a value a row: others are filled up with a row
        that counts for nothing. At least one: ranks must make their passes together."""
        num = max(1, int(self.accelerator.gather(torch.tensor([len(rows)], device=rows.device)).max()))
        filled = num - len(rows)
        return torch.cat([rows, rows.new_zeros(filled)]), torch.cat([counts, counts.new_zeros(filled)])

    def _share(self, inputs: dict[str, Any], rows: torch.Tensor) -> float | torch.Tensor:
        """What brings the kept rows' loss to the full batch's denominator, over all the agent's processes: their losses are
        averaged, and one that holds more tokens than others weighs more."""
        if self.loss_type == "bnpo":  # mean over tokens
            num_tokens = self.accelerator.reduce(inputs["completion_mask"].sum().float(), "mean")
            return inputs["completion_mask"][rows].sum() / num_tokens
        if self.loss_type in ("grpo", "dr_grpo"):  # mean over rows
            return len(rows) / len(inputs["advantages"])
        return 1.0  # dapo divides by a count that was taken before


def _distinct_rows(inputs: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Rows with an advantage, equal ones once: the first of each, and how often it stands in the batch."""
    kept = torch.nonzero(inputs["advantages"]).flatten()
    if not len(kept):
        return kept, kept
    advantages = inputs["advantages"][kept].view(torch.int32)[:, None].long()  # by their bits
    lengths = inputs["completion_mask"][kept].sum(1, keepdim=True)
    content = torch.cat([inputs["prompt_ids"][kept], inputs["completion_ids"][kept], lengths, advantages], 1)
    _, index, counts = torch.unique(content, dim=0, return_inverse=True, return_counts=True)
    first = torch.full_like(counts, len(kept)).scatter_reduce(0, index, torch.arange(len(kept), device=kept.device), "amin")
    return kept[first], counts


def _is_per_row(value: Any, num_rows: int) -> bool:
    return isinstance(value, torch.Tensor) and value.dim() > 0 and value.shape[0] == num_rows


def _trim(inputs: dict[str, Any]) -> dict[str, Any]:
    """Drops the columns that are padding in every kept row."""
    first = int(inputs["prompt_mask"].any(0).int().argmax())
    length = int(inputs["completion_mask"].sum(1).max())
    trimmed = {key: inputs[key][:, first:] for key in ("prompt_ids", "prompt_mask")}
    trimmed |= {
        key: inputs[key][:, :length]
        for key in ("completion_ids", "completion_mask", "old_per_token_logps", "sampling_per_token_logps",
                    "importance_sampling_ratio")  # (R, T), or (R, 1)
        if key in inputs
    }
    return inputs | trimmed


def grpo_arguments(
    config: RunConfig, folder: Path, seed: int, use_cpu: bool, num_ranks: int = 1, agent: AgentConfig | None = None
) -> GRPOConfig:
    """An agent's settings (`config.for_agent(name)`) as TRL takes them, for an agent of `num_ranks` processes. One batch of
    rollouts feeds one step, in the order they were laid out. `folder`: the agent's. With a KL penalty and all weights trained,
    TRL loads the reference itself, by the name in the model's config: `agent` says of which revision."""
    grpo = config.grpo
    reference = {"use_safetensors": True, "revision": agent.revision or "main"} if agent and grpo.beta else None
    rows = grpo.questions_per_step * grpo.num_generations
    return GRPOConfig(
        output_dir=str(checkpoints.folder(folder)),
        seed=seed,
        model_init_kwargs=reference,
        max_steps=grpo.max_steps,
        per_device_train_batch_size=rows // grpo.gradient_accumulation_steps // num_ranks,
        gradient_accumulation_steps=grpo.gradient_accumulation_steps,
        num_generations=grpo.num_generations,
        max_completion_length=grpo.max_completion_length,
        temperature=grpo.temperature,
        learning_rate=grpo.learning_rate,
        lr_scheduler_type=grpo.lr_scheduler_type,
        lr_scheduler_kwargs={"min_lr_rate": grpo.min_lr_rate} if grpo.lr_scheduler_type == "cosine_with_min_lr" else None,
        warmup_steps=grpo.warmup_steps,
        weight_decay=grpo.weight_decay,
        adam_beta2=grpo.adam_beta2,
        max_grad_norm=grpo.max_grad_norm,
        beta=grpo.beta,
        epsilon=grpo.epsilon,
        num_iterations=grpo.num_iterations,
        loss_type=grpo.loss_type,
        scale_rewards=grpo.scale_rewards,
        vllm_importance_sampling_mode="token_truncate",  # as released; TRL's default drops or fades out whole long completions
        bf16=grpo.bf16,
        gradient_checkpointing=grpo.gradient_checkpointing,
        shuffle_dataset=False,
        logging_steps=1,
        save_strategy="steps" if config.checkpoints.every_steps else "no",
        save_steps=config.checkpoints.every_steps or 1,
        save_total_limit=config.checkpoints.keep,
        eval_strategy="no",
        report_to="none",
        disable_tqdm=True,
        use_cpu=use_cpu,
        dataloader_pin_memory=not use_cpu,
    )
