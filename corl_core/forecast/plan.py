"""The forecast of a run: each agent's memory on each GPU and the hours, from its configuration alone.

A GPU holds the processes that are placed on it, and they take turns in time; the cohort advances at its slowest GPU. Where no GPU
is named, the rule of `runs/placement.py` says who shares which.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

from corl_core.config import AgentConfig, RunConfig
from corl_core.config_models import LoraSettings
from corl_core.forecast import duration
from corl_core.forecast.cards import Gpu, Rates
from corl_core.forecast.duration import Step
from corl_core.forecast.memory import CONTEXT, GIB, Holding, Memory, Work, cache_bytes, memory
from corl_core.forecast.models import shape_of
from corl_core.forecast.shape import Shape
from corl_core.forecast.split import is_split
from corl_core.runs.placement import Places, fill, wishes
from corl_core.tiny_names import is_tiny
from corl_core.training.sampling.buckets import SLOT_UNIT, bucket, prompts_at_once

EVAL_ROWS = 512  # completions that an evaluation samples at once (training/evaluate.py)
PROMPT_TOKENS = 256  # assumption, where the questions are not known
CHARACTERS_A_TOKEN = 3  # assumption: of questions in English with numbers, on the safe side
TEMPLATE_TOKENS = 40  # assumption: a chat template's own
HOST_BYTES = 0.75 * GIB  # of a process on a CPU that has loaded torch, transformers and TRL


@dataclass(frozen=True)
class Device:
    """Where a run is to train. `gpus`: empty for a CPU, whose memory is `host_memory` bytes; a GPU of unknown size has None."""

    gpus: tuple[Gpu, ...]
    rates: Mapping[int, Rates]  # bytes of a computed value → what a GPU does, or the one CPU under any key; empty: unknown
    host_memory: float = math.inf
    host_cores: int = 1

    @property
    def on_gpu(self) -> bool:
        return bool(self.gpus)

    @property
    def size(self) -> float:
        """Bytes of the smallest GPU, or of the host's memory."""
        return min((gpu.memory or math.inf for gpu in self.gpus), default=self.host_memory)


@dataclass(frozen=True)
class AgentForecast:
    """One agent: its memory on each of its GPUs, and its times, those of its processes side by side."""

    name: str
    model: str
    prompt_from: str  # how the longest prompt is known
    shape: Shape
    holding: Holding
    work: Work
    memory: Memory
    gpus: tuple[str, ...]
    step: Step | None
    context: float

    @property
    def needed(self) -> float:
        """Bytes of a GPU, or of the host's memory, that each process takes."""
        return self.memory.needed - CONTEXT + self.context


@dataclass(frozen=True)
class Forecast:
    """A run's memory and time. `steps` of training, of which `evaluations` are followed by one."""

    agents: tuple[AgentForecast, ...]
    device: Device
    steps: int
    evaluations: int
    completions: int  # an agent samples for training

    @property
    def places(self) -> dict[str, list[AgentForecast]]:
        """GPU → the agents with a process there; the host's memory, '', holds every agent of a run on the CPU."""
        names = dict.fromkeys(gpu for agent in self.agents for gpu in agent.gpus)
        return {name: [agent for agent in self.agents if name in agent.gpus] for name in names}

    @property
    def needed(self) -> dict[str, float]:
        """GPU → bytes that its processes take together."""
        return {name: sum(agent.needed for agent in agents) for name, agents in self.places.items()}

    @property
    def full(self) -> dict[str, float]:
        """Those that cannot hold what they are to hold → their bytes."""
        sizes = {gpu.id: gpu.memory or math.inf for gpu in self.device.gpus} or {"": self.device.host_memory}
        return {name: sizes[name] for name, needed in self.needed.items() if needed > sizes[name]}

    @property
    def fits(self) -> bool:
        return not self.full

    @property
    def step(self) -> Step | None:
        """Of the slowest GPU, on which the others wait; None where the device's rates are not known."""
        if any(agent.step is None for agent in self.agents):
            return None
        shared = [reduce(Step.__add__, (agent.step for agent in agents)) for agents in self.places.values()]
        if self.device.on_gpu:
            return max(shared, key=lambda step: step.seconds)
        slowest = max((agent.step for agent in self.agents), key=lambda step: step.seconds)
        return slowest.times(max(1.0, len(self.agents) / self.device.host_cores))

    @property
    def hours(self) -> float | None:
        if (step := self.step) is None:
            return None
        return (self.steps * step.seconds + self.evaluations * step.evaluation_s) / 3600

    @property
    def sampling_share(self) -> float | None:
        """Of the time, evaluation included."""
        if (step := self.step) is None:
            return None
        sampling = self.steps * step.sampling_s + self.evaluations * step.evaluation_s
        return sampling / (sampling + self.steps * step.update_s)

    @property
    def tokens(self) -> int:
        """That an agent samples for training, at the most."""
        return max(self.completions * agent.work.completion_tokens for agent in self.agents)


def forecast(config: RunConfig, device: Device, prompt_tokens: int | None = None, characters: int | None = None) -> Forecast:
    """`prompt_tokens` or `characters` of the longest prompt, as far as they are known. Raises ConfigError for a model whose shape
    is not known, and PlacementError for GPUs that there are not."""
    places = _places(config, device)
    agents = tuple(
        _agent(config, agent, device, _prompt(config, agent, prompt_tokens, characters), places[agent.name])
        for agent in config.agents
    )  # fmt: skip
    grpo = config.grpo
    evaluations = 1 + math.ceil(grpo.max_steps / config.eval.every_steps) if config.eval.num_questions else 0
    return Forecast(
        agents, device, grpo.max_steps, evaluations, grpo.max_steps * grpo.questions_per_step * config.num_samples
    )  # fmt: skip


def _prompt(config: RunConfig, agent: AgentConfig, tokens: int | None, characters: int | None) -> tuple[int, str]:
    """Tokens of the agent's longest prompt, on the safe side, and how they are known."""
    if tokens is not None:
        return tokens, "given"
    if characters is None:
        return PROMPT_TOKENS, "assumed"
    if is_tiny(agent.model):  # a token is a character
        return characters, "measured"
    templated = config.for_agent(agent.name).data.chat_template != "never"
    words = f"from {characters:,} characters"
    return math.ceil(characters / CHARACTERS_A_TOKEN) + (TEMPLATE_TOKENS if templated else 0), words


def holding_of(config: RunConfig, agent: AgentConfig, on_gpu: bool, num_parameters: float) -> Holding:
    """How the agent's weights are held; `config` is the agent's own (`RunConfig.for_agent`)."""
    weight = 4 if agent.dtype == "float32" else 2
    bf16, lora, place = config.grpo.bf16, agent.lora, agent.placement
    return Holding(
        weight=weight,
        compute=2 if bf16 else weight,
        lora_rank=lora.r if lora else 0,
        lora_targets=_targets(lora),
        four_bit=bool(lora and lora.load_in_4bit),
        checkpointing=config.grpo.gradient_checkpointing,
        checkpointed_layers=config.grpo.checkpointed_layers,
        attention="sdpa" if agent.attn_implementation == "auto" else agent.attn_implementation,
        sampling_copy=bf16 and on_gpu and (weight == 4 or lora is not None) and config.rollouts.backend != "vllm",
        joined=on_gpu and config.rollouts.backend != "vllm",
        compiled=config.grpo.compiles(on_gpu, num_parameters, lora is None, place.num_processes),
        reference=config.grpo.beta > 0,
        teacher=any(signal.labels_from == "teacher" for signal in config.signals.values()),
        processes=place.num_processes,
        sharded=is_split(agent),
    )


def _targets(lora: LoraSettings | None) -> str | tuple[str, ...]:
    if lora is None or isinstance(lora.target_modules, str):
        return "all-linear"
    return tuple(lora.target_modules)


def work_of(config: RunConfig, processes: int, prompt: int) -> Work:
    """What each of an agent's processes does in a step."""
    grpo = config.grpo
    rows = grpo.questions_per_step * grpo.num_generations // processes
    sampled = grpo.questions_per_step * config.num_samples // processes
    prompts = max(1, grpo.questions_per_step // processes)
    slices = grpo.gradient_accumulation_steps
    return Work(max(1, rows // slices), slices, prompt, grpo.max_completion_length, sampled, prompts)


def held_out_work(config: RunConfig, work: Work) -> Work | None:
    """What is sampled at once in an evaluation; None without one."""
    prompts = min(max(1, EVAL_ROWS // config.eval.num_samples), config.eval.num_questions)
    return replace(work, sampled_rows=prompts * config.eval.num_samples, prefilled_rows=prompts) if prompts else None


def _in_goes(work: Work, shape: Shape, holding: Holding, gpu_bytes: float) -> Work:
    """The rows of one go, where all of them do not fit at once."""
    each = work.sampled_rows / work.prefilled_rows
    a_prompt = each * bucket(work.length, SLOT_UNIT) * cache_bytes(shape, holding.compute)
    prompts = prompts_at_once(work.prefilled_rows, a_prompt, gpu_bytes)
    return replace(work, sampled_rows=math.ceil(prompts * each), prefilled_rows=prompts)


def _agent(
    config: RunConfig, agent: AgentConfig, device: Device, prompt: tuple[int, str], gpus: tuple[str, ...]
) -> AgentForecast:  # fmt: skip
    own = config.for_agent(agent.name)
    shape = shape_of(agent)
    holding = holding_of(own, agent, device.on_gpu, shape.parameters)
    work = work_of(own, holding.processes, prompt[0])
    size = device.size if device.on_gpu else 0.0
    held_out = held_out_work(own, work)
    if device.on_gpu and own.rollouts.backend != "vllm":
        work = _in_goes(work, shape, holding, size)
        held_out = held_out and _in_goes(held_out, shape, holding, size)
    found = memory(shape, holding, work, size, held_out)
    if own.rollouts.backend == "vllm" and own.rollouts.vllm_mode == "colocate" and math.isfinite(size):
        taken = own.rollouts.vllm_gpu_memory_utilization * size
        found = replace(found, cache=taken, sampling_work=0.0, keeps_cache=not own.rollouts.vllm_enable_sleep_mode)
    elif own.rollouts.keep_cache is not None:
        found = replace(found, keeps_cache=own.rollouts.keep_cache)
    rates = device.rates.get(holding.compute)
    return AgentForecast(
        agent.name, agent.model, prompt[1], shape, holding, work, found, gpus,
        None if rates is None else _step(own, shape, holding, work, held_out, rates), CONTEXT if device.on_gpu else HOST_BYTES,
    )  # fmt: skip


def _step(config: RunConfig, shape: Shape, holding: Holding, work: Work, held_out: Work | None, rates: Rates) -> Step:
    questions, samples = config.grpo.questions_per_step, config.num_samples
    completions = config.eval.num_questions * config.eval.num_samples / holding.processes
    updates = duration.step(
        shape, holding, work, rates, questions * samples // holding.processes, max(1, questions // holding.processes),
        held_out, math.ceil(completions / held_out.sampled_rows) if held_out else 0,
    )  # fmt: skip
    return replace(updates, sampling_s=updates.sampling_s / config.grpo.num_iterations)


def _places(config: RunConfig, device: Device) -> Places:
    if not device.on_gpu:
        return {agent.name: ("",) for agent in config.agents}
    ids: Sequence[str] = [gpu.id for gpu in device.gpus]
    asked = wishes(config, ids) or {agent.name: (None,) * agent.placement.num_processes for agent in config.agents}
    return fill(asked, dict.fromkeys(ids, 0))
