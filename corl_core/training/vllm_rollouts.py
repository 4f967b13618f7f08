"""Sampling with vLLM, through TRL's own support for it (`trl.generation.vllm_generation`), which starts the engine or finds the
server, and brings the trained weights there, merged with adapters where there are any.

What differs from TRL's `generate`: each prompt is one request of K completions with a seed of its own, so that an agent's
rollouts follow from its seed (TRL's colocated engine has the seed 0 in every agent), and evaluation samples the same way.

vLLM tells the log-probability of each drawn token, and nothing of the rest of the vocabulary: entropy and self-certainty are NaN,
and methods that are rewarded by them are refused with this backend (`config_rollouts.py`).
"""

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar

import torch
from filelock import FileLock
from torch.distributed.elastic.utils.distributed import get_free_port
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from corl_core import extras
from corl_core.config_models import RolloutSettings
from corl_core.seeds import derive
from corl_core.training.exchange import LOOPBACK
from corl_core.training.rollout import Samples

T = TypeVar("T")
GROUP_PORT = 51216  # TRL's first port for sending weights to a server; one more for each agent
REQUESTS_AT_ONCE = 32
LAUNCHERS = ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class _Alone:
    """What TRL asks an `accelerate.Accelerator` about an agent of one process. A real one would settle the precision of the
    training before the trainer has."""

    is_main_process, num_processes, process_index, local_process_index = True, 1, 0, 0
    state = SimpleNamespace(deepspeed_plugin=None, fsdp_plugin=None)

    def __init__(self, device: torch.device):
        self.device = device

    def wait_for_everyone(self) -> None:
        """There is nobody to wait for."""


@contextmanager
def _environment_kept() -> Iterator[None]:
    """TRL tells an engine in this process by the variables of torch's launcher where it is; a trainer that is made later would
    take itself by them for one of several processes. The engine's port is its own: TRL's first is everybody's."""
    before = {name: os.environ.get(name) for name in LAUNCHERS}
    os.environ |= {"MASTER_ADDR": LOOPBACK, "MASTER_PORT": str(get_free_port())}
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def _turn_to_start(device: torch.device) -> FileLock:
    """Engines of one card start one after another: each takes what the card has less after its start for its own doing, and makes
    its cache so much smaller, or refuses to start."""
    card = torch.cuda.get_device_properties(device).uuid if device.type == "cuda" else device.type
    return FileLock(Path(tempfile.gettempdir()) / f"corl-vllm-{os.getuid()}-{card}.lock")


class VllmSampler:
    """`Sampler`'s contract, by vLLM. `server`: address of the agent's own server in mode 'server'."""

    def __init__(
        self, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, max_tokens: int, temperature: float, templated: bool,
        settings: RolloutSettings, max_rows: int, max_model_length: int | None, server: str | None = None, number: int = 0,
        tick: Callable[[], None] | None = None,
    ):  # fmt: skip
        """`model`: with adapters, peft's. `max_rows`: completions at once; `number`: of the agent in its cohort. `tick` is called
        as sampling gets on: at every step of an engine, at every answer of a server."""
        extras.require("vllm", "rollouts.backend='vllm'")
        from trl.generation.vllm_generation import VLLMGeneration

        self.model, self.tokenizer, self.templated = model, tokenizer, templated
        self.max_tokens, self.temperature = max_tokens, temperature
        eos = model.generation_config.eos_token_id
        eos = tokenizer.eos_token_id if eos is None else eos
        self._eos = set(eos if isinstance(eos, list) else [eos])
        self._sleeps = settings.vllm_mode == "colocate" and settings.vllm_enable_sleep_mode
        self._sent: int | None = None  # which weights vLLM has
        self._tick = tick or (lambda: None)
        with _turn_to_start(model.device), _environment_kept():
            self.generation = VLLMGeneration(
                model=model, accelerator=_Alone(model.device), processing_class=tokenizer, mode=settings.vllm_mode,
                server_base_url=server, group_port=GROUP_PORT + number,
                gpu_memory_utilization=settings.vllm_gpu_memory_utilization, enable_sleep_mode=self._sleeps,
                max_num_seqs=max_rows, max_model_length=max_model_length, temperature=temperature,
                max_completion_length=max_tokens,
            )  # fmt: skip

        if settings.vllm_mode == "colocate":
            engine = self.generation.llm.llm_engine
            engine.step = _told(engine.step, self._tick)

    def sample(self, prompts: Sequence[str], num_generations: int, seed: int, num_trained: int | None = None) -> Samples:
        """As `Sampler.sample`; entropies and self-certainties are NaN."""
        trained = num_generations if num_trained is None else num_trained
        prompt_ids = self.tokenizer(list(prompts), add_special_tokens=not self.templated)["input_ids"]
        seeds = [derive("vllm", seed, index) % 2**31 for index in range(len(prompt_ids))]
        self._send_weights()
        draw = self._from_server if self.generation.mode == "server" else self._from_engine
        completion_ids, logprobs = draw(prompt_ids, seeds, num_generations)
        unknown = [[math.nan] * len(ids) for ids in completion_ids]
        return Samples(
            prompt_ids=[ids for ids in prompt_ids for _ in range(num_generations)],
            completion_ids=completion_ids,
            logprobs=logprobs,
            entropies=unknown,
            self_certainties=unknown,
            texts=self.tokenizer.batch_decode(completion_ids, skip_special_tokens=True),
            finished=[bool(ids) and ids[-1] in self._eos for ids in completion_ids],
            trained=[index % num_generations < trained for index in range(len(completion_ids))],
        )

    def _send_weights(self) -> None:
        """Those of now, unless vLLM has them. An update in place raises a tensor's version; an engine that sleeps forgets."""
        version = sum(parameter._version for parameter in self.model.parameters())
        asleep = self._sleeps and self.generation._llm_weights_sleeping
        if asleep or version != self._sent:
            self.generation.sync_weights()
            self._sent = version

    def _parameters(self, num_generations: int, seed: int) -> dict[str, Any]:
        """top_k 0 and top_p 1: nothing is cut off. logprobs 0: of the drawn token alone."""
        return {
            "n": num_generations, "seed": seed, "temperature": self.temperature, "top_p": 1.0, "top_k": 0,
            "max_tokens": self.max_tokens, "logprobs": 0,
        }  # fmt: skip

    def _from_engine(self, prompt_ids: list[list[int]], seeds: list[int], num_generations: int):
        from trl.generation.vllm_generation import extract_logprobs
        from vllm import SamplingParams

        llm = self.generation.llm
        if self._sleeps:
            llm.wake_up(tags=["kv_cache"])
        outputs = llm.generate(
            [{"prompt_token_ids": ids} for ids in prompt_ids],
            sampling_params=[SamplingParams(**self._parameters(num_generations, seed)) for seed in seeds],
            use_tqdm=False,
        )
        if self._sleeps:
            llm.sleep(level=2)
            self.generation._llm_weights_sleeping = True
        completion_ids = [list(one.token_ids) for output in outputs for one in output.outputs]
        return completion_ids, _of_the_drawn(extract_logprobs(outputs)[0])

    def _from_server(self, prompt_ids: list[list[int]], seeds: list[int], num_generations: int):
        def ask(ids: list[int], seed: int) -> dict[str, Any]:
            asked = self._parameters(num_generations, seed)
            seeded = {"seed": asked.pop("seed")}
            return _told(self.generation.vllm_client.generate, self._tick)(prompts=[ids], generation_kwargs=seeded, **asked)

        with ThreadPoolExecutor(min(REQUESTS_AT_ONCE, len(prompt_ids))) as pool:
            answers = list(pool.map(ask, prompt_ids, seeds))
        completion_ids = list(chain.from_iterable(answer["completion_ids"] for answer in answers))
        return completion_ids, _of_the_drawn(list(chain.from_iterable(answer["logprobs"] for answer in answers)))


def _told(function: Callable[..., T], tick: Callable[[], None]) -> Callable[..., T]:
    """The function, with a tick after each call."""

    def call(*args: Any, **kwargs: Any) -> T:
        result = function(*args, **kwargs)
        tick()
        return result

    return call


def _of_the_drawn(logprobs: list[list[list[float | None]]]) -> list[list[float]]:
    """vLLM's (N, T, 1) as (N, T); what it does not know (NaN in vLLM, None in TRL) is NaN."""
    return [[math.nan if token[0] is None else token[0] for token in row] for row in logprobs]
