"""Sampling completions: one decode loop for training and evaluation.

`generate` of transformers spends most of its time in Python when the model is small. This loop keeps what sampling
needs: one prefill of each prompt that its K rollouts share, then one forward a token on the model's own cache, with the
log-probability and entropy of each token taken while the logits are at hand.
"""

from dataclasses import dataclass

import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase


@dataclass(frozen=True)
class Samples:
    """B·K completions in prompt order, each group of K contiguous. Token lists end with the end token if it was drawn."""

    prompt_ids: list[list[int]]  # (B*K) prompts, repeated
    completion_ids: list[list[int]]
    logprobs: list[list[float]]  # of each drawn token, at the sampling temperature
    entropies: list[list[float]]  # nats, of the distribution each token was drawn from
    texts: list[str]
    finished: list[bool]  # the end token was drawn; otherwise the completion was cut off


class Sampler:
    """Draws completions from a model; the draw depends on the weights, the prompts and the seed, and on nothing else."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_tokens: int, temperature: float
    ):
        self.model, self.tokenizer = model, tokenizer
        self.max_tokens, self.temperature = max_tokens, temperature
        eos = model.generation_config.eos_token_id
        eos = tokenizer.eos_token_id if eos is None else eos
        self._eos = torch.tensor(eos if isinstance(eos, list) else [eos], device=model.device)

    @torch.no_grad()
    def sample(self, prompts: list[str], num_generations: int, seed: int) -> Samples:
        """`num_generations` completions of each prompt (text that already holds every template)."""
        training = self.model.training
        self.model.eval()
        try:
            tokens, logprobs, entropies, prompt_ids = self._decode(prompts, num_generations, seed)
        finally:
            self.model.train(training)
        lengths = self._lengths(tokens).tolist()
        finished = torch.isin(tokens, self._eos).any(1).tolist()
        completion_ids = [row[:length] for row, length in zip(tokens.tolist(), lengths, strict=True)]
        return Samples(
            prompt_ids=[ids for ids in prompt_ids for _ in range(num_generations)],
            completion_ids=completion_ids,
            logprobs=[row[:length] for row, length in zip(logprobs.tolist(), lengths, strict=True)],
            entropies=[row[:length] for row, length in zip(entropies.tolist(), lengths, strict=True)],
            texts=self.tokenizer.batch_decode(completion_ids, skip_special_tokens=True),
            finished=finished,
        )

    def _decode(self, prompts: list[str], num_generations: int, seed: int):
        device = self.model.device
        generator = torch.Generator(device).manual_seed(seed)
        batch = self.tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=True)
        ids, mask = batch["input_ids"].to(device), batch["attention_mask"].to(device)  # (B, P)
        prompt_ids = [row[keep.bool()].tolist() for row, keep in zip(ids, mask, strict=True)]
        positions = (mask.cumsum(-1) - 1).clamp(min=0)
        out = self.model(input_ids=ids, attention_mask=mask, position_ids=positions, use_cache=True, logits_to_keep=1)
        cache = out.cache
        cache.batch_repeat_interleave(num_generations)
        logits = out.logits[:, -1].repeat_interleave(num_generations, 0)  # (B*K, V)
        rows, width = logits.shape[0], ids.shape[1]
        full_mask = torch.ones(rows, width + self.max_tokens, dtype=mask.dtype, device=device)
        full_mask[:, :width] = mask.repeat_interleave(num_generations, 0)
        position = (positions[:, -1:] + 1).repeat_interleave(num_generations, 0)  # (B*K, 1)
        finished = torch.zeros(rows, dtype=torch.bool, device=device)
        columns: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
        for step in range(self.max_tokens):
            token, logprob, entropy = self._draw(logits, generator)
            columns.append((token, logprob, entropy))
            finished |= torch.isin(token, self._eos)
            if step == self.max_tokens - 1 or bool(finished.all()):
                break
            out = self.model(
                input_ids=token[:, None], attention_mask=full_mask[:, : width + step + 1],
                position_ids=position + step, cache=cache, use_cache=True,
            )  # fmt: skip
            logits = out.logits[:, -1]
        tokens, logprobs, entropies = (torch.stack(column, 1) for column in zip(*columns, strict=True))  # each (B*K, T)
        return tokens, logprobs, entropies, prompt_ids

    def _draw(self, logits: torch.Tensor, generator: torch.Generator):
        logp = torch.log_softmax(logits.float() / self.temperature, -1)  # (B*K, V)
        probabilities = logp.exp()
        token = torch.multinomial(probabilities, 1, generator=generator)  # (B*K, 1)
        entropy = -(probabilities * logp).sum(-1)
        return token[:, 0], logp.gather(1, token)[:, 0], entropy

    def _lengths(self, tokens: torch.Tensor) -> torch.Tensor:
        """(B*K,) tokens up to and with the first end token."""
        ends = torch.isin(tokens, self._eos).int()
        return ((ends.cumsum(1) - ends) == 0).sum(1)
