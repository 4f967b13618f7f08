"""Settings that an agent has of its own: they stand in place of the cohort's, everywhere, and are checked like them."""

import pandas as pd
import pytest

from corl_core.config import AgentConfig, ConfigError, load_config
from corl_core.data.checks import Lengths, fit
from corl_core.data.preflight import load
from corl_core.runs import launch
from corl_core.runs.journal import read
from corl_core.runs.supervisor import Supervisor
from corl_core.training.trainer import grpo_arguments

OWN = "temperature: 0.5, max_completion_length: 12, learning_rate: 1.0e-5, gradient_accumulation_steps: 2, system_prompt: ''"


def test_an_agent_goes_by_its_own_settings_and_the_others_by_the_cohorts():
    own = ["agents.1.temperature=0.5", "agents.1.prompt_template='Q: {question}'"]
    config = load_config("demo", [*own, "data.system_prompt=Hi."])
    own, other = config.for_agent("qwen2"), config.for_agent("llama")
    assert (own.grpo.temperature, own.data.prompt_template, own.data.system_prompt) == (0.5, "Q: {question}", "Hi.")
    assert other.grpo == config.grpo and other.data == config.data
    assert own.for_agent("qwen2") == own
    assert config.grpo.temperature == 1.0, "the cohort's stay as they were"


def test_an_empty_system_prompt_is_none_at_all():
    config = load_config("demo", ["data.system_prompt=Hi.", "agents.0.system_prompt=''"])
    assert config.for_agent("llama").data.system_prompt == ""


def test_the_trainer_gets_the_agents_own(tmp_path):
    own = ["learning_rate=1e-5", "temperature=0.5", "max_completion_length=12", "gradient_accumulation_steps=2"]
    config = load_config("demo", [f"agents.0.{setting}" for setting in own])
    mine, its = (grpo_arguments(config.for_agent(name), tmp_path, 0, use_cpu=True) for name in ("llama", "qwen2"))
    assert (mine.learning_rate, mine.temperature, mine.max_completion_length) == (1e-5, 0.5, 12)
    assert (mine.gradient_accumulation_steps, mine.per_device_train_batch_size) == (2, 32)  # 64 rollouts in 2 slices
    assert (its.gradient_accumulation_steps, its.per_device_train_batch_size, its.temperature) == (1, 64, 1.0)


def test_a_kl_reference_is_loaded_from_the_pinned_revision(tmp_path):
    config = load_config("demo", ["grpo.beta=0.1"])
    pinned = AgentConfig(name="a", model="org/m", revision="abc")
    arguments = grpo_arguments(config, tmp_path, 0, use_cpu=True, agent=pinned)
    assert arguments.model_init_kwargs == {"use_safetensors": True, "revision": "abc"}
    with pytest.raises(ConfigError, match=r"'b' has gguf_file='m\.gguf' with grpo\.beta=0\.1.*train adapters"):
        load_config("demo", ["grpo.beta=0.1", "agents.1={name: b, model: org/m, gguf_file: m.gguf}"])
    assert grpo_arguments(load_config("demo"), tmp_path, 0, use_cpu=True, agent=pinned).model_init_kwargs is None


def test_the_cosine_ends_at_its_share_of_the_peak(tmp_path):
    config = load_config("demo", ["grpo.lr_scheduler_type=cosine_with_min_lr", "grpo.min_lr_rate=0.25"])
    assert grpo_arguments(config, tmp_path, 0, use_cpu=True).lr_scheduler_kwargs == {"min_lr_rate": 0.25}
    assert not grpo_arguments(load_config("demo"), tmp_path, 0, use_cpu=True).lr_scheduler_kwargs


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("agents.1.gradient_accumulation_steps=3", "'qwen2' has gradient_accumulation_steps=3, which must divide .* = 64"),
        ("agents.1.prompt_template=hello", r"agents\.1\.prompt_template: .*has no \{question\}"),
        ("agents.1.prompt_template={q}", r"agents\.1\.prompt_template: .*is not a format string"),
        ("agents.1.temperature=0", r"agents\.1\.temperature"),
        ("agents.1.temprature=1", "unknown key 'temprature'; did you mean 'temperature'"),
        ("agents.1.gguf_file=m.gguf", "a tiny model is made here"),
        ("agents.1={name: b, model: org/m, gguf_file: ../m.gguf}", r"gguf_file='\.\./m\.gguf'.*inside the repository"),
        ("agents.1={name: b, model: org/m, gguf_file: /etc/passwd}", "inside the repository"),
        ("agents.1={name: b, model: org/m, gguf_file: m.gguf, lora: {load_in_4bit: true}}", "unpacked to be trained"),
    ],
)
def test_a_mistake_names_the_agent_and_the_field(override, message):
    with pytest.raises(ConfigError, match=message):
        load_config("demo", [override])


def test_prompts_must_leave_room_for_the_agents_own_completions():
    """A context of 128 tokens and prompts of 100: room for 24 more, not for 64."""
    config = load_config("demo", ["agents.0.max_completion_length=64"])
    train, _ = load(config)
    lengths = [Lengths(name, [100] * len(train.questions), 128) for name in ("llama", "qwen2")]
    assert [finding.level for finding in fit(config, train, lengths)] == ["refusal", "ok"]


@pytest.mark.training
def test_agents_of_different_settings_train_in_one_ring(small_run, base_models, tmp_path):
    plain = "prompt_template: '{question}', chat_template: never"
    agents = f"[{{name: a, model: {base_models['llama']}}}, {{name: b, model: {base_models['qwen2']}, {plain}, {OWN}}}]"
    run = launch.create(small_run(agents=agents, grpo__max_completion_length=24, eval__num_questions=0), tmp_path)
    status = Supervisor(run).run()
    assert (status.state, status.reason) == ("finished", ""), run.log_tail("a") + run.log_tail("b")
    steps = {name: [line for line in read(run.journal_paths()[name]) if line["event"] == "step"] for name in "ab"}
    rates = {name: lines[0]["metrics"]["learning_rate"] for name, lines in steps.items()}
    assert rates["a"] == pytest.approx(1e-3) and rates["b"] == pytest.approx(1e-5)
    longest = {name: max(line["metrics"]["completions/mean_length"] for line in lines) for name, lines in steps.items()}
    assert longest["b"] <= 12 < longest["a"]
    entropy = {name: lines[0]["metrics"]["entropy"] for name, lines in steps.items()}
    assert entropy["b"] < entropy["a"], "a lower temperature makes sharper distributions"
    asked = {name: list(pd.read_parquet(run.rollout_files(name)[0])["question_id"].unique()) for name in "ab"}
    assert asked["a"] == asked["b"]
