"""Sampling completions, for training and evaluation alike, on one of two paths.

shared: rollouts of a group that agree so far share one row of the batch. They have one prefix, so one forward pass serves
them all, and each then draws its own next token. Rows split where draws differ and vanish where every rollout has ended.
A confident model needs far fewer rows, and short completions of a small one are sampled fastest this way.
static: a row for each rollout and a decode step that a CUDA graph replays (`sampling/`), for models of real size on a GPU.

Either way completions are independent draws from the model, exactly as if each had been sampled alone, and the
log-probability, entropy and self-certainty of each token are taken while the logits are at hand, one token's at a time: no
tensor of tokens times vocabulary ever exists.
"""

import math
import traceback
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from itertools import compress
from typing import Literal

import torch
from transformers import BatchEncoding, PreTrainedModel, PreTrainedTokenizerBase

from corl_core.training.compiled import as_written
from corl_core.training.sampling.drawn import Drawn
from corl_core.training.sampling.static import StaticDecoder
from corl_core.training.sampling.weights import Unsupported

Path = Literal["shared", "static"]
Told = Callable[[Path, str], None]  # which path samples, and why


def _print(path: Path, reason: str) -> None:
    print(f"rollouts: the {path} path: {reason}", flush=True)


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
    """Draws completions from a model; the draw depends on weights, prompts, seed and path, and on nothing else."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_tokens: int, temperature: float,
        templated: bool = False, *, path: Path | Literal["auto"] = "auto", bf16: bool = False, keep: bool | None = None,
        told: Told = _print, tick: Callable[[], None] | None = None,
    ):  # fmt: skip
        """`templated`: the prompts come out of a chat template, so they hold their special tokens already. `path`: auto is static
        on a GPU and shared elsewhere; where the static one fails, the sampler goes on with the other, and `told` says so once.
        `bf16`, `keep` and `tick`: of the static path (`StaticDecoder`)."""
        self.model, self.tokenizer, self.templated = model, tokenizer, templated
        self.max_tokens, self.temperature = max_tokens, temperature
        eos = model.generation_config.eos_token_id
        eos = tokenizer.eos_token_id if eos is None else eos
        self._eos = torch.tensor(eos if isinstance(eos, list) else [eos], device=model.device)
        self._may_fall_back = path == "auto"
        self.path: Path = path if path != "auto" else "static" if model.device.type == "cuda" else "shared"
        self._static, self._told = {"bf16": bf16, "keep": keep, "tick": tick}, told
        self.decoder: StaticDecoder | None = None

    @torch.inference_mode()
    def sample(self, prompts: list[str], num_generations: int, seed: int, num_trained: int | None = None) -> Samples:
        """`num_generations` completions of each prompt (text that already holds every template), of which the first
        `num_trained` (None: all) are to be trained on."""
        training = self.model.training
        self.model.eval()
        try:
            batch = self.tokenizer(
                prompts, return_tensors="pt", padding=True, padding_side="left", add_special_tokens=not self.templated
            ).to(self.model.device)
            drawn = self._by_graphs(batch, num_generations, seed) if self.path == "static" else None
            if drawn is None:
                with as_written(self.model):
                    drawn = self._by_shared_rows(batch, num_generations, self._generator(seed))
        finally:
            self.model.train(training)
        return self._samples(batch, drawn, num_generations, num_generations if num_trained is None else num_trained)

    def _generator(self, seed: int) -> torch.Generator:
        return torch.Generator(self.model.device).manual_seed(seed)

    def _by_graphs(self, batch: BatchEncoding, num_generations: int, seed: int) -> Drawn | None:
        """None: the static path does not do this model, and from now on the other one samples."""
        is_new, drawn, goes = self.decoder is None, None, self.decoder and self.decoder.goes
        try:
            if is_new:
                self.decoder = StaticDecoder(self.model, **self._static)
            drawn = self.decoder.sample(
                batch, num_generations, self._generator(seed), self.max_tokens, self.temperature, self._eos
            )
        except Exception as error:  # Triton's are of no common kind
            if not self._may_fall_back:
                raise
            is_known = isinstance(error, Unsupported)
            if not is_known:
                traceback.print_exc()
            why = f"{'this model' if is_known else type(error).__name__}: {error}"
        if drawn is None:  # here the traceback, which holds cache and graphs, is gone
            self._give_up()
            self._told("shared", f"WARNING: sampling is several times slower, for the static path failed on {why}")
        elif is_new or self.decoder.goes != goes:
            self._told("static", self.decoder.description())
        return drawn

    def _give_up(self) -> None:
        self.decoder, self.path = None, "shared"
        if self.model.device.type == "cuda":
            with suppress(RuntimeError):  # of an allocator that a failed capture has left as it was
                torch.cuda.empty_cache()

    def _by_shared_rows(self, batch: BatchEncoding, num_generations: int, generator: torch.Generator) -> Drawn:
        rows = _Rows(self.model, batch)
        num = len(batch["input_ids"]) * num_generations
        drawn = _Drawn(num, self.max_tokens, self.model.device)
        active = torch.arange(num, device=self.model.device)  # (A,) rollouts that go on
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
        finished = torch.ones(num, dtype=torch.bool)
        finished[active.cpu()] = False
        return Drawn(drawn.tokens, drawn.measured, drawn.lengths, finished)

    def _samples(self, batch: BatchEncoding, drawn: Drawn, num_generations: int, num_trained: int) -> Samples:
        lengths = drawn.lengths.tolist()
        completion_ids, logprobs, entropies, self_certainties = (
            [values[:length] for values, length in zip(column.tolist(), lengths, strict=True)]
            for column in (drawn.tokens, *drawn.measured)
        )
        masks = batch["attention_mask"].bool()
        prompt_ids = [row[keep].tolist() for row, keep in zip(batch["input_ids"], masks, strict=True)]
        return Samples(
            prompt_ids=[ids for ids in prompt_ids for _ in range(num_generations)],
            completion_ids=completion_ids,
            logprobs=logprobs,
            entropies=entropies,
            self_certainties=self_certainties,
            texts=self.tokenizer.batch_decode(completion_ids, skip_special_tokens=True),
            finished=drawn.finished.tolist(),
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
