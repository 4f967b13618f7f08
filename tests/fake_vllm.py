"""A stand-in for vLLM with the interface that TRL and this project call: a real tiny model behind `LLM`, no GPU.

It keeps its own weights, which change by `load_weights` alone, forgets them when it sleeps at level 2, and draws each of the n
completions of a request with the generator `seed + index`, as vLLM does.
"""

import os
import sys
from dataclasses import dataclass, field
from types import ModuleType, SimpleNamespace
from typing import Any

import torch
from transformers import AutoModelForCausalLM


@dataclass
class SamplingParams:
    n: int = 1
    seed: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    max_tokens: int = 16
    logprobs: int | None = None


@dataclass
class CompletionOutput:
    token_ids: tuple[int, ...]
    logprobs: list[dict[int, Any]]


@dataclass
class RequestOutput:
    prompt_token_ids: list[int]
    outputs: list[CompletionOutput] = field(default_factory=list)


class LLM:
    def __init__(self, model: str, enable_sleep_mode: bool = False, **settings: Any):
        self.model = AutoModelForCausalLM.from_pretrained(model).requires_grad_(False)
        self.settings, self.calls, self.asked = settings, [], []
        self.environment = dict(os.environ)  # as it was when the engine began
        runner = SimpleNamespace(model=self)
        executor = SimpleNamespace(driver_worker=SimpleNamespace(model_runner=runner))
        self.llm_engine = SimpleNamespace(model_executor=executor, step=lambda: [])

    def load_weights(self, weights: list[tuple[str, torch.Tensor]]) -> None:
        own = dict(self.model.named_parameters())
        for name, value in weights:
            own[name].copy_(value)

    def reset_prefix_cache(self) -> None:
        self.calls.append("reset")

    def wake_up(self, tags: list[str]) -> None:
        self.calls.append(f"wake {tags[0]}")

    def sleep(self, level: int) -> None:
        self.calls.append("sleep")
        for parameter in self.model.parameters():
            parameter.fill_(float("nan"))

    def generate(self, prompts: list[dict], sampling_params: list[SamplingParams], use_tqdm: bool) -> list[RequestOutput]:
        self.calls.append("generate")
        self.asked += sampling_params
        return [
            RequestOutput(prompt["prompt_token_ids"], [self._draw(prompt["prompt_token_ids"], asked, i) for i in range(asked.n)])
            for prompt, asked in zip(prompts, sampling_params, strict=True)
        ]

    def _draw(self, ids: list[int], asked: SamplingParams, index: int) -> CompletionOutput:
        generator = torch.Generator().manual_seed(asked.seed + index)
        tokens, logprobs = [], []
        while len(tokens) < asked.max_tokens:
            self.llm_engine.step()
            with torch.no_grad():
                logits = self.model(torch.tensor([[*ids, *tokens]])).logits[0, -1] / asked.temperature
            logp = torch.log_softmax(logits, -1)
            tokens.append(int(torch.multinomial(logp.exp(), 1, generator=generator)))
            logprobs.append({tokens[-1]: SimpleNamespace(logprob=float(logp[tokens[-1]]), rank=1)})
            if tokens[-1] == self.model.generation_config.eos_token_id:
                break
        return CompletionOutput(tuple(tokens), logprobs)


def install(monkeypatch) -> None:
    """Makes `import vllm` find this, for TRL too."""
    import trl.generation.vllm_generation as generation  # before there is a vllm that it would look into

    vllm, parameters = ModuleType("vllm"), ModuleType("vllm.sampling_params")
    vllm.LLM, vllm.RequestOutput, vllm.SamplingParams = LLM, RequestOutput, SamplingParams
    vllm.__version__, vllm.__path__, parameters.StructuredOutputsParams = "0.28.0", [], object
    vllm.__spec__ = SimpleNamespace(name="vllm", parent="vllm", loader=None, origin=None, submodule_search_locations=[])
    for name, module in (("vllm", vllm), ("vllm.sampling_params", parameters)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(generation, "is_vllm_available", lambda *_: True)
    for name, value in (("LLM", LLM), ("SamplingParams", SamplingParams), ("StructuredOutputsParams", object)):
        monkeypatch.setattr(generation, name, value, raising=False)
