"""A run that needs a package that is not installed is refused before it is made, by field and remedy."""

import pytest

from corl_core import extras
from corl_core.config import ConfigError, load_config
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
    "flash_attn": (
        ["agents.0.model=m", "agents.0.attn_implementation=flash_attention_2"],
        "agents: 'llama' has attn_implementation='flash_attention_2', which needs", "'sdpa'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("package", extras.REMEDIES)
def test_a_run_that_could_not_start_is_not_made(package, tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "visible_gpus", lambda: ["0", "1"])
    overrides, field, remedy = ASKED[package]
    config = load_config("demo-pair", overrides)
    monkeypatch.setattr(extras, "lacks", lambda name: name in (package, "kernels"))
    with pytest.raises(extras.MissingPackage, match=f"{field} the package {package}, .*{remedy}"):
        launch.create(config, tmp_path)
    assert not list(tmp_path.iterdir())
    monkeypatch.setattr(extras, "lacks", lambda name: name != package)
    assert launch.create(config, tmp_path).path.is_dir()


def test_files_of_accelerate_are_read_before_a_run_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(launch, "visible_gpus", lambda: ["0", "1"])
    monkeypatch.setattr(extras, "lacks", lambda name: name == "deepspeed")
    path, runs_dir = tmp_path / "a.yaml", tmp_path / "runs"
    for text, found in (
        (None, "accelerate_config='.*a.yaml' cannot be read: No such file"),
        ("a: [", "accelerate_config='.*a.yaml' is not valid YAML"),
        ("distributed_type: DEEPSPEED", "accelerate_config='.*a.yaml', which needs the package deepspeed"),
    ):
        if text:
            path.write_text(text)
        config = load_config("demo-pair", [f"agents.0.placement={{processes: 2, accelerate_config: {path}}}"])
        with pytest.raises(ConfigError, match=found):
            launch.create(config, runs_dir)
    assert not runs_dir.exists()


@pytest.mark.parametrize(
    ("overrides", "found"),
    [
        (["agents.0.model={}/none"], "'llama' has model='.*/none': there is no such folder"),
        (["agents.0.model=m", "agents.0.tokenizer={}/none"], "'llama' has tokenizer='.*/none': there is no such folder"),
        (["agents.0.model={}/m", "agents.0.revision=main"], "revision='main' with model='.*/m', a folder, which has no"),
        (["agents.0.model={}/m", "agents.0.gguf_file=x.gguf"], "'x.gguf', which is not in model='.*/m'; there is y.gguf"),
        (["agents.0.model={}/m", "agents.0.gguf_file=y.gguf", "agents.0.tokenizer={}/m"], None),
        (["agents.0.model=org/name", "agents.0.revision=main", "agents.0.tokenizer=org/other@v1"], None),
        (["agents.0.model={}/none", "launcher=ray"], None),
    ],
)
def test_what_is_not_on_this_machine_is_said_before_a_run_is_made(tmp_path, monkeypatch, overrides, found):
    monkeypatch.setattr(extras, "lacks", lambda _: False)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "y.gguf").touch()
    config = load_config("demo-pair", [text.format(tmp_path) for text in overrides])
    if found is None:
        assert launch.create(config, tmp_path / "runs").path.is_dir()
        return
    with pytest.raises(ConfigError, match=found):
        launch.create(config, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


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
