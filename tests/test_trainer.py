"""The trainer: a lean update has the same gradient, and TRL's hooks are as expected."""

import inspect

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer
from trl import GRPOTrainer

from corl_core.config import ConfigError, load_config
from corl_core.training import compiled
from corl_core.training.trainer import CohortTrainer, grpo_arguments


def weights_after(base, small_run, tmp_path, lean: bool = True, watch=None, **fields) -> torch.Tensor:
    """Trains on a reward that leaves some groups unanimous (advantage 0); returns all weights in one vector."""
    config = small_run(grpo__max_steps=3, grpo__learning_rate=0.01, grpo__temperature=0.4, **fields)
    prompts = [f"{n}+{n + 7}=" for n in range(11, 11 + config.grpo.max_steps * config.grpo.questions_per_step)]
    lengths: list[int] = []

    def even_length(completion_ids, **kwargs):
        rewards = [float(len(ids) % 2) for ids in completion_ids]
        lengths.append(len(rewards))
        return [1.0] * 8 + rewards[8:16] + [0.0] * 8 + rewards[24:]

    arguments = grpo_arguments(config, tmp_path, seed=3, use_cpu=True)
    arguments.optim = "sgd"  # its steps are proportional to the gradient, so equal weights mean equal gradients
    trainer = CohortTrainer(
        model=AutoModelForCausalLM.from_pretrained(base),
        processing_class=AutoTokenizer.from_pretrained(base, padding_side="left"),
        reward_funcs=even_length,
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": prompts}),
    )
    trainer.lean = lean
    compiled.fit(trainer, config.grpo, num_processes=1)
    if watch:
        watch(trainer.model)
    trainer.train()
    assert lengths == [32] * 3
    return torch.cat([p.detach().flatten() for p in trainer.model.parameters()])


@pytest.fixture
def rows_seen(monkeypatch) -> list[int]:
    """How many rows reach TRL's loss, an entry an update."""
    seen: list[int] = []
    original = GRPOTrainer._compute_loss

    def watched(self, model, inputs):
        seen.append(len(inputs["advantages"]))
        return original(self, model, inputs)

    monkeypatch.setattr(GRPOTrainer, "_compute_loss", watched)
    return seen


@pytest.mark.training
@pytest.mark.parametrize("loss_type", ["bnpo", "dapo", "grpo", "dr_grpo"])
@pytest.mark.parametrize("slices", [1, 2])
def test_a_lean_update_gives_the_same_weights(loss_type, slices, base_models, small_run, tmp_path):
    fields = {"grpo__loss_type": loss_type, "grpo__gradient_accumulation_steps": slices}
    kept = weights_after(base_models["llama"], small_run, tmp_path, lean=False, **fields)
    leaned = weights_after(base_models["llama"], small_run, tmp_path, lean=True, **fields)
    start = torch.cat([p.detach().flatten() for p in AutoModelForCausalLM.from_pretrained(base_models["llama"]).parameters()])
    moved = (kept - start).abs().max()
    assert moved > 1e-4
    assert (kept - leaned).abs().max() < 1e-3 * moved


@pytest.mark.training
@pytest.mark.parametrize(("layers", "again"), [(None, 2), (1, 1), (9, 2)])
def test_the_first_layers_are_computed_again_and_learn_the_same(layers, again, base_models, small_run, tmp_path):
    """Of the tiny model's two layers. One that is computed again begins twice in an update, sampling aside."""

    def train(**fields) -> tuple[torch.Tensor, list[int]]:
        runs = [0, 0]

        def count(number: int) -> None:
            runs[number] += torch.is_grad_enabled()

        def watch(model):
            for number, layer in enumerate(model.model.layers):
                layer.mlp.register_forward_pre_hook(lambda *_, number=number: count(number))

        return weights_after(base_models["llama"], small_run, tmp_path, watch=watch, **fields), runs

    plain, once = train()
    named = {"grpo__checkpointed_layers": layers} if layers else {}
    traded, runs = train(grpo__gradient_checkpointing=True, **named)
    assert once[0] == once[1] > 0 and runs == [2 * once[0]] * again + [once[0]] * (2 - again)
    assert torch.allclose(plain, traded, atol=1e-6)


def test_layers_that_trade_need_checkpointing():
    with pytest.raises(ConfigError, match="checkpointed_layers=1 says how much of gradient_checkpointing there is"):
        load_config("demo", ["grpo.checkpointed_layers=1"])


@pytest.mark.training
def test_equal_rollouts_are_one_row_of_the_update(base_models, small_run, tmp_path, rows_seen):
    """At a low temperature rollouts repeat, so fewer rows than the 16 with an advantage reach the model."""
    weights_after(base_models["llama"], small_run, tmp_path, lean=True)
    assert sum(rows_seen) < 16 * 3


@pytest.mark.training
def test_with_a_kl_penalty_every_row_counts(base_models, small_run, tmp_path, rows_seen):
    """At beta > 0 a row with advantage 0 still pulls towards the base model, so none may be left out."""
    weights_after(base_models["llama"], small_run, tmp_path, lean=True, grpo__beta=0.1)
    assert rows_seen == [32] * 3


def test_trl_still_has_the_hooks_that_this_project_uses():
    assert list(inspect.signature(GRPOTrainer._compute_loss).parameters) == ["self", "model", "inputs"]
    assert {"reward_funcs", "rollout_func", "processing_class"} <= set(inspect.signature(GRPOTrainer.__init__).parameters)
    source = inspect.getsource(GRPOTrainer)
    relied_on = ('inputs["num_items_in_batch"]', "self._entropy_bonus_enabled", "mask.sum().clamp(min=1.0)")
    for used in (*relied_on, '"sampling_per_token_logps"'):
        assert used in source, f"TRL no longer has {used}; read CohortTrainer again"
