"""Whether a decode step is the model's: its logits against those of a plain forward pass over the same tokens.

A wrong mask, position or scale shows at once; rounding does not.
"""

import torch
from transformers import PreTrainedModel

from corl_core.training.sampling.weights import Unsupported

LARGEST = {torch.float32: 1e-3, torch.bfloat16: 0.1, torch.float16: 0.03}  # of the difference, relative to the logits' spread


def plain_logits(model: PreTrainedModel, ids: torch.Tensor, mask: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
    """Logits after prompts (B, P), padded on the left, and one token more each (B,), by the model's own attention: (B, V)."""
    mask = torch.nn.functional.pad(mask, (0, 1), value=1)
    return type(model).forward(
        model, input_ids=torch.cat([ids, token[:, None]], 1), attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0), use_cache=False, logits_to_keep=1,
    ).logits[:, -1]  # fmt: skip


def difference(got: torch.Tensor, wanted: torch.Tensor, dtype: torch.dtype) -> float:
    """Norm of the difference over that of the logits about their mean. Raises Unsupported where it is more than rounding."""
    got, wanted = got.float(), wanted.float()
    spread = (wanted - wanted.mean(-1, keepdim=True)).norm().clamp(min=1e-6)
    error = float((got - wanted).norm() / spread)
    if not error <= LARGEST.get(dtype, 0.1):
        raise Unsupported(f"its decode step differs from its forward pass by {error:.1%}")
    return error
