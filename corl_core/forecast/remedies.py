"""What would fit where a run does not: each remedy is tried through the same forecast, and those that fit are named.

From the least to the most that a remedy changes: how the update is sliced, what is kept for it, its precision; how much is
sampled at once; adapters in place of weights; more GPUs. Of the first kind that needs a number, the smallest number that fits.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from corl_core.config import ConfigError, RunConfig
from corl_core.forecast.cards import Gpu
from corl_core.forecast.plan import Device, forecast

Change = Callable[[dict[str, Any]], None]
SLICES = (2, 4, 8, 16, 32, 64, 128)
NUM_GPUS = (2, 4, 8)
LORA = {"r": 16, "lora_alpha": 32}


@dataclass(frozen=True)
class Remedy:
    """A change in words, as what `--set` or a YAML file says, and the bytes that the fullest GPU then needs."""

    words: str
    settings: str
    needed: float


def remedies(config: RunConfig, device: Device, prompt_tokens: int | None = None, characters: int | None = None) -> list[Remedy]:
    """Those under which the run fits its device, each kind once; [] where none does."""
    found: list[Remedy] = []
    for kind in _kinds(config, device):
        for words, settings, change, there in kind:
            needed = _tried(config, change, there, prompt_tokens, characters)
            if needed is not None:
                found.append(Remedy(words, settings, needed))
                break
    return found


def _tried(config: RunConfig, change: Change, device: Device, tokens: int | None, characters: int | None) -> float | None:
    """Bytes of the fullest GPU; None where it does not fit, or is no configuration."""
    values = config.model_dump()
    change(values)
    try:
        made = forecast(RunConfig.model_validate(values), device, tokens, characters)
    except (ConfigError, ValueError):
        return None
    return max(made.needed.values()) if made.fits else None


def _kinds(config: RunConfig, device: Device) -> Iterator[list[tuple[str, str, Change, Device]]]:
    """The remedies, kind by kind: (words, settings, change, device)."""
    grpo, slices = config.grpo, config.grpo.gradient_accumulation_steps
    sliced = [(slices * more, _both(_grpo("gradient_accumulation_steps", slices * more), _no_own_slices)) for more in SLICES]
    slicing = "grpo.gradient_accumulation_steps"
    yield [(f"slice the update in {number}", f"{slicing}={number}", change, device) for number, change in sliced]
    kept = _grpo("gradient_checkpointing", True)
    if not grpo.gradient_checkpointing:
        yield [("checkpoint gradients", "grpo.gradient_checkpointing=true", kept, device)]
        yield [
            (f"checkpoint gradients and slice the update in {number}",
             f"grpo.gradient_checkpointing=true {slicing}={number}", _both(kept, change), device)
            for number, change in sliced
        ]  # fmt: skip
    half = _grpo("bf16", True)
    if not grpo.bf16 and device.on_gpu:
        yield [("compute in bfloat16", "grpo.bf16=true", half, device)]
    least = _both(kept, sliced[2][1], half if device.on_gpu else _nothing)
    yield [
        (f"completions of at most {length:,} tokens", f"grpo.max_completion_length={length}", _shorter(length), device)
        for length in (grpo.max_completion_length // part for part in (2, 4, 8)) if length
    ]  # fmt: skip
    yield [
        (f"{number} questions a step", f"grpo.questions_per_step={number}",
         _both(_grpo("questions_per_step", number), _fewer_slices), device)
        for number in (grpo.questions_per_step // part for part in (2, 4, 8)) if number
    ]  # fmt: skip
    if config.eval.num_questions:
        yield [
            (f"evaluate on {number} questions", f"eval.num_questions={number}",
             _section("eval", "num_questions", number), device)
            for number in (16, 8, 4, 0)
        ]  # fmt: skip
    if device.on_gpu and config.rollouts.backend != "vllm":
        paged = _section("rollouts", "backend", "vllm")
        yield [("sample with vLLM, whose cache takes no more than its share", "rollouts.backend=vllm", paged, device)]
    if not all(agent.lora for agent in config.agents):
        adapters, how = "each agent: lora: {r: 16, lora_alpha: 32", f"checkpointed and sliced in {sliced[2][0]}"
        rest = f"and grpo.gradient_checkpointing=true {slicing}={sliced[2][0]}{' grpo.bf16=true' if device.on_gpu else ''}"
        yield [("train adapters (LoRA)", f"{adapters}}}", _lora(), device)]
        narrow, four = _both(least, _lora(dtype="bfloat16")), _both(least, _lora(load_in_4bit=True))
        yield [(f"train adapters on bfloat16 weights, {how}", f"{adapters}}}, dtype: bfloat16, {rest}", narrow, device)]
        if device.on_gpu:
            yield [(f"train adapters on 4-bit weights (QLoRA), {how}", f"{adapters}, load_in_4bit: true}}, {rest}", four, device)]
    if device.on_gpu:
        split = "each agent: placement: {processes: "
        yield [
            (f"split each agent over {number} GPUs with FSDP, checkpointed, sliced in {own}",
             f"{split}{number}, parallel: fsdp}}, and grpo.gradient_checkpointing=true {slicing}={own}",
             _both(kept, half, _split(number), _grpo("gradient_accumulation_steps", own), _no_own_slices),
             _more(device, number * len(config.agents)))
            for number in NUM_GPUS for own in dict.fromkeys((slices, 2 * slices, 8 * slices, max(1, slices // number)))
        ]  # fmt: skip
    yield _together(config, device)


def _together(config: RunConfig, device: Device) -> list[tuple[str, str, Change, Device]]:
    """Several at once, one after the other added: for runs that no single one brings down."""
    grpo, steps = config.grpo, []
    processes = max(agent.placement.num_processes for agent in config.agents)
    rows = max(1, grpo.questions_per_step * grpo.num_generations // processes)  # one at a time in each process
    so_far: list[tuple[str, str, Change]] = [
        ("checkpoint gradients", "grpo.gradient_checkpointing=true", _grpo("gradient_checkpointing", True)),
        (f"slice the update in {rows}", f"grpo.gradient_accumulation_steps={rows}",
         _both(_grpo("gradient_accumulation_steps", rows), _no_own_slices)),
    ]  # fmt: skip
    if device.on_gpu:
        so_far.append(("compute in bfloat16", "grpo.bf16=true", _grpo("bf16", True)))
    if config.eval.num_questions > 8:
        so_far.append(("evaluate on 8 questions", "eval.num_questions=8", _section("eval", "num_questions", 8)))
    for part in (2, 4, 8):
        length, questions = max(1, grpo.max_completion_length // part), max(1, grpo.questions_per_step // part)
        steps.append((
            f"{questions} questions a step", f"grpo.questions_per_step={questions}",
            _both(_grpo("questions_per_step", questions),
                  _grpo("gradient_accumulation_steps", max(1, questions * grpo.num_generations // processes))),
        ))  # fmt: skip
        steps.append((f"completions of at most {length:,} tokens", f"grpo.max_completion_length={length}", _shorter(length)))
    made = []
    for end in range(len(so_far), len(so_far) + len(steps) + 1):
        taken = (so_far + steps)[:end]
        settings = {setting.partition("=")[0]: setting for _, setting, _ in taken}
        words = ", ".join(words for words, setting, _ in taken if setting in settings.values())
        made.append((words, " ".join(settings.values()), _both(*(change for *_, change in taken)), device))
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


def _grpo(field: str, value: Any) -> Change:
    return _section("grpo", field, value)


def _no_own_slices(values: dict[str, Any]) -> None:
    for agent in values["agents"]:
        agent["gradient_accumulation_steps"] = None


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
            agent["placement"] = {"processes": number, "parallel": "fsdp"}

    return change


def _more(device: Device, number: int) -> Device:
    """As many GPUs of the kind that there is."""
    one = device.gpus[0]
    return replace(device, gpus=tuple(Gpu(str(index), one.name, one.memory) for index in range(max(number, len(device.gpus)))))
