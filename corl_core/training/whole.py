"""The weights of an agent in one piece, to sample from and to save.

With one process, and with a copy of the weights in each (ddp), that is the model that is trained. Where its weights are split
over the processes (FSDP, ZeRO stage 3), a forward pass is a collective, and ranks that draw completions of different lengths make
different numbers of them; so each rank has a second model, whole, and `refresh` brings the trained weights into it. That costs
one copy of the weights on every GPU, and one gathering of them a step.
"""

import copy
import os
from typing import Any

import torch
from torch.distributed.tensor import DTensor
from transformers import PreTrainedModel

SPLIT = ("ACCELERATE_USE_FSDP", "ACCELERATE_USE_DEEPSPEED")


def is_split(num_ranks: int) -> bool:
    """Whether the trainer will split the weights of this process's agent. What Accelerate goes by is the environment, which
    `Group.start` has made of `placement`, of an `accelerate config` file as well. ZeRO's stages 1 and 2 count too: a second model
    costs them memory, and nothing else."""
    return num_ranks > 1 and any(os.environ.get(name, "").lower() == "true" for name in SPLIT)


def whole_model(trained: PreTrainedModel, is_split: bool) -> PreTrainedModel:
    """The model to sample from; call it before the trainer takes the weights apart. Its weights say which of them are trained, as
    those of `trained` do: whoever averages them (`teacher.py`) goes by that."""
    return copy.deepcopy(trained) if is_split else trained


@torch.no_grad()
def refresh(whole: PreTrainedModel, trained: torch.nn.Module) -> None:
    """Brings the trained weights into `whole`; every rank must call it. Nothing where they are one model."""
    if whole is trained:
        return
    own = dict(whole.named_parameters())
    for name, weight in trained.named_parameters():
        own[name.replace("_fsdp_wrapped_module.", "").replace("_checkpoint_wrapped_module.", "")].copy_(_gathered(weight))


def _gathered(weight: Any) -> torch.Tensor:
    if isinstance(weight, DTensor):  # FSDP
        return weight.full_tensor()
    if hasattr(weight, "ds_id"):  # ZeRO stage 3
        from deepspeed.zero import GatheredParameters

        with GatheredParameters([weight]):
            return weight.detach().clone()
    return weight
