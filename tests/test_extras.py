"""A run that needs a package that is not installed is refused before it is made, by field and remedy."""

import pytest

from corl_core import extras
from corl_core.config import load_config
from corl_core.runs import launch

ASKED = {
    "vllm": (["rollouts.backend=vllm", "device=cuda"], "rollouts.backend='vllm' needs", "rollouts.backend='auto'"),
    "ray": (["launcher=ray"], "launcher='ray' needs", "launcher 'local'"),
    "gguf": (
        ["agents.1.model=smol", "agents.1.gguf_file=m.gguf"], r"agents: 'qwen2' has gguf_file='m\.gguf', which needs", "pip",
    ),
    "bitsandbytes": (
        ["device=cuda", "agents.0.model=m", "agents.0.lora={r: 4, load_in_4bit: true}"],
        "agents: 'llama' has lora.load_in_4bit=True, which needs", "remove load_in_4bit",
    ),
    "deepspeed": (
        ["device=cuda", "agents.0.placement={gpus: [0, 1], parallel: deepspeed}"],
        "agents: 'llama' has placement.parallel='deepspeed', which needs", "'fsdp'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("package", extras.REMEDIES)
def test_a_run_that_could_not_start_is_not_made(package, tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "visible_gpus", lambda: ["0", "1"])
    overrides, field, remedy = ASKED[package]
    config = load_config("demo-pair", overrides)
    monkeypatch.setattr(extras, "lacks", lambda name: name == package)
    with pytest.raises(extras.MissingPackage, match=f"{field} the package {package}, .*{remedy}"):
        launch.create(config, tmp_path)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(extras, "lacks", lambda name: name != package)
    assert launch.create(config, tmp_path).path.is_dir()


def test_what_agents_on_other_machines_need_is_theirs_to_say(monkeypatch):
    monkeypatch.setattr(extras, "lacks", lambda name: name != "ray")
    extras.check(load_config("demo-pair", ["launcher=ray", "agents.1.model=smol", "agents.1.gguf_file=m.gguf"]))


def test_what_is_installed_is_found():
    assert not extras.lacks("json") and extras.lacks("no_such_package_at_all")


def test_a_gpu_that_is_asked_for_and_not_seen_is_no_cpu(monkeypatch):
    torch = pytest.importorskip("torch")
    from corl_core.training.models import ModelError, pick_device

    for seen in (True, False):
        monkeypatch.setattr(torch.cuda, "is_available", lambda seen=seen: seen)
        assert (pick_device("auto"), pick_device("cpu")) == ("cuda" if seen else "cpu", "cpu")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    with pytest.raises(ModelError, match=r"device='cuda', but torch sees no GPU \(CUDA_VISIBLE_DEVICES=7\); use device 'auto'"):
        pick_device("cuda")
