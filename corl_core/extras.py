"""The packages that only some runs need, and what is said where one is not installed: before a run is made, and again by the
process that wants it, which may be on another machine."""

import sys
from collections.abc import Iterator
from importlib.util import find_spec

from corl_core.config import ConfigError, RunConfig
from corl_core.forecast.split import accelerate_values

REMEDIES = {
    "vllm": "pip install '.[vllm]' in this project, on a Linux machine with a GPU, or use rollouts.backend='auto'",
    "ray": "pip install '.[ray]' in this project, on every node, or use launcher 'local'",
    "gguf": "pip install gguf",
    "bitsandbytes": "pip install bitsandbytes, or remove load_in_4bit",
    "deepspeed": "pip install deepspeed, or use parallel 'fsdp'",
    "flash_attn": "pip install flash-attn, or kernels, or use attn_implementation 'sdpa'",
}


class MissingPackage(ConfigError):
    """A run asks for what needs a package that is not installed; the text says how to get it, or do without."""


def lacks(package: str) -> bool:
    """Whether one of REMEDIES is not installed."""
    return package not in sys.modules and find_spec(package) is None


def need(package: str) -> str:
    """The end of a sentence that begins with what asks for the package."""
    return f"needs the package {package}, which is not installed: {REMEDIES[package]}"


def require(package: str, asked: str) -> None:
    """Raises MissingPackage where `asked`, a field and its value, needs what is not there."""
    if lacks(package):
        raise MissingPackage(f"{asked} {need(package)}")


def check(config: RunConfig) -> None:
    """Raises MissingPackage for a run of this machine that could not start, and ConfigError for a file of Accelerate's that is
    none. What agents elsewhere need, their nodes say."""
    for package, asked in _asked(config):
        require(package, asked)


def _asked(config: RunConfig) -> Iterator[tuple[str, str]]:
    """Each package that the run needs here, with the field that asks for it."""
    if config.launcher == "ray":
        yield "ray", "launcher='ray'"
        return
    if config.rollouts.backend == "vllm":
        yield "vllm", "rollouts.backend='vllm'"
    for agent in config.agents:
        where = f"agents: '{agent.name}' has"
        if agent.gguf_file:
            yield "gguf", f"{where} gguf_file='{agent.gguf_file}', which"
        if agent.lora is not None and agent.lora.load_in_4bit:
            yield "bitsandbytes", f"{where} lora.load_in_4bit=True, which"
        if agent.placement.parallel == "deepspeed":
            yield "deepspeed", f"{where} placement.parallel='deepspeed', which"
        elif str(accelerate_values(agent).get("distributed_type", "")).upper() == "DEEPSPEED":
            yield "deepspeed", f"{where} placement.accelerate_config='{agent.placement.accelerate_config}', which"
        if agent.attn_implementation == "flash_attention_2" and lacks("kernels"):  # transformers takes either
            yield "flash_attn", f"{where} attn_implementation='flash_attention_2', which"
