"""The next token of every row and what is measured of its distribution, in few passes over the logits.

A token is drawn as the arg max of p / e with e ~ Exp(1), which is a draw from p (the exponential race). The noise comes from
outside, so that the draw can be captured in a graph and still follow from the seed. A GPU does it in one kernel.
"""

import functools
import math
import warnings

import torch
from transformers.utils import is_triton_available

CHUNK = 2**25  # logits at once: float32 of so many are 128 MiB, of which some four exist


def draw(
    logits: torch.Tensor, inverse_temperature: torch.Tensor, noise: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:  # fmt: skip
    """From `logits` (R, V), `inverse_temperature` (1,) float32 and `noise` (R, V) of Exp(1): tokens (R,) and, float32, their
    log-probability, the entropy and the self-certainty (nats) of the distribution: (3, R). `noise` may be overwritten."""
    if has_kernel(logits.device, logits.dtype):
        from corl_core.training.sampling import draw_kernel

        return draw_kernel.draw(logits, inverse_temperature, noise)
    rows = max(1, CHUNK // logits.shape[-1])
    parts = [
        _draw(some, inverse_temperature, other)
        for some, other in zip(logits.split(rows), noise.split(rows), strict=True)
    ]  # fmt: skip
    tokens, measured = zip(*parts, strict=True)
    return (tokens[0], measured[0]) if len(parts) == 1 else (torch.cat(tokens), torch.cat(measured, 1))


def _draw(logits: torch.Tensor, inverse_temperature: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    logp = torch.log_softmax(torch.mul(logits, inverse_temperature), -1, dtype=torch.float32)  # (R, V)
    p = logp.exp()
    token = torch.div(p, noise, out=noise).argmax(-1)
    entropy = -p.mul_(logp).sum(-1)
    certainty = -math.log(logits.shape[-1]) - logp.mean(-1)
    return token, torch.stack([logp.gather(1, token[:, None])[:, 0], entropy, certainty])


@functools.cache
def has_kernel(device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernel computes what it should there; where it fails, whatever Triton raises, it is not used. Raises
    torch.OutOfMemoryError, which is not remembered."""
    if device.type != "cuda" or not is_triton_available():
        return False
    from corl_core.training.sampling import draw_kernel

    generator = torch.Generator(device).manual_seed(1)
    logits = 4 * torch.randn(8, 5000, device=device, generator=generator).to(dtype)
    noise = torch.empty(8, 5000, device=device).exponential_(generator=generator)
    scale = torch.full((1,), 0.8, device=device)
    try:
        (token, measured), (wanted, measures) = draw_kernel.draw(logits, scale, noise), _draw(logits, scale, noise.clone())
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        warnings.warn(f"the kernel for a draw fails here and is not used: {error!r}", stacklevel=2)
        return False
    return bool((token == wanted).all()) and torch.allclose(measured, measures, atol=1e-3)
