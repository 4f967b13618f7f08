"""Configuration: presets parse, mistakes are explained, one field can be changed."""

import pytest

from corl_core.config import PRESETS, ConfigError, RunConfig, load_config, preset_names
from corl_core.config_errors import config_problems


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_parses_and_survives_yaml(name):
    config = load_config(name)
    assert config.preset == name
    assert RunConfig.from_yaml(config.to_yaml()) == config


def test_the_presets_of_the_readme_exist():
    assert {path.stem for path in PRESETS.glob("*.yaml")} >= {
        "demo", "demo-pair", "demo-same-family", "demo-ttrl", "demo-ground-truth", "demo-hurts"
    }  # fmt: skip


def test_the_paper_s_presets_have_the_paper_s_numbers():
    """arXiv 2608.17253, experiments: 128 questions, K = 12, 3,072 tokens, learning rate 3e-6, temperature 1, two epochs."""
    for name in ("qwen2.5-3b-x-llama-3.2-3b", "qwen2.5-7b-x-llama-3.1-8b", "ring-qwen3-1.7b"):
        config = load_config(name)
        grpo = config.grpo
        assert (grpo.questions_per_step, grpo.num_generations, grpo.max_completion_length) == (128, 12, 3072)
        assert (grpo.learning_rate, grpo.temperature, grpo.beta, grpo.loss_type) == (3e-6, 1.0, 0.0, "bnpo")
        assert grpo.max_steps == 2 * 8_500 // 128 + 1  # 132.8 batches
        assert grpo.warmup_steps == round(0.03 * grpo.max_steps)
        assert sorted(gpu for agent in config.agents for gpu in agent.placement.gpus) == list(range(8))


def test_presets_for_one_gpu_ask_for_no_other():
    for name in ("small-0.5b-pair", "small-1.5b-pair", "small-1.5b-pair-lora", "qwen2.5-3b-x-llama-3.2-3b-lora"):
        config = load_config(name)
        assert not any(agent.placement.gpus for agent in config.agents)
        assert all((agent.lora is not None) == name.endswith("-lora") for agent in config.agents)


def test_an_unknown_key_names_the_near_miss():
    with pytest.raises(ConfigError, match=r"grpo: unknown key 'learning_rat'; did you mean 'learning_rate'\?"):
        load_config("demo", ["grpo.learning_rat=1"])


def test_an_unknown_preset_names_the_near_miss_and_all_of_them():
    with pytest.raises(ConfigError, match=r"did you mean 'demo-pair'\?.*Presets: demo"):
        load_config("demo-pear")


def test_one_field_is_changed_by_its_dotted_name():
    config = load_config("demo", ["agents.0.model=tiny:qwen2", "grpo.learning_rate=3e-4", "vote.min_share=0.5"])
    assert config.agents[0].model == "tiny:qwen2"
    assert config.grpo.learning_rate == 3e-4 and config.vote.min_share == 0.5


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("grpo.learning_rate", "expected dotted.key=value"),
        ("agents.7.model=tiny:llama", "'7' is not an index of a list of 3"),
        ("seed.x=1", "seed: input should be a valid integer"),
        ("name.x=1", "'name' is a single value"),
        ("grpo.num_generations=1", r"grpo.num_generations: .*greater than or equal to 2 \(got 1\)"),
        ("grpo.max_steps=many", r"grpo.max_steps: .*\(got 'many'\)"),
        ("agents.0.model=tiny:lama", "unknown tiny family"),
        ("agents.0.school=eton", "unknown school"),
        ("agents.0.name=../x", "agents.0.name"),
        ("agents.1.name=llama", "the name 'llama' is used twice"),
        ("ring=[llama, qwen2]", "exactly once"),
        ("method=ttrl", None),
        ("data.prompt_template=hello", "has no {question}"),
        ("data.prompt_template={q}", "is not a format string"),
        ("grpo.gradient_accumulation_steps=3", "must divide"),
        ("checkpoints.every_steps=1", "agents may be 2 steps apart, so at least 3 are needed"),
        ("vote.num_votes=4", "vote.num_votes=4 must be at least grpo.num_generations=8"),
    ],
)
def test_a_mistake_is_explained(override, message):
    if message is None:
        assert load_config("demo", [override]).method == "ttrl"
        return
    with pytest.raises(ConfigError, match=message):
        load_config("demo", [override])


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        # three agents, each one batch of four updates ahead of the next: checkpoints 80 and 84 of the first, 88 of the last
        (["grpo.num_iterations=4", "checkpoints.every_steps=4"], "agents may be 8 steps apart, so at least 3 are needed"),
        (["grpo.warmup_steps=5", "grpo.lr_scheduler_type=constant"], "no warm-up: take 'constant_with_warmup'"),
    ],
)
def test_settings_that_do_not_go_together_are_explained(overrides, message):
    with pytest.raises(ConfigError, match=message):
        load_config("demo", overrides)


def test_corl_needs_two_agents_and_says_what_else_to_do():
    with pytest.raises(ConfigError, match=r"needs at least 2 agents and has 1.*ttrl"):
        load_config("demo", ["agents=[{name: a, model: 'tiny:llama'}]"])


def test_problems_stand_beside_their_fields():
    with pytest.raises(ConfigError) as caught:
        load_config("demo", ["grpo.learning_rate=-1", "eval.num_samples=0"])
    assert set(config_problems(caught.value)) == {"grpo.learning_rate", "eval.num_samples"}


@pytest.mark.parametrize("text", ["- a\n- b\n", "x: [1\n", "!!python/object/apply:os.system ['true']\n", ""])
def test_yaml_that_is_no_configuration_is_an_error(tmp_path, text):
    path = tmp_path / "run.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"run\.yaml"):
        load_config(path)


def test_a_missing_file_is_an_error():
    with pytest.raises(ConfigError, match=r"cannot read 'nowhere\.yaml'"):
        load_config("nowhere.yaml")


def test_the_ring_says_who_hears_whom():
    assert load_config("demo", ["ring=[gpt_neox, qwen2, llama]"]).peers() == {
        "gpt_neox": "llama", "qwen2": "gpt_neox", "llama": "qwen2"
    }  # fmt: skip
    assert set(load_config("demo", ["method=ttrl"]).peers().items()) == {(n, n) for n in ("llama", "qwen2", "gpt_neox")}
    assert load_config("demo", ["method=ground_truth"]).peers() == {}


def test_flat_names_every_field():
    flat = load_config("demo").flat()
    assert flat["grpo.num_generations"] >= 2 and flat["agents.0.model"] == "tiny:llama" and flat["ring"] is None
