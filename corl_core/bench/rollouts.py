"""`bench rollouts`: sampling by transformers' `generate` beside this project's paths, in one call on one machine.

Models are shapes with random weights (`shapes.py`), whose completions all have full length, or schooled tiny ones, which end when
they are done. All arms sample the same prompts, K completions of each. The floor of a decode step is the time to read the
weights' bytes once, measured on the same device; the ratio to it says how far from memory speed a step is. Speed-ups are over the
faster `generate` where there are two. An arm that fails is told of, and the others are measured.
"""

import traceback
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import torch
from transformers import BatchEncoding, GenerationConfig, PreTrainedModel

from corl_core.bench import shapes
from corl_core.bench.machine import now, read_seconds, require, reset_peak, without_cudnn
from corl_core.bench.telling import versions
from corl_core.config import ConfigError
from corl_core.training.rollout import Sampler
from corl_core.training.sampling import attention
from corl_core.training.sampling.buckets import ROW_UNIT, SLOT_UNIT, bucket
from corl_core.training.sampling.cache import heads_of
from corl_core.training.sampling.static import StaticDecoder

NAMES = {  # what is measured first is the most wanted
    "generate": "transformers `generate`, dynamic cache",
    "static": "engine, static path",
    "generate:no-cudnn": "transformers `generate`, without cuDNN's attention",
    "shared": "engine, shared rows",
    **{f"static:{way}": f"engine, static path, attention by '{way}'" for way in attention.WAYS},
}
ARMS = {"cpu": ("generate", "static", "shared"), "cuda": ("generate", "static", "generate:no-cudnn", "shared")}  # by default
GROUP = 8  # completions of a prompt


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
    total_s: float | None = None
    prefill_s: float = 0.0
    step_ms: float = 0.0
    first_s: float = 0.0  # the first call, of whole completions too, with whatever it makes or captures
    peak_gib: float | None = None  # beside the weights
    note: str = ""
    floor_ratio: float | None = None
    error: str = ""

    @property
    def tokens_per_s(self) -> float:
        return self.tokens / self.total_s if self.total_s else 0.0


@dataclass
class Measured:
    setting: Setting
    weights_gib: float
    floor_ms: float
    bandwidth_gb_s: float
    rows: list[Row] = field(default_factory=list)
    attention_ms: dict[str, float] = field(default_factory=dict)  # of the static path's ways, a layer, on a GPU
    versions: str = ""


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


def measure(
    setting: Setting, arms: Sequence[str] = (), say: Callable[[str], None] = lambda _: None,
    done: Callable[[Row], None] = lambda _: None,
) -> Measured:  # fmt: skip
    """Every arm in turn, each handed to `done` when it is. Raises ConfigError for a model that is not known."""
    if setting.device == "cpu":
        torch.set_num_threads(1)
    model, tokenizer, prompts = subject(setting)
    num_bytes = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    floor_s = read_seconds(num_bytes, setting.device)
    measured = Measured(setting, num_bytes / 2**30, 1000 * floor_s, num_bytes / floor_s / 1e9, versions=versions())
    say(measured.versions)
    if setting.device == "cuda":
        rows, length = bucket(setting.rows, ROW_UNIT), bucket(setting.prompt_tokens + setting.tokens, SLOT_UNIT)
        inputs = attention.trial(heads_of(model.config), rows, length, setting.device, getattr(torch, setting.dtype))
        measured.attention_ms = attention.milliseconds(*inputs)
        del inputs
        say(f"attention, ms a layer: {measured.attention_ms}")
    for arm in arms or ARMS[setting.device]:
        say(f"measuring {NAMES[arm]}")
        row = _attempt(setting, arm, model, tokenizer, prompts)
        row.floor_ratio = row.step_ms / measured.floor_ms
        measured.rows.append(row)
        done(row)
    return measured


def _attempt(setting: Setting, arm: str, model: PreTrainedModel, tokenizer, prompts: list[str]) -> Row:
    kind, _, variant = arm.partition(":")
    run = _generate if kind == "generate" else _ours
    try:
        before = reset_peak(setting.device)
        with without_cudnn() if (kind, variant) == ("generate", "no-cudnn") else nullcontext():
            row = run(setting, arm, model, tokenizer, prompts)
        row.peak_gib = (torch.cuda.max_memory_allocated() - before) / 2**30 if setting.device == "cuda" else None
        return row
    except Exception as error:
        traceback.print_exc()
        return Row(NAMES[arm], error=f"{type(error).__name__}: {error}")


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


def _generate(setting: Setting, arm: str, model: PreTrainedModel, tokenizer, prompts: list[str]) -> Row:
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

    return _repeat(setting, Row(NAMES[arm]), call)


def _lengths(tokens: torch.Tensor, eos: int | list[int] | None) -> list[int]:
    """Tokens up to and with the end token of each row."""
    if eos is None:
        return [tokens.shape[1]] * len(tokens)
    ends = torch.isin(tokens, torch.tensor(eos, device=tokens.device))
    before = ends.cumsum(1) - ends.long()
    return (before == 0).sum(1).tolist()


def _ours(setting: Setting, arm: str, model: PreTrainedModel, tokenizer, prompts: list[str]) -> Row:
    path, _, way = arm.partition(":")
    bf16 = setting.dtype == "bfloat16"
    sampler = Sampler(model, tokenizer, setting.tokens, 1.0, path=path, bf16=bf16)
    if path == "static":
        sampler.decoder = StaticDecoder(model, bf16=bf16, way=way or None)

    def call(tokens: int) -> list[int]:
        sampler.max_tokens = tokens
        return [len(ids) for ids in sampler.sample(prompts, GROUP, seed=1).completion_ids]

    row = _repeat(setting, Row(NAMES[arm]), call)
    row.note = sampler.decoder.description() if sampler.decoder else ""
    return row


def _repeat(setting: Setting, row: Row, call: Callable[[int], list[int]]) -> Row:
    """`call` samples so many tokens at most and returns how many each completion has. A prefill is a completion of one token."""
    steps = 1
    row.first_s = _timed(setting, lambda: call(setting.tokens))[0]
    row.prefill_s = min(_timed(setting, lambda: call(1))[0] for _ in range(2))
    for _ in range(setting.repeats):
        seconds, lengths = _timed(setting, lambda: call(setting.tokens))
        if row.total_s is None or seconds < row.total_s:
            row.total_s, row.tokens, steps = seconds, sum(lengths), max(lengths) - 1
    row.step_ms = 1000 * (row.total_s - row.prefill_s) / max(1, steps)
    return row


def _timed(setting: Setting, call: Callable[[], list[int]]) -> tuple[float, list[int]]:
    begin = now(setting.device)
    result = call()
    return now(setting.device) - begin, result


def check(setting: Setting) -> None:
    """Raises ConfigError."""
    if setting.rows % GROUP:
        raise ConfigError(f"--rows {setting.rows}: must be a multiple of {GROUP}, the completions of a prompt")
    require(setting.device)
    if not setting.model.startswith("tiny:"):
        shapes.shape(setting.model)


def table(measured: Measured) -> str:
    """Markdown: a line for each arm."""
    setting = measured.setting
    lines = [
        f"{setting.model}, {setting.dtype}, {setting.rows} completions × {setting.tokens} tokens after "
        f"{setting.prompt_tokens}, {setting.device}. Weights {measured.weights_gib:.2f} GiB, read once in "
        f"{measured.floor_ms:.3g} ms ({measured.bandwidth_gb_s:,.0f} GB/s): the floor of a decode step."
        + (" Times of one thread, without what else the machine does." if setting.device == "cpu" else ""),
        "",
        "| arm | tokens/s | speed-up | ms a step | × floor | prefill (s) | first call (s) | peak memory (GiB) |",
        "| --- " * 8 + "|",
        *(_line(row, _baseline(measured.rows)) for row in measured.rows),
        "",
        measured.versions,
    ]
    if measured.attention_ms:
        ways = ", ".join(f"{name} {value:.3f}" for name, value in measured.attention_ms.items())
        lines.append(f"Attention of a step at full length, ms a layer: {ways}.")
    return "\n".join([*lines, *(f"{row.arm}: {row.error or row.note}" for row in measured.rows if row.error or row.note)])


def _baseline(rows: Sequence[Row]) -> float | None:
    """Tokens a second of the faster `generate`, else of the first arm that was measured."""
    rates = {row.arm: row.tokens_per_s for row in rows if row.tokens_per_s}
    plain = [rate for arm, rate in rates.items() if arm in (NAMES["generate"], NAMES["generate:no-cudnn"])]
    return max(plain) if plain else next(iter(rates.values()), None)


def _line(row: Row, baseline: float | None) -> str:
    if row.error:
        return f"| {row.arm} | failed" + " | –" * 6 + " |"
    peak = "–" if row.peak_gib is None else f"{row.peak_gib:.2f}"
    return (
        f"| {row.arm} | {row.tokens_per_s:,.0f} | {row.tokens_per_s / baseline:.2f} | {row.step_ms:.2f} "
        f"| {row.floor_ratio:.1f} | {row.prefill_s:.3f} | {row.first_s:.2f} | {peak} |"
    )
