"""Remedies as they are printed, placement by a file, and what a probe leaves behind."""

import os
import shlex
from pathlib import Path

import pytest

from corl_core.config import ConfigError, RunConfig, load_config, preset_names
from corl_core.config_errors import with_override
from corl_core.forecast import cards, probe
from corl_core.forecast.cards import Gpu
from corl_core.forecast.memory import GIB
from corl_core.forecast.plan import Device, forecast
from corl_core.forecast.remedies import arguments, remedies
from corl_core.forecast.split import is_split
from corl_core.runs.folder import Status
from corl_core.runs.launch import LaunchError
from corl_core.tracking.store import tracking_uri


def gpus(number: int, gib: float) -> Device:
    made = tuple(Gpu(str(index), "NVIDIA H100 80GB HBM3", gib * GIB) for index in range(number))
    return Device(made, {2: cards.card_rates("H100", 2), 4: cards.card_rates("H100", 4)})


def run(model: str = "Qwen/Qwen2.5-3B", num_agents: int = 2, own: dict | None = None, **grpo) -> RunConfig:
    agents = [{"name": name, "model": model} | (own or {}) for name in "abc"[:num_agents]]
    settings = {"questions_per_step": 16, "num_generations": 8, "max_completion_length": 256} | grpo
    return RunConfig.model_validate({"name": "x", "agents": agents, "grpo": settings, "eval": {"num_questions": 32}})


def applied(config: RunConfig, printed: str) -> RunConfig:
    """What `launch FILE` and these words behind it would start."""
    words, values = shlex.split(printed), config.model_dump(exclude_defaults=True)
    assert words[::2] == ["--set"] * (len(words) // 2)
    for word in words[1::2]:
        values = with_override(values, word)
    return RunConfig.model_validate(values)


OWN = {"gradient_accumulation_steps": 1, "max_completion_length": 4096}


@pytest.mark.parametrize(
    ("config", "num_gpus", "gib"),
    [
        (run(), 2, 80),
        (run(), 2, 48),
        (run(questions_per_step=32, max_completion_length=4096), 2, 60),
        (run("Qwen/Qwen2.5-0.5B", own=OWN, gradient_accumulation_steps=2), 2, 16),
        (run("Qwen/Qwen2.5-0.5B", own=OWN | {"lora": {"r": 64}}), 1, 16),
        (run("Qwen/Qwen2.5-1.5B", own={"placement": {"gpus": [0, 1]}}), 2, 48),
    ],
)  # fmt: skip
def test_every_remedy_applied_as_it_is_printed_fits_with_the_bytes_that_it_promises(config, num_gpus, gib):
    device = gpus(num_gpus, gib)
    assert not forecast(config, device, 128).fits
    found = remedies(config, device, 128)
    assert found
    for one in found:
        made = forecast(applied(config, one.settings), gpus(one.gpus, gib), 128)
        assert made.fits and max(made.needed.values()) == one.needed, one


def test_what_was_changed_is_printed_and_nothing_else():
    before = {"grpo": {"bf16": False, "beta": 0.0}, "agents": [{"name": "a", "lora": None}, {"name": "b", "lora": {"r": 8}}]}
    after = {"grpo": {"bf16": True, "beta": 0.0}, "agents": [{"name": "a", "lora": {"r": 4}}, {"name": "b", "lora": {"r": 9}}]}
    assert shlex.split(arguments(before, after)) == [
        "--set", "grpo.bf16=true", "--set", 'agents.0.lora={"r": 4}', "--set", "agents.1.lora.r=9",
    ]  # fmt: skip
    assert arguments(before, before) == ""


@pytest.mark.parametrize(
    ("file", "split"),
    [
        ("distributed_type: FSDP", True),
        ("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 3}", True),
        ("distributed_type: DEEPSPEED\ndeepspeed_config: {zero_stage: 2}", False),
        ("distributed_type: MULTI_GPU", False),
    ],
)
def test_a_file_says_whether_weights_are_split_whatever_parallel_is(file, split, tmp_path):
    path = tmp_path / "accelerate.yaml"
    path.write_text(file)
    for parallel in ("ddp", "fsdp"):
        config = run(own={"placement": {"processes": 2, "parallel": parallel, "accelerate_config": str(path)}})
        (holding, _) = (made.holding for made in forecast(config, gpus(4, 80), 128).agents)
        assert is_split(config.agents[0]) == holding.sharded == split
    path.write_text("just words")
    with pytest.raises(ConfigError, match=r"accelerate\.yaml' holds str, not 'key: value' lines"):
        forecast(config, gpus(4, 80), 128)
    path.unlink()
    with pytest.raises(ConfigError, match=r"accelerate\.yaml' cannot be read: No such file"):
        forecast(config, gpus(4, 80), 128)


def test_a_probe_leaves_no_run_in_the_tracking_server(monkeypatch):
    asked = []

    class Supervisor:
        def __init__(self, run):
            self.folder = run.path.parent

        def run(self) -> Status:
            asked.append((tracking_uri(self.folder), self.folder))
            return Status(state="failed", created=0.0, reason="enough")

    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://127.0.0.1:9")
    monkeypatch.setattr("corl_core.runs.supervisor.Supervisor", Supervisor)
    with pytest.raises(LaunchError, match="the probe failed: enough"):
        probe.probe(load_config("demo", ["device=cpu"]), 1)
    ((uri, folder),) = asked
    assert uri == f"sqlite:///{Path(folder).resolve()}/mlflow.db" and not folder.exists()
    assert os.environ["MLFLOW_TRACKING_URI"] == "http://127.0.0.1:9"


PROMISED = {  # what a preset says of itself: GPUs, GB
    "qwen2.5-3b-x-llama-3.2-3b": (8, 80), "qwen2.5-3b-x-llama-3.2-3b-lora": (1, 80), "qwen2.5-7b-x-llama-3.1-8b": (8, 141),
    "ring-qwen3-1.7b": (8, 80), "small-0.5b-pair": (1, 80), "small-1.5b-pair": (1, 80), "small-1.5b-pair-lora": (1, 80),
}  # fmt: skip


def test_every_preset_of_real_models_fits_the_gpus_that_it_names():
    assert set(PROMISED) == {name for name in preset_names() if not name.startswith("demo")}
    for name, (num_gpus, size) in PROMISED.items():
        found = forecast(load_config(name), gpus(num_gpus, 80 if size == 80 else 140.4), 256)
        assert found.fits, (name, {gpu: needed / GIB for gpu, needed in found.full.items()})
