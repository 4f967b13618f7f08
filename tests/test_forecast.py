"""The forecast: parameters against real modules, placement, hours, remedies, the command (memory: `test_forecast_memory.py`)."""

import json
from dataclasses import replace

import pytest
import torch
from small_shape import SMALL, agent

from corl_core.bench import shapes
from corl_core.cli import main
from corl_core.config import ConfigError, RunConfig, load_config
from corl_core.config_models import PlacementSettings
from corl_core.forecast import cards, report
from corl_core.forecast import probe as probing
from corl_core.forecast.cards import Gpu, Rates
from corl_core.forecast.device import device_for, memory_size
from corl_core.forecast.duration import decode_s, forward_flops
from corl_core.forecast.memory import GIB, Holding
from corl_core.forecast.models import known, shape_of
from corl_core.forecast.plan import EVAL_ROWS, Device, forecast, held_out_work, work_of
from corl_core.forecast.probe import Probe
from corl_core.forecast.remedies import remedies
from corl_core.forecast.shape import from_config
from corl_core.tiny_names import FAMILIES


def of(model: str, **grpo) -> RunConfig:
    """Two agents of that model."""
    agents = [{"name": name, "model": model} for name in ("a", "b")]
    settings = {"questions_per_step": 16, "num_generations": 8, "max_completion_length": 256, "bf16": True} | grpo
    return RunConfig.model_validate({"name": "x", "agents": agents, "grpo": settings, "eval": {"num_questions": 0}})


def gpus(number: int, gib: float = 80) -> Device:
    made = tuple(Gpu(str(index), "NVIDIA H100 80GB HBM3", gib * GIB) for index in range(number))
    return Device(made, {2: cards.card_rates("H100", 2), 4: cards.card_rates("H100", 4)})


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tiny_models_parameters_are_those_of_the_model(family):
    from corl_core.training.families import make_model

    model = make_model(family, 64, 0)
    shape = shape_of(agent(f"tiny:{family}"))
    assert shape.parameters == sum(p.numel() for p in model.parameters())
    assert shape.layers == model.config.num_hidden_layers and shape.vocab == model.config.vocab_size


@pytest.mark.parametrize("family", FAMILIES)
def test_a_saved_folder_says_the_same_as_the_name(family, tmp_path):
    from corl_core.training.families import make_model

    make_model(family, 32, 0).config.save_pretrained(tmp_path)
    assert shape_of(agent(str(tmp_path))) == shape_of(agent(f"tiny:{family}:32"))


@pytest.mark.parametrize("name", shapes.SHAPES)
def test_known_shapes_have_the_parameters_of_the_models(name):
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(shapes.make_config(name))
    assert from_config(shapes.SHAPES[name], name).parameters == sum(p.numel() for p in model.parameters())


def test_a_hub_id_that_is_not_here_is_known_by_its_name_or_refused():
    assert known("Qwen/Qwen2.5-3B-Instruct") == "qwen2.5-3b"
    assert known("meta-llama/Meta-Llama-3.1-8B-Instruct") == "llama-3.1-8b"
    assert known("Qwen/Qwen2.5-Math-1.5B") == "qwen2.5-1.5b"
    assert known("Qwen/Qwen2.5-32B") is None
    with pytest.raises(ConfigError, match="the config of model='org/unheard-of' is not on this machine"):
        shape_of(agent("org/unheard-of"))


def test_a_downloaded_models_config_is_read_from_the_hubs_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--org--thing"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc")
    (repository / "snapshots" / "abc").mkdir(parents=True)
    (repository / "snapshots" / "abc" / "config.json").write_text(json.dumps(shapes.SHAPES["qwen3-1.7b"]))
    assert shape_of(agent("org/thing")) == shape_of(agent("Qwen/Qwen3-1.7B"))


@pytest.mark.parametrize(
    ("config", "said"),
    [({"hidden_size": 8, "num_attention_heads": 2, "vocab_size": 9}, "no num_hidden_layers"),
     (SMALL | {"num_local_experts": 8}, "mixture of experts"), ([], "holds no settings")],
)  # fmt: skip
def test_a_config_that_says_too_little_is_refused_by_name(config, said, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=said):
        shape_of(agent(str(tmp_path)))


def test_adapters_have_rank_times_inputs_and_outputs():
    shape = from_config(SMALL, "small")
    # 4 layers × rank 8 × (q 256+256, v 256+64)
    assert shape.adapter_parameters(8, ["q_proj", "v_proj"]) == 4 * 8 * (512 + 320)
    assert shape.adapter_parameters(8, "all-linear") == 4 * 8 * (512 + 320 + 320 + 512 + 3 * 1280)


def test_evaluation_counts_where_it_samples_more_at_once():
    from corl_core.training import evaluate

    assert EVAL_ROWS == evaluate.ROWS_AT_ONCE
    config = load_config("demo")  # 8 × 8 completions a step, 252 × 8 in an evaluation, 512 at once
    assert held_out_work(config, work_of(config, 1, 24)).sampled_rows == 512
    without = config.model_copy(update={"eval": config.eval.model_copy(update={"num_questions": 0})})
    assert work_of(without, 1, 24).sampled_rows == 64


def test_agents_on_one_gpu_add_up_and_on_two_do_not():
    config = of("Qwen/Qwen2.5-0.5B")
    one, two = forecast(config, gpus(1), 128), forecast(config, gpus(2), 128)
    assert set(one.needed) == {"0"} and set(two.needed) == {"0", "1"}
    assert one.needed["0"] == pytest.approx(2 * two.needed["0"])
    assert one.step.seconds == pytest.approx(2 * two.step.seconds)


def test_a_run_that_cannot_fit_says_what_would_and_each_remedy_fits():
    config, device = of("Qwen/Qwen2.5-3B"), gpus(2)
    made = forecast(config, device, 128)
    assert not made.fits and set(made.full) == {"0", "1"}
    found = remedies(config, device, 128)
    assert any("checkpoint" in one.words for one in found) and any("LoRA" in one.words for one in found)
    assert all(one.needed <= 80 * GIB for one in found)
    text = " ".join(report.problems(made, found))
    assert "'a' needs" in text and "GPU 0, which has 80.0 GiB" in text and "It would fit with" in text


def test_layers_that_keep_too_much_are_all_checkpointed():
    config, device = of("Qwen/Qwen2.5-1.5B", gradient_checkpointing=True, checkpointed_layers=4), gpus(2, 60)
    whole = config.model_copy(update={"grpo": config.grpo.model_copy(update={"checkpointed_layers": None})})
    part, all_layers = (forecast(each, device, 128) for each in (config, whole))
    assert not part.fits and all_layers.fits and all_layers.step.seconds > part.step.seconds
    (one,) = [one for one in remedies(config, device, 128) if one.words == "checkpoint gradients"]
    assert "grpo.checkpointed_layers=null" in one.settings


def test_the_first_slicing_that_fits_is_named_and_it_is_the_coarsest():
    config, device = of("Qwen/Qwen2.5-0.5B"), gpus(2, 30)
    found = next(one for one in remedies(config, device, 128) if one.words.startswith("slice"))
    slices = int(found.settings.split("=")[1])
    coarser = config.model_copy(update={"grpo": config.grpo.model_copy(update={"gradient_accumulation_steps": slices // 2})})
    assert not forecast(coarser, device, 128).fits


def test_what_fits_has_no_problem_and_hopeless_runs_have_no_remedy():
    assert report.problems(forecast(of("tiny:llama"), gpus(1), 24), []) == []
    assert remedies(of("meta-llama/Llama-3.1-8B"), gpus(1, 1), 128) == []


def test_a_decode_step_reads_the_weights_or_waits_for_its_kernels():
    shape = from_config(shapes.SHAPES["qwen2.5-3b"], "3b")
    rates = Rates("made up", flops=1e18, bytes=1e12, layer_s=1e-6, known_from="")
    matrices = 2_774_532_096 + 151_936 * 2048  # 36 layers of 77,070,336, and the head
    # 2 bytes each at 1e12 bytes/s, one row without a cache; its logits, three passes of 4 bytes at 1e12 bytes/s
    assert decode_s(shape, Holding(2, 2), rates, 1, 0) == pytest.approx((2 * matrices + 12 * 151_936) / 1e12)
    slow = replace(rates, layer_s=1e-3)
    assert decode_s(shape, Holding(2, 2), slow, 1, 0) == pytest.approx(36e-3, rel=1e-3)
    assert forward_flops(shape, 10, 0) == 20 * 2_774_532_096


def test_hours_count_every_evaluation_and_share_is_of_all_time():
    config = load_config("demo")
    made = forecast(config, Device((), {4: Rates("x", 1e9, 1e9, 0, "")}, 1e12, 8), characters=8)
    assert made.evaluations == 13  # before step 0 and after each 50 of 600
    step = made.step
    assert made.hours * 3600 == pytest.approx(600 * step.seconds + 13 * step.evaluation_s)
    assert 0 < made.sampling_share < 1


def test_sizes_and_cards_are_read_or_refused():
    assert memory_size("80GiB") == 80 * GIB and memory_size("80 gb") == 80e9 and memory_size("81559MiB") == 81559 * 2**20
    for text in ("80", "GiB", "-1GiB", "0GiB", "80 parsecs"):
        with pytest.raises(ConfigError, match="a size with its unit"):
            memory_size(text)
    assert cards.card("NVIDIA H200")[0] == "H200" and cards.card("4090")[0] == "RTX 4090"
    assert cards.card("NVIDIA H100 80GB HBM3")[0] == "H100" and cards.card("NVIDIA H100 PCIe")[0] == "H100 PCIe"
    assert cards.card("") is None and cards.card("Voodoo 2") is None
    with pytest.raises(ConfigError, match="no known card"):
        device_for(load_config("demo"), card="Voodoo 2")


def test_nvidias_table_is_read():
    said = "0, NVIDIA H200, 143771, 4, 0, 580.159.03\n1, NVIDIA H200, [N/A], 4, 0, 580.159.03\n"
    assert cards.parse_smi(said) == {"0": ("NVIDIA H200", 143771 * 2**20, 4 * 2**20)}


def test_the_command_prints_a_table_and_json(capsys):
    assert main(["forecast", "demo"]) == 0
    table = capsys.readouterr().out
    assert "| parameters | 110 k | 111 k | 104 k |" in table and "this CPU, measured" in table
    assert main(["forecast", "demo", "--json", "--card", "H200"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fits"] and [one["name"] for one in found["agents"]] == ["llama", "qwen2", "gpt_neox"]


def test_the_command_refuses_what_cannot_fit(capsys, tmp_path):
    path = tmp_path / "run.yaml"
    path.write_text(of("Qwen/Qwen2.5-3B").to_yaml())
    assert main(["forecast", str(path), "--gpu-memory", "40GiB"]) == 1
    assert "which has 40.0 GiB" in capsys.readouterr().err
    assert main(["forecast", str(path), "--gpu-memory", "forty"]) == 2
    assert main(["forecast", str(path), "--set", "agents.0.model=org/unheard-of"]) == 2
    assert "not on this machine" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.01, "36 s"), (0.5, "30 min"), (5.25, "5.2 h"), (71.9, "71.9 h"), (223.0, "9.3 days"), (166_464.0, "6,936 days")],
)
def test_a_time_is_told_as_precisely_as_it_is_of_use(value, words):
    assert report.hours(value) == words


@pytest.mark.parametrize("preset", ["qwen2.5-3b-x-llama-3.2-3b", "qwen2.5-7b-x-llama-3.1-8b", "ring-qwen3-1.7b"])
def test_evaluating_takes_time_and_memory_and_never_saves_any(preset):
    device = Device(tuple(Gpu(str(n), "H200", 140 * GIB) for n in range(8)), {2: cards.card_rates("H200", 2)})
    found = [forecast(load_config(preset, [f"eval.num_questions={number}"]), device) for number in (0, 50, 500)]
    assert found[0].hours < found[1].hours < found[2].hours
    assert found[0].step.seconds == pytest.approx(found[2].step.seconds)  # a step of training is what it is
    for without, with_it in zip(found[0].agents, found[2].agents, strict=True):
        assert without.work == with_it.work and without.memory.peak <= with_it.memory.peak


@pytest.mark.parametrize("preset", ["qwen2.5-3b-x-llama-3.2-3b", "ring-qwen3-1.7b"])
def test_the_papers_pairs_fit_the_eight_gpus_of_80_gb_that_their_presets_name(preset):
    sheet = cards.CARDS["H100"]
    device = Device(tuple(Gpu(str(n), "H100", sheet.memory) for n in range(8)), {2: cards.card_rates("H100", 2)})
    assert forecast(load_config(preset), device).fits


def test_vllm_that_takes_too_much_may_take_less_or_be_left_out():
    config = load_config("small-1.5b-pair", ["rollouts.backend=vllm", "rollouts.vllm_gpu_memory_utilization=0.6", "device=cuda"])
    device = Device((Gpu("0", "H200", 140 * GIB),), {2: cards.card_rates("H200", 2)})
    agents = [agent.model_copy(update={"placement": PlacementSettings()}) for agent in config.agents]
    config = config.model_copy(update={"agents": agents})
    words = [one.words for one in remedies(config, device)]
    assert any(text.startswith("a share of 0.") for text in words) and "sample without vLLM" in words


def test_what_a_name_means():
    for asked, key in (("A100 80GB", "A100 80GB"), ("NVIDIA A100 80GB PCIe", "A100 80GB"), ("A100-80GB-PCIe", "A100 80GB"),
                       ("NVIDIA A100-SXM4-80GB", "A100-SXM4-80GB"), ("a100", "A100"), ("4090", "RTX 4090")):  # fmt: skip
        assert cards.card(asked)[0] == key
    assert cards.card("0") is None and cards.card("00") is None and cards.card("") is None
    assert known("CohereLabs/tiny-aya-global") is None and known("tiny") is None
    assert known("SmolLM2-135M-Instruct.Q4_1.gguf") == "smollm2-135m"


@pytest.mark.parametrize(
    "arguments", [["--gpus", "0"], ["--gpus", "-1"], ["--prompt-tokens", "0"], ["--probe-steps", "0"], ["--probe-steps", "x"]]
)
def test_numbers_that_mean_nothing_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["forecast", "demo", *arguments])
    assert caught.value.code == 2 and "is not a whole number of at least 1" in capsys.readouterr().err


def test_what_is_not_forecast_is_measured_where_that_is_asked_for(tmp_path, capsys, monkeypatch):
    (tmp_path / "config.json").write_text('{"model_type": "mixtral", "num_local_experts": 8, "num_hidden_layers": 2}')
    asked = ["forecast", "small-1.5b-pair", "--set", f"agents.0.model={tmp_path}", "--set", "agents.1.model=tiny:llama"]
    assert main(asked) == 2 and "--probe measures it" in capsys.readouterr().err
    made = Probe(4, 1.0, {"sampling": 0.5, "grading": 0.0, "exchange": 0.0, "update": 0.5}, 9.0, 10, 0, 0.0, {})
    monkeypatch.setattr(probing, "probe", lambda config, steps: made)
    assert main([*asked, "--probe"]) == 0
    said = capsys.readouterr()
    assert "measured over 4 steps here" in said.out and "not forecast: " in said.err
