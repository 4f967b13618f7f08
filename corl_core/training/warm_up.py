"""The warm-up of a base model: next-token training on the worked solutions of its school's textbook."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice

import torch
from torch.optim.lr_scheduler import LambdaLR
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from corl_core.data.textbook import textbook
from corl_core.tiny_names import School

Progress = Callable[[int, int], None]
IGNORED = -100
"""The label of a token that the loss leaves out (transformers' convention)."""


@dataclass(frozen=True)
class Recipe:
    """How a base model is warmed up. Raise `version` when equal numbers begin to mean another procedure."""

    version: int = 2
    num_steps: int = 2000
    batch_size: int = 64
    learning_rate: float = 5e-3
    rise_steps: int = 50
    weight_decay: float = 0.01


RECIPE = Recipe()


def warm_up(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    school: School,
    seed: int,
    recipe: Recipe = RECIPE,
    progress: Progress | None = None,
) -> None:
    """Train `model` in place with AdamW; `progress` gets (steps done, steps in all).

    One thread, so that the weights do not depend on how many cores there are.
    """
    pages = textbook(school, seed)
    optimizer = torch.optim.AdamW(model.parameters(), recipe.learning_rate, (0.9, 0.98), weight_decay=recipe.weight_decay)
    schedule = LambdaLR(optimizer, lambda step: _learning_rate_factor(step, recipe))
    model.train()
    with _one_thread():
        for step in range(1, recipe.num_steps + 1):
            questions, solutions = zip(*islice(pages, recipe.batch_size), strict=True)
            tokens, labels = encode(tokenizer, [question.question for question in questions], list(solutions))
            # No attention mask: the padding is on the right, where causal attention never looks.
            loss = model(input_ids=tokens.to(model.device), labels=labels.to(model.device), use_cache=False).loss
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
            if progress:
                progress(step, recipe.num_steps)
    model.eval()


def encode(tokenizer: PreTrainedTokenizerBase, prompts: list[str], solutions: list[str]) -> tuple[torch.Tensor, torch.Tensor]:
    """Token ids and labels, both (batch, tokens), padded on the right; only a solution and its end carry labels."""
    prompt_ids = tokenizer(prompts)["input_ids"]
    solution_ids = tokenizer(solutions, add_special_tokens=False)["input_ids"]
    pairs = list(zip(prompt_ids, solution_ids, strict=True))
    num_tokens = 1 + max(len(prompt) + len(solution) for prompt, solution in pairs)
    tokens = torch.full((len(pairs), num_tokens), tokenizer.pad_token_id)  # (batch, tokens)
    labels = torch.full_like(tokens, IGNORED)  # (batch, tokens)
    for row, (prompt, solution) in enumerate(pairs):
        end = len(prompt) + len(solution) + 1
        tokens[row, :end] = torch.tensor([*prompt, *solution, tokenizer.eos_token_id])
        labels[row, len(prompt) : end] = tokens[row, len(prompt) : end]
    return tokens, labels


def _learning_rate_factor(step: int, recipe: Recipe) -> float:
    """A linear rise over `rise_steps`, times half a cosine that ends at zero after `num_steps`."""
    rise = min(1.0, (step + 1) / recipe.rise_steps)
    return rise * 0.5 * (1 + math.cos(math.pi * step / recipe.num_steps))


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
