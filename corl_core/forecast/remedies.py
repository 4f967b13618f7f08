"""What would fit where a run does not: each remedy is tried through the same forecast, and those that fit are named.

From the least to the most that a remedy changes: how the update is sliced, what is kept for it, its precision; how much is
sampled at once; adapters in place of weights; more GPUs. Of the first kind that needs a number, the smallest number that fits.
"""

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from corl_core.config import ConfigError, RunConfig
from corl_core.forecast.cards import Gpu
from corl_core.forecast.plan import Device, forecast

Change = Callable[[dict[str, Any]], None]
Try = tuple[str, Change, Device]  # in words, what it does to a configuration's values, and where it is tried
SLICES = (2, 4, 8, 16, 32, 64, 128)
NUM_GPUS = (2, 4, 8)
VLLM_SHARES = (0.5, 0.4, 0.3, 0.2, 0.1)
LORA = {"r": 16, "lora_alpha": 32}


@dataclass(frozen=True)
class Remedy:
    """A change in words, as arguments of the command line, and the bytes that the fullest of `gpus` GPUs then needs."""

    words: str
    settings: str
    needed: float
    gpus: int


def remedies(config: RunConfig, device: Device, prompt_tokens: int | None = None, characters: int | None = None) -> list[Remedy]:
    """Those under which the run fits its device, each kind once; [] where none does."""
    found: list[Remedy] = []
    for kind in _kinds(config, device):
        for words, change, there in kind:
            values = config.model_dump()
            change(values)
            settings = arguments(config.model_dump(), values)
            needed = _needed(values, there, prompt_tokens, characters) if settings else None
            if needed is not None:
                found.append(Remedy(words, settings, needed, len(there.gpus)))
                break
    return found


def arguments(before: dict[str, Any], after: dict[str, Any]) -> str:
    """Every field that has another value `after`, as '--set KEY=VALUE --set …': all that was changed, and nothing else."""
    return " ".join(f"--set {shlex.quote(f'{path}={value}')}" for path, value in _changed(before, after))


def _changed(before: Any, after: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        before, after = dict(enumerate(before)), dict(enumerate(after))
    if isinstance(before, dict) and isinstance(after, dict):
        for key, value in after.items():
            yield from _changed(before.get(key), value, f"{path}.{key}" if path else str(key))
    elif before != after:
        yield path, after if isinstance(after, str) else json.dumps(after)


def _needed(values: dict[str, Any], device: Device, tokens: int | None, characters: int | None) -> float | None:
    """Bytes of the fullest GPU; None where it does not fit, or is no configuration."""
    try:
        made = forecast(RunConfig.model_validate(values), device, tokens, characters)
    except (ConfigError, ValueError):
        return None
    return max(made.needed.values()) if made.fits else None


def _kinds(config: RunConfig, device: Device) -> Iterator[list[Try]]:
    """The remedies, kind by kind."""
    grpo, slices = config.grpo, config.grpo.gradient_accumulation_steps
    sliced = [(slices * more, _sliced(slices * more)) for more in SLICES]
    yield [(f"slice the update in {number}", change, device) for number, change in sliced]
    kept, half = _checkpointed, _grpo("bf16", True)
    if not grpo.gradient_checkpointing or grpo.checkpointed_layers is not None:
        yield [("checkpoint gradients", kept, device)]
        both = "checkpoint gradients and slice the update in"
        yield [(f"{both} {number}", _both(kept, change), device) for number, change in sliced]
    if not grpo.bf16 and device.on_gpu:
        yield [("compute in bfloat16", half, device)]
    yield [
        (f"completions of at most {length:,} tokens", _shorter(length), device)
        for length in (grpo.max_completion_length // part for part in (2, 4, 8)) if length
    ]  # fmt: skip
    yield [
        (f"{number} questions a step", _both(_grpo("questions_per_step", number), _fewer_slices), device)
        for number in (grpo.questions_per_step // part for part in (2, 4, 8)) if number
    ]  # fmt: skip
    if config.eval.num_questions:
        yield [
            (f"evaluate on {number} questions", _section("eval", "num_questions", number), device) for number in (16, 8, 4, 0)
        ]  # fmt: skip
    if device.on_gpu and config.rollouts.backend != "vllm":
        paged = _section("rollouts", "backend", "vllm")
        yield [("sample with vLLM, whose cache takes no more than its share", paged, device)]
    if device.on_gpu and config.rollouts.backend == "vllm":
        yield from _with_less_vllm(config, device)
    if not all(agent.lora for agent in config.agents):
        yield from _with_adapters(device, *sliced[2])
    if device.on_gpu:
        yield _split_over(config, device)
    yield _together(config, device)


def _with_less_vllm(config: RunConfig, device: Device) -> Iterator[list[Try]]:
    share = config.rollouts.vllm_gpu_memory_utilization
    yield [
        (f"a share of {less:g} of the GPU for vLLM", _section("rollouts", "vllm_gpu_memory_utilization", less), device)
        for less in VLLM_SHARES if less < share
    ]  # fmt: skip
    yield [("sample without vLLM", _section("rollouts", "backend", "auto"), device)]


def _with_adapters(device: Device, slices: int, sliced: Change) -> Iterator[list[Try]]:
    yield [("train adapters (LoRA)", _lora(), device)]
    least = _both(_checkpointed, sliced, _grpo("bf16", True) if device.on_gpu else _nothing)
    how = f"checkpointed and sliced in {slices}"
    yield [(f"train adapters on bfloat16 weights, {how}", _both(least, _lora(dtype="bfloat16")), device)]
    if device.on_gpu:
        yield [(f"train adapters on 4-bit weights (QLoRA), {how}", _both(least, _lora(load_in_4bit=True)), device)]


def _split_over(config: RunConfig, device: Device) -> list[Try]:
    slices, least = config.grpo.gradient_accumulation_steps, _both(_checkpointed, _grpo("bf16", True))
    return [
        (f"split each agent over {number} GPUs with FSDP, in bfloat16, checkpointed, sliced in {own}",
         _both(least, _split(number), _sliced(own)), _more(device, number * len(config.agents)))
        for number in NUM_GPUS for own in dict.fromkeys((slices, 2 * slices, 8 * slices, max(1, slices // number)))
    ]  # fmt: skip


def _together(config: RunConfig, device: Device) -> list[Try]:
    """Several at once, one after the other added: for runs that no single one brings down. One row at a time is updated."""
    grpo, made = config.grpo, []
    processes = max(agent.placement.num_processes for agent in config.agents)
    for fewer, shorter in ((1, 1), (2, 1), (2, 2), (4, 2), (4, 4), (8, 4), (8, 8)):
        questions, length = max(1, grpo.questions_per_step // fewer), max(1, grpo.max_completion_length // shorter)
        slices = max(1, questions * grpo.num_generations // processes)
        taken = [("checkpoint gradients", _checkpointed)]
        taken.append((f"slice the update in {slices}", _sliced(slices)))
        if device.on_gpu:
            taken.append(("compute in bfloat16", _grpo("bf16", True)))
        if config.eval.num_questions > 8:
            taken.append(("evaluate on 8 questions", _section("eval", "num_questions", 8)))
        if fewer > 1:
            taken.append((f"{questions} questions a step", _grpo("questions_per_step", questions)))
        if shorter > 1:
            taken.append((f"completions of at most {length:,} tokens", _shorter(length)))
        made.append((", ".join(words for words, _ in taken), _both(*(change for _, change in taken)), device))
    return made


def _nothing(values: dict[str, Any]) -> None:
    pass


def _both(*changes: Change) -> Change:
    def change(values: dict[str, Any]) -> None:
        for one in changes:
            one(values)

    return change


def _section(section: str, field: str, value: Any) -> Change:
    return lambda values: values[section].update({field: value})


def _checkpointed(values: dict[str, Any]) -> None:
    """All layers."""
    values["grpo"] |= {"gradient_checkpointing": True, "checkpointed_layers": None}


def _grpo(field: str, value: Any) -> Change:
    return _section("grpo", field, value)


def _sliced(number: int) -> Change:
    """Of every agent's step."""

    def change(values: dict[str, Any]) -> None:
        values["grpo"]["gradient_accumulation_steps"] = number
        for agent in values["agents"]:
            agent["gradient_accumulation_steps"] = None

    return change


def _fewer_slices(values: dict[str, Any]) -> None:
    """A step of fewer rows is sliced no finer than it has rows."""
    grpo = values["grpo"]
    rows = grpo["questions_per_step"] * grpo["num_generations"]
    grpo["gradient_accumulation_steps"] = min(grpo["gradient_accumulation_steps"], rows)


def _shorter(length: int) -> Change:
    def change(values: dict[str, Any]) -> None:
        values["grpo"]["max_completion_length"] = length
        for agent in values["agents"]:
            if agent["max_completion_length"] is not None:
                agent["max_completion_length"] = min(agent["max_completion_length"], length)

    return change


def _lora(dtype: str | None = None, **more: Any) -> Change:
    def change(values: dict[str, Any]) -> None:
        for agent in values["agents"]:
            agent["lora"] = (agent["lora"] or LORA) | more
            agent["dtype"] = dtype or agent["dtype"]

    return change


def _split(number: int) -> Change:
    def change(values: dict[str, Any]) -> None:
        for agent in values["agents"]:
            agent["placement"] |= {"gpus": [], "processes": number, "parallel": "fsdp", "accelerate_config": None}

    return change


def _more(device: Device, number: int) -> Device:
    """As many GPUs of the kind that there is."""
    one = device.gpus[0]
    return replace(device, gpus=tuple(Gpu(str(index), one.name, one.memory) for index in range(max(number, len(device.gpus)))))
