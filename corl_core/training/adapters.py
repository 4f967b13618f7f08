"""Low-rank adapters (LoRA, arXiv 2106.09685; on 4-bit weights QLoRA, arXiv 2305.14314), trained in place of the weights.

A layer computes W x + (lora_alpha / r) B A x; W stays as it was, B begins at 0, so before the first update the agent is its base
model. What is saved is a plain model with W + (lora_alpha / r) B A in place of W, which loads without peft, and the adapters
beside it.
"""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from transformers import BitsAndBytesConfig, PreTrainedModel

from corl_core import extras
from corl_core.config_models import LoraSettings

FOLDER = "adapter"
ACTIVE = "default"  # peft's name of the adapters that are trained; TRL keeps its reference beside them


def missing(lora: LoraSettings, device: str) -> str:
    """What `lora` needs and this machine lacks, as the end of a sentence that begins with "agent … has lora"; '' if nothing."""
    if not find_spec("peft"):
        return ", which needs the package peft: pip install peft"
    if lora.load_in_4bit and device == "cpu":
        return ".load_in_4bit=True, which needs a GPU, and there is none for this run; remove load_in_4bit"
    if lora.load_in_4bit and extras.lacks("bitsandbytes"):
        return f".load_in_4bit=True, which {extras.need('bitsandbytes')}"
    return ""


def four_bit() -> dict[str, Any]:
    """What `from_pretrained` takes to hold the weights in 4-bit NF4 on this process's GPU, computing in bfloat16."""
    quantization = BitsAndBytesConfig(
        load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.bfloat16
    )  # fmt: skip
    return {"quantization_config": quantization, "device_map": {"": torch.cuda.current_device()}}


def add(model: PreTrainedModel, lora: LoraSettings, seed: int) -> PreTrainedModel:
    """The model with adapters, which alone are trained; A is drawn from `seed`, the global random state is left as it was.
    Raises ValueError when a name in `target_modules` is no layer of this model."""
    from peft import LoraConfig, get_peft_model

    settings = LoraConfig(
        task_type="CAUSAL_LM", r=lora.r, lora_alpha=lora.lora_alpha, lora_dropout=lora.lora_dropout,
        target_modules=lora.target_modules,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return get_peft_model(model, settings)


def plain(model: PreTrainedModel) -> PreTrainedModel:
    """The transformers model itself, with the adapters in its layers: what a sampler runs."""
    return model.get_base_model() if hasattr(model, "peft_config") else model


def save(model: PreTrainedModel, folder: Path) -> None:
    """Saves a plain model that `AutoModelForCausalLM.from_pretrained` loads; with LoRA, the adapters in `adapter/` beside it."""
    if not hasattr(model, "peft_config"):
        model.save_pretrained(folder)
        return
    merged(model).save_pretrained(folder)
    model.save_pretrained(folder / FOLDER, selected_adapters=[ACTIVE], save_embedding_layers=False)
    (folder / FOLDER / "README.md").unlink(missing_ok=True)  # peft's, with blanks to fill in


@torch.no_grad()
def merged(model: PreTrainedModel) -> PreTrainedModel:
    """A copy on the CPU with the adapters added to the weights, made weight by weight; `model` stays as it is, since adding and
    taking away again would not give its very bits back. 4-bit weights are unpacked to bfloat16."""
    from peft.tuners.lora import LoraLayer
    from peft.utils.integrations import dequantize_module_weight

    base = model.get_base_model()
    with torch.device("meta"):
        copy = type(base)(_plain_config(base))
    weights: dict[str, torch.Tensor] = {}
    for key in copy.state_dict():
        path, _, name = key.rpartition(".")
        layer = base.get_submodule(path)
        inner = layer.base_layer if isinstance(layer, LoraLayer) else layer
        value = getattr(inner, name)
        if name == "weight" and getattr(value, "quant_state", None) is not None:
            value = dequantize_module_weight(inner).to(torch.bfloat16)
        if name == "weight" and isinstance(layer, LoraLayer):
            value = (value.float() + layer.get_delta_weight(ACTIVE).float()).to(value.dtype)
        weights[key] = value.detach().cpu()
    copy.load_state_dict(weights, assign=True)
    copy.tie_weights()
    copy.generation_config = base.generation_config
    return copy


def _plain_config(base: PreTrainedModel) -> Any:
    config = type(base.config).from_dict(base.config.to_dict())
    if hasattr(config, "quantization_config"):
        del config.quantization_config
    return config
