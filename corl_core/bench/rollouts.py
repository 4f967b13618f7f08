"""`bench rollouts`: sampling by transformers' `generate` beside this project's paths, in one call on one machine.

Models are shapes with random weights (`shapes.py`), whose completions all have full length, or schooled tiny ones, which end when
they are done. All arms sample the same prompts, K completions of each. The floor of a decode step is the time to read the
weights' bytes once, measured on the same device; the ratio to it says how far from memory speed a step is.
"""

import gc
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from transformers import BatchEncoding, GenerationConfig, PreTrainedModel

from corl_core.bench import shapes
from corl_core.config import ConfigError
from corl_core.training.rollout import Sampler

ARMS = ("generate", "shared", "static")
NAMES = {
    "generate": "transformers `generate`, dynamic cache",
    "shared": "engine, shared rows",
    "static": "engine, static path",
}
GROUP = 8  # completions of a prompt
WARM_UP_TOKENS = 4


@dataclass(frozen=True)
class Setting:
    """What is measured."""

    model: str
    rows: int
    tokens: int
    prompt_tokens: int
    device: str
    dtype: str
    repeats: int


@dataclass
class Row:
    """One arm; seconds of its fastest repeat. A step is one token of every row."""

    arm: str
    tokens: int = 0
    total_s: float = float("inf")
    prefill_s: float = 0.0
    step_ms: float = 0.0
    first_s: float = 0.0  # the first call, with whatever it makes or captures
    peak_gib: float | None = None  # beside the weights
    note: str = ""
    floor_ratio: float | None = None

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.total_s


@dataclass
class Measured:
    setting: Setting
    weights_gib: float
    floor_ms: float
    bandwidth_gb_s: float
    rows: list[Row] = field(default_factory=list)


class Ids:
    """A tokenizer for prompts that are written as token ids, so that every shape of vocabulary has one."""

    eos_token_id = -1

    def __call__(self, prompts: Sequence[str], **_: object) -> BatchEncoding:
        lists = [[int(word) for word in prompt.split()] for prompt in prompts]
        longest = max(map(len, lists))
        ids = torch.tensor([[0] * (longest - len(row)) + row for row in lists])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in lists])
        return BatchEncoding({"input_ids": ids, "attention_mask": mask})

    def batch_decode(self, ids: Sequence[Sequence[int]], **_: object) -> list[str]:
        return [""] * len(ids)


def measure(setting: Setting, arms: Sequence[str] = ARMS, say: Callable[[str], None] = lambda _: None) -> Measured:
    """Every arm in turn. Raises ConfigError for a model that is not known."""
    if setting.device == "cpu":
        torch.set_num_threads(1)
    model, tokenizer, prompts = subject(setting)
    num_bytes = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    floor_s = read_seconds(num_bytes, setting.device)
    measured = Measured(setting, num_bytes / 2**30, 1000 * floor_s, num_bytes / floor_s / 1e9)
    for arm in arms:
        say(f"measuring {NAMES[arm]}")
        own, before = () if arm == "generate" else (arm,), _reset_peak(device := setting.device)
        row = (_ours if own else _generate)(setting, model, tokenizer, prompts, *own)
        row.peak_gib = (torch.cuda.max_memory_allocated() - before) / 2**30 if device == "cuda" else None
        row.floor_ratio = row.step_ms / measured.floor_ms
        measured.rows.append(row)
    return measured


def read_seconds(num_bytes: int, device: str, repeats: int = 5) -> float:
    """To read so many bytes of memory once: the fastest of several sums over them."""
    values = torch.ones(max(1, num_bytes // 4), device=device)
    times = []
    for _ in range(repeats):
        begin = _now(device)
        values.sum()
        times.append(_now(device) - begin)
    return min(times)


def subject(setting: Setting):
    """Model, tokenizer and prompts (of different lengths, so that some are padded)."""
    num = max(1, setting.rows // GROUP)
    if setting.model.startswith("tiny:"):
        return _schooled(setting, num)
    model = shapes.make_model(setting.model, setting.device, getattr(torch, setting.dtype))
    model.generation_config.eos_token_id = None
    generator = torch.Generator().manual_seed(1)
    size = model.config.vocab_size
    lengths = [max(2, setting.prompt_tokens - index % 4) for index in range(num)]
    prompts = [torch.randint(3, size, (length,), generator=generator).tolist() for length in lengths]
    return model, Ids(), [" ".join(map(str, ids)) for ids in prompts]


def _schooled(setting: Setting, num: int):
    from corl_core.config import load_config
    from corl_core.data.sources import training_questions
    from corl_core.training import models

    config = load_config("demo", [f"agents=[{{name: a, model: '{setting.model}'}}]", "method=ttrl"])
    model, tokenizer = models.load(config, config.agents[0], setting.device)
    questions = training_questions(config.data, num, 1)
    return model.eval(), tokenizer, [models.prompt(question.question, config.data, tokenizer) for question in questions]


def _generate(setting: Setting, model: PreTrainedModel, tokenizer, prompts: list[str]) -> Row:
    """As TRL calls it: every prompt K times over, no compilation."""
    batch = tokenizer(prompts, return_tensors="pt", padding=True, padding_side="left")
    ids, mask = (batch[name].repeat_interleave(GROUP, 0).to(model.device) for name in ("input_ids", "attention_mask"))
    eos = model.generation_config.eos_token_id

    def call(tokens: int) -> list[int]:
        settings = GenerationConfig(
            max_new_tokens=tokens, do_sample=True, temperature=1.0, top_k=0, pad_token_id=0, eos_token_id=eos,
            disable_compile=True,
        )  # fmt: skip
        with torch.inference_mode():
            out = model.generate(input_ids=ids, attention_mask=mask, generation_config=settings)
        return _lengths(out[:, ids.shape[1] :], eos)

    row = Row(NAMES["generate"])
    row.first_s = _timed(setting, lambda: call(WARM_UP_TOKENS))[0]
    row.prefill_s = min(_timed(setting, lambda: call(1))[0] for _ in range(2))
    return _repeat(setting, row, lambda: call(setting.tokens), lambda: row.prefill_s)


def _lengths(tokens: torch.Tensor, eos: int | list[int] | None) -> list[int]:
    """Tokens up to and with the end token of each row."""
    if eos is None:
        return [tokens.shape[1]] * len(tokens)
    ends = torch.isin(tokens, torch.tensor(eos, device=tokens.device))
    before = ends.cumsum(1) - ends.long()
    return (before == 0).sum(1).tolist()


def _ours(setting: Setting, model: PreTrainedModel, tokenizer, prompts: list[str], path: Literal["shared", "static"]) -> Row:
    told: list[str] = []
    bf16 = setting.dtype == "bfloat16"
    sampler = Sampler(model, tokenizer, setting.tokens, 1.0, path=path, bf16=bf16, told=lambda _, why: told.append(why))

    def call(tokens: int = setting.tokens) -> list[int]:
        sampler.max_tokens = tokens
        return [len(ids) for ids in sampler.sample(prompts, GROUP, seed=1).completion_ids]

    row = Row(NAMES[path])
    row.first_s = _timed(setting, call)[0]
    row.prefill_s = min(_timed(setting, lambda: call(1))[0] for _ in range(2))
    row = _repeat(setting, row, call, lambda: row.prefill_s)
    row.note = "; ".join(told)
    return row


def _repeat(setting: Setting, row: Row, call: Callable[[], list[int]], prefill: Callable[[], float]) -> Row:
    steps = 1
    for _ in range(setting.repeats):
        seconds, lengths = _timed(setting, call)
        if seconds < row.total_s:
            row.total_s, row.tokens, row.prefill_s, steps = seconds, sum(lengths), prefill(), max(lengths) - 1
    row.step_ms = 1000 * (row.total_s - row.prefill_s) / max(1, steps)
    return row


def _reset_peak(device: str) -> int:
    """Bytes held now, on a GPU that nothing but the weights is left on."""
    if device != "cuda":
        return 0
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    return torch.cuda.memory_allocated()


def _timed(setting: Setting, call: Callable[[], list[int]]) -> tuple[float, list[int]]:
    begin = _now(setting.device)
    result = call()
    return _now(setting.device) - begin, result


def _now(device: str) -> float:
    """On a CPU the time of this process alone, by one thread, for other work on the machine would spoil a comparison."""
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter()
    return time.process_time()


def check(setting: Setting) -> None:
    """Raises ConfigError."""
    if setting.rows % GROUP:
        raise ConfigError(f"--rows {setting.rows}: must be a multiple of {GROUP}, the completions of a prompt")
    if setting.device == "cuda" and not torch.cuda.is_available():
        raise ConfigError("--device cuda: there is no GPU here that torch can use; take --device cpu")
    if not setting.model.startswith("tiny:"):
        shapes.shape(setting.model)


def table(measured: Measured) -> str:
    """Markdown: a line for each arm."""
    setting, first = measured.setting, measured.rows[0]
    lines = [
        f"{setting.model}, {setting.dtype}, {setting.rows} completions × {setting.tokens} tokens after "
        f"{setting.prompt_tokens}, {setting.device}. Weights {measured.weights_gib:.2f} GiB, read once in "
        f"{measured.floor_ms:.3g} ms ({measured.bandwidth_gb_s:,.0f} GB/s): the floor of a decode step."
        + (" Times of one thread, without what else the machine does." if setting.device == "cpu" else ""),
        "",
        "| arm | tokens/s | speed-up | ms a step | × floor | prefill (s) | first call (s) | peak memory (GiB) |",
        "| --- " * 8 + "|",
    ]
    for row in measured.rows:
        peak = "–" if row.peak_gib is None else f"{row.peak_gib:.2f}"
        lines.append(
            f"| {row.arm} | {row.tokens_per_s:,.0f} | {row.tokens_per_s / first.tokens_per_s:.2f} | {row.step_ms:.2f} "
            f"| {row.floor_ratio:.1f} | {row.prefill_s:.3f} | {row.first_s:.2f} | {peak} |"
        )
    notes = [f"{row.arm}: {row.note}" for row in measured.rows if row.note]
    return "\n".join([*lines, *([""] if notes else []), *notes])
