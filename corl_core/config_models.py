"""The sections of a run's configuration that say what an agent is made of, how it samples, and where it is placed."""

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from corl_core.config_sections_base import Strict

Gpu = Annotated[int, Field(ge=0, le=1023)]
HEADS = frozenset({"lm_head", "embed_out"})  # as transformers' models name them
EMBEDDINGS = frozenset({"embed_tokens", "embed_in", "wte", "word_embeddings"})


class LoraSettings(Strict):
    """Low-rank adapters (arXiv 2106.09685) that are trained in place of the weights; peft's names and meaning."""

    r: int = Field(16, ge=1, le=1024, description="Rank of the adapters.")
    lora_alpha: int = Field(32, ge=1, description="Scale of the adapters: their output is multiplied by lora_alpha / r.")
    lora_dropout: float = Field(0.0, ge=0, lt=1, description="Dropout on the adapters' input while training.")
    target_modules: Literal["all-linear"] | list[str] = Field(
        "all-linear", description="Layers that get adapters: all linear ones but the head, or names such as [q_proj, v_proj]."
    )
    load_in_4bit: bool = Field(
        False, description="Hold the frozen weights in 4-bit NF4 (QLoRA, arXiv 2305.14314); needs a GPU and bitsandbytes."
    )

    @field_validator("target_modules")
    @classmethod
    def _layers_can_learn(cls, value: str | list[str]) -> str | list[str]:
        if not isinstance(value, str):
            if not value or not all(name.strip() for name in value):
                raise ValueError(f"target_modules={value}: name at least one layer, such as [q_proj, v_proj], or 'all-linear'")
            layers = {name.rpartition(".")[2] for name in value}
            if tied := layers & EMBEDDINGS:
                raise ValueError(
                    f"target_modules={value}: adapters on the embedding '{min(tied)}' change the head too where the two share "
                    "their weights, and the saved model would not be the one that was trained; remove it"
                )
            if heads := sorted(layers & HEADS):
                raise ValueError(
                    f"target_modules={value}: adapters on the head '{heads[0]}' would never be trained, for TRL takes the "
                    "log-probabilities from its weights alone; remove it"
                )
        return value


class PlacementSettings(Strict):
    """Where one agent trains."""

    gpus: list[Gpu] = Field(
        default_factory=list,
        description="GPUs of this agent, by number among those visible; several: one process on each. Empty: chosen at the "
        "start. Agents may share a GPU.",
    )
    processes: int | None = Field(
        None, ge=1, le=64, description="Processes that train the agent together. None: one a GPU that is named, else one."
    )
    parallel: Literal["ddp", "fsdp", "deepspeed"] = Field(
        "ddp",
        description="With several processes: a copy of the weights in each (ddp), or weights, gradients and optimizer split over "
        "them by FSDP or by DeepSpeed ZeRO stage 3.",
    )
    accelerate_config: str | None = Field(
        None,
        description="An `accelerate config` YAML file that says how the processes work together; takes the place of 'parallel'.",
    )
    node: str | None = Field(
        None, max_length=200, description="With launcher 'ray': address of the node that the agent must run on."
    )

    @model_validator(mode="after")
    def _no_gpu_twice(self) -> "PlacementSettings":
        if len(set(self.gpus)) < len(self.gpus):
            raise ValueError(f"gpus={self.gpus} names one twice; each process of an agent has a GPU of its own")
        if self.processes is not None and self.gpus and self.processes != len(self.gpus):
            raise ValueError(f"processes={self.processes} with gpus={self.gpus}: one process a GPU; remove 'processes'")
        return self

    @property
    def num_processes(self) -> int:
        return self.processes or max(1, len(self.gpus))


class RolloutSettings(Strict):
    """How completions are sampled."""

    backend: Literal["auto", "transformers", "vllm"] = Field(
        "auto",
        description="What samples: vllm (needs the extra), or this project's decode loop on transformers' models (auto and "
        "transformers): by CUDA graphs on a GPU, by shared rows on a CPU.",
    )
    keep_cache: bool | None = Field(
        None,
        description="On a GPU, hold keys, values and CUDA graphs between steps. None: if they take at most a fifth of its "
        "memory; otherwise they are made anew for each step's rollouts, which takes seconds.",
    )
    vllm_mode: Literal["colocate", "server"] = Field(
        "colocate", description="vLLM in the agent's own process, or a server that was started with `trl vllm-serve`."
    )
    vllm_servers: dict[str, str] = Field(
        default_factory=dict,
        description="With vllm_mode 'server': each agent's server, e.g. {a: 'http://127.0.0.1:8000', b: 'http://127.0.0.1:8001'}.",
    )
    vllm_gpu_memory_utilization: float = Field(0.3, gt=0, le=0.95, description="Share of the GPU's memory that vLLM may take.")
    vllm_enable_sleep_mode: bool = Field(
        True, description="vLLM gives its memory back during the update, for agents that share a GPU."
    )


class RaySettings(Strict):
    """The Ray cluster that places agents on several machines."""

    address: str = Field("auto", max_length=200, description="Address of the Ray cluster: 'auto', 'HOST:PORT' or 'ray://HOST:PORT'.")
    resources: dict[str, float] = Field(
        default_factory=dict, description="Resources that each agent asks for, e.g. {CPU: 4, GPU: 1}. Empty: a core a thread."
    )
