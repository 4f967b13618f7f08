"""What sampling gives: tokens and what is measured of them."""

from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Drawn:
    """N rollouts: tokens (N, T) and measures (3, N, T), of which `lengths` (N,) count; whether the end token was drawn (N,)."""

    tokens: torch.Tensor
    measured: torch.Tensor
    lengths: torch.Tensor
    finished: torch.Tensor


def together(parts: list[Drawn]) -> Drawn:
    if len(parts) == 1:
        return parts[0]
    return Drawn(
        torch.cat([part.tokens for part in parts]), torch.cat([part.measured for part in parts], 1),
        torch.cat([part.lengths for part in parts]), torch.cat([part.finished for part in parts]),
    )  # fmt: skip
