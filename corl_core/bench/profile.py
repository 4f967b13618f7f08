"""`bench rollouts --profile`: what a decode step spends its time on, kernel by kernel, from torch's profiler."""

from collections.abc import Iterable
from typing import Any

import torch
from torch.autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

from corl_core.bench.rollouts import GROUP, Setting, subject
from corl_core.training.rollout import Sampler

TOKENS = 24  # of a completion that is watched
MOST = 25  # kernels shown


def of_a_step(setting: Setting) -> str:
    """Markdown: the kernels of one completion's decode steps, longest first, each with microseconds a step."""
    model, tokenizer, prompts = subject(setting)
    sampler = Sampler(model, tokenizer, TOKENS, 1.0, path="static", bf16=setting.dtype == "bfloat16", keep=True)
    sampler.sample(prompts, GROUP, seed=1)
    on_gpu = setting.device == "cuda"
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]) as watched:
        sampler.sample(prompts, GROUP, seed=1)
        if on_gpu:
            torch.cuda.synchronize()
    times = sorted(self_times(watched.key_averages(), on_gpu), reverse=True)
    total, steps = sum(row[0] for row in times), TOKENS - 1
    lines = [
        f"Prefill and {steps} steps: {total / 1000:.1f} ms on the {setting.device}, {sum(row[1] for row in times):,} calls.", "",
        "| µs a step | share | calls a step | what |", "| --- " * 4 + "|",
    ]  # fmt: skip
    for time, count, name in times[:MOST]:
        lines.append(f"| {time / steps:.0f} | {time / total:.1%} | {count / steps:.1f} | {name[:90].replace('|', '/')} |")
    return "\n".join(lines)


def self_times(events: Iterable[Any], on_gpu: bool) -> list[tuple[float, int, str]]:
    """Microseconds, calls and names. On a GPU of kernels alone: the operators that launched them have the same time again."""
    if on_gpu:
        rows = [(one.self_device_time_total, one.count, one.key) for one in events if one.device_type == DeviceType.CUDA]
    else:
        rows = [(one.self_cpu_time_total, one.count, one.key) for one in events]
    return [row for row in rows if row[0]]
