"""Sampling completions: one decode loop for training and evaluation.

Rollouts of a group that agree so far share one row of the batch: they have one prefix, so one forward pass serves them
all, and each then draws its own next token. Rows split where draws differ and vanish where every rollout has ended. The
completions are independent draws from the model, exactly as if each had a row of its own; a confident model only needs
far fewer rows. The log-probability, entropy and self-certainty of each token are taken while the logits are at hand, one
token's at a time: no tensor of tokens times vocabulary ever exists.
"""

import math
from dataclasses import dataclass
from itertools import compress

import torch
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase


def entropy(logp: torch.Tensor) -> torch.Tensor:
    """Of distributions given by their log-probabilities (…, V), in nats: (…,)."""
    return -(logp.exp() * logp).sum(-1)


def self_certainty(logp: torch.Tensor) -> torch.Tensor:
    """KL(uniform || p) of distributions given by their log-probabilities (…, V), in nats (arXiv 2505.19590): (…,)."""
    return -math.log(logp.shape[-1]) - logp.mean(-1)


@dataclass(frozen=True)
class Samples:
    """B·K completions in prompt order, each group of K contiguous. Token lists end with the end token if it was drawn."""

    prompt_ids: list[list[int]]  # (B*K) prompts, repeated
    completion_ids: list[list[int]]
    logprobs: list[list[float]]  # of each drawn token, at the sampling temperature
    entropies: list[list[float]]  # nats, of the distribution each token was drawn from
    self_certainties: list[list[float]]  # nats, KL(uniform || that distribution), over the whole vocabulary
    texts: list[str]
    finished: list[bool]  # the end token was drawn; otherwise the completion was cut off
    trained: list[bool]  # the update uses it; otherwise it only votes

    def for_training(self) -> dict[str, list]:
        """The completions that are trained on, as TRL's `rollout_func` returns them."""
        columns = {"prompt_ids": self.prompt_ids, "completion_ids": self.completion_ids, "logprobs": self.logprobs}
        return {name: list(compress(column, self.trained)) for name, column in columns.items()}


class Sampler:
    """Draws completions from a model; the draw depends on the weights, the prompts and the seed, and on nothing else."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_tokens: int, temperature: float,
        templated: bool = False,
    ):  # fmt: skip
        """`templated`: the prompts come out of a chat template, so they hold their special tokens already."""
        self.model, self.tokenizer, self.templated = model, tokenizer, templated
        self.max_tokens, self.temperature = max_tokens, temperature
        eos = model.generation_config.eos_token_id
        eos = tokenizer.eos_token_id if eos is None else eos
        self._eos = torch.tensor(eos if isinstance(eos, list) else [eos], device=model.device)

    @torch.inference_mode()
    def sample(self, prompts: list[str], num_generations: int, seed: int, num_trained: int | None = None) -> Samples:
        """`num_generations` completions of each prompt (text that already holds every template), of which the first
        `num_trained` (None: all) are to be trained on."""
        training = self.model.training
        self.model.eval()
        try:
            generator = torch.Generator(self.model.device).manual_seed(seed)
            return self._sample(prompts, num_generations, generator, num_generations if num_trained is None else num_trained)
        finally:
            self.model.train(training)

    def _sample(self, prompts: list[str], num_generations: int, generator: torch.Generator, num_trained: int) -> Samples:
        batch = self.tokenizer(
            prompts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=not self.templated
        )
        rows = _Rows(self.model, batch.to(self.model.device))
        drawn = _Drawn(len(prompts) * num_generations, self.max_tokens, self.model.device)
        active = torch.arange(len(prompts) * num_generations, device=self.model.device)  # (A,) rollouts that go on
        row = active // num_generations  # (A,) the row that each of them reads
        for step in range(self.max_tokens):
            logp = torch.log_softmax(rows.logits.float() / self.temperature, -1)  # (R, V)
            token = torch.multinomial(logp.exp()[row], 1, generator=generator)[:, 0]  # (A,)
            drawn.write(step, active, token, torch.stack([logp[row, token], entropy(logp)[row], self_certainty(logp)[row]]))
            goes_on = ~torch.isin(token, self._eos)
            active, row, token = active[goes_on], row[goes_on], token[goes_on]
            if step == self.max_tokens - 1 or not len(active):
                break
            row = rows.forward(row, token)
        return self._samples(rows, drawn, active, num_generations, num_trained)

    def _samples(
        self, rows: "_Rows", drawn: "_Drawn", cut: torch.Tensor, num_generations: int, num_trained: int
    ) -> Samples:
        lengths = drawn.lengths.tolist()
        finished = torch.ones(len(lengths), dtype=torch.bool)
        finished[cut.cpu()] = False
        completion_ids, logprobs, entropies, self_certainties = (
            [values[:length] for values, length in zip(column.tolist(), lengths, strict=True)]
            for column in (drawn.tokens, *drawn.measured)
        )
        return Samples(
            prompt_ids=[ids for ids in rows.prompt_ids for _ in range(num_generations)],
            completion_ids=completion_ids,
            logprobs=logprobs,
            entropies=entropies,
            self_certainties=self_certainties,
            texts=self.tokenizer.batch_decode(completion_ids, skip_special_tokens=True),
            finished=finished.tolist(),
            trained=[index % num_generations < num_trained for index in range(len(lengths))],
        )


class _Drawn:
    """What has been drawn, for N rollouts and at most T tokens."""

    def __init__(self, num: int, max_tokens: int, device: torch.device):
        self.tokens = torch.zeros(num, max_tokens, dtype=torch.long, device=device)  # (N, T)
        self.measured = torch.zeros(3, num, max_tokens, device=device)  # log-probability, entropy, self-certainty: (3, N, T)
        self.lengths = torch.zeros(num, dtype=torch.long, device=device)  # (N,)

    def write(self, step: int, rollouts: torch.Tensor, token: torch.Tensor, measured: torch.Tensor) -> None:
        """`token` (A,) and `measured` (3, A) of the rollouts (A,) that go on."""
        self.tokens[rollouts, step], self.measured[:, rollouts, step] = token, measured
        self.lengths[rollouts] = step + 1


class _Rows:
    """The distinct prefixes, a row each: their attention mask, position, cache and next-token logits (R, V)."""

    def __init__(self, model: PreTrainedModel, batch: BatchEncoding):
        """`batch`: the prompts' input_ids and attention_mask, (B, P) each, padded on the left."""
        self._model = model
        ids, self._mask = batch["input_ids"], batch["attention_mask"]  # (B, P)
        self.prompt_ids = [row[keep.bool()].tolist() for row, keep in zip(ids, self._mask, strict=True)]
        positions = (self._mask.cumsum(-1) - 1).clamp(min=0)
        self._position = positions[:, -1:]  # (R, 1)
        out = model(input_ids=ids, attention_mask=self._mask, position_ids=positions, use_cache=True, logits_to_keep=1)
        self._cache, self.logits = out.cache, out.logits[:, -1]

    def forward(self, row: torch.Tensor, token: torch.Tensor) -> torch.Tensor:
        """Extends row[i] by token[i] for every rollout i, equal extensions once; returns each rollout's new row."""
        num_tokens = self.logits.shape[-1]
        branches, new_row = torch.unique(row * num_tokens + token, return_inverse=True)
        parents = branches // num_tokens
        if len(parents) != len(self._mask) or not torch.equal(parents, torch.arange(len(parents), device=parents.device)):
            self._cache.batch_select_indices(parents)
            self._mask, self._position = self._mask[parents], self._position[parents]
        self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
        self._position = self._position + 1
        out = self._model(
            input_ids=(branches % num_tokens)[:, None], attention_mask=self._mask, position_ids=self._position,
            cache=self._cache, use_cache=True,
        )  # fmt: skip
        self.logits = out.logits[:, -1]
        return new_row
