"""The forecast: parameters and bytes against real modules, activations against a real step, placement, remedies, the command."""

import json
from dataclasses import replace

import pytest
import torch

from corl_core.bench import shapes
from corl_core.bench.live_bytes import LiveBytes
from corl_core.bench.memory import Setting
from corl_core.cli import main
from corl_core.config import AgentConfig, ConfigError, RunConfig, load_config
from corl_core.forecast import cards, report
from corl_core.forecast.cards import Gpu, Rates
from corl_core.forecast.device import device_for, memory_size
from corl_core.forecast.duration import decode_s, forward_flops
from corl_core.forecast.memory import GIB, Holding, Work, cache_bytes, memory
from corl_core.forecast.models import known, shape_of
from corl_core.forecast.plan import EVAL_ROWS, Device, forecast, work_of
from corl_core.forecast.remedies import remedies
from corl_core.forecast.shape import from_config
from corl_core.tiny_names import FAMILIES
from corl_core.training.sampling import joined

SMALL = dict(  # a real architecture, grouped queries and all, small enough to train here
    shapes.SHAPES["qwen2.5-0.5b"], hidden_size=256, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2,
    intermediate_size=1024, vocab_size=64,
)  # fmt: skip


def agent(model: str) -> AgentConfig:
    return AgentConfig(name="a", model=model)


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


def test_the_cache_has_the_bytes_of_the_decoders_cache():
    from transformers import AutoModelForCausalLM

    name = "qwen2.5-0.5b"
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(shapes.make_config(name), dtype=torch.bfloat16)
        out = model.model(input_ids=torch.zeros(3, 7, dtype=torch.long), use_cache=True)
    cache = getattr(out, "cache", None) or out.past_key_values
    bytes_ = sum(layer.keys.nbytes + layer.values.nbytes for layer in cache.layers)
    assert 3 * 7 * cache_bytes(from_config(shapes.SHAPES[name], name), 2) == bytes_


def test_gradients_and_moments_have_the_bytes_of_torchs():
    from corl_core.training.families import make_model

    model = make_model("llama", 64, 0)
    optimizer = torch.optim.AdamW(model.parameters())
    model(input_ids=torch.zeros(1, 4, dtype=torch.long), labels=torch.zeros(1, 4, dtype=torch.long)).loss.backward()
    optimizer.step()
    made = memory(shape_of(agent("tiny:llama")), Holding(4, 4), Work(1, 1, 2, 2, 1, 1))
    assert made.weights == sum(p.nbytes for p in model.parameters())
    assert made.gradients == sum(p.grad.nbytes for p in model.parameters())
    states = [value for state in optimizer.state.values() for name, value in state.items() if name != "step"]
    assert made.optimizer == sum(value.nbytes for value in states)


@pytest.mark.parametrize("how", [{}, {"checkpointing": False}, {"bfloat16_weights": True, "slices": 2}], ids=str)
def test_a_real_step_of_the_decoder_and_the_trainer_takes_what_is_forecast(how, monkeypatch):
    from corl_core.bench.memory_step import step

    monkeypatch.setitem(shapes.SHAPES, "small", SMALL)
    setting = Setting("small", 16, completion=56, prompt=8, **how)
    found, made = step(setting, "cpu"), setting.predicted(float("inf"))
    assert found.phases.keys() == made.phases.keys()
    for phase, size in found.phases.items():
        assert made.phases[phase] == pytest.approx(size, rel=0.1), phase


def test_joined_products_have_the_bytes_of_the_decoders_copies():
    from transformers import AutoModelForCausalLM

    name = "qwen2.5-0.5b"
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(shapes.make_config(name), dtype=torch.bfloat16)
        bytes_ = sum(one.num_bytes for one in joined.find(model))
    shape, work = from_config(shapes.SHAPES[name], name), Work(8, 1, 128, 256, 64, 8)
    plain, copies = Holding(2, 2), Holding(2, 2, joined=True)
    assert memory(shape, copies, work).sampling_copy == bytes_ > 0 == memory(shape, plain, work).sampling_copy
    adapted = replace(copies, lora_rank=8, lora_targets=("v_proj",))
    elsewhere = replace(adapted, lora_targets=("o_proj",))
    assert [memory(shape, each, work).sampling_copy for each in (adapted, elsewhere)] == [0, bytes_]


def test_live_bytes_counts_a_tensor_from_its_making_to_its_end():
    with LiveBytes() as live:
        first = torch.ones(1000)  # 4,000 bytes
        second = first + 1  # 8,000 together
        view = second[:10]  # no new storage
        assert (live.live, live.peak) == (8000, 8000)
        del first, second
        assert live.live == 4000 and view.sum() == 20
        live.reset()
        assert live.peak == live.live


def test_checkpointing_slices_adapters_and_4_bit_each_take_less():
    shape = from_config(shapes.SHAPES["qwen2.5-3b"], "3b")
    work = Work(128, 1, 128, 256, 128, 16)
    full = Holding(4, 2, sampling_copy=True)
    kept = replace(full, checkpointing=True)
    lora = replace(kept, weight=2, lora_rank=16)
    sizes = [memory(shape, holding, work).peak for holding in (full, kept, lora, replace(lora, four_bit=True))]
    assert sizes == sorted(sizes, reverse=True)
    assert memory(shape, kept, replace(work, rows=16, micro_batches=8)).peak < memory(shape, kept, work).peak


def test_by_hand_a_3b_model_holds_16_bytes_a_parameter_and_2_for_the_copy():
    made = memory(from_config(shapes.SHAPES["qwen2.5-3b"], "3b"), Holding(4, 2, sampling_copy=True), Work(1, 1, 1, 1, 1, 1))
    assert made.held + made.gradients - made.cache == pytest.approx(18 * 3_085_938_688, rel=1e-6)


def test_split_over_processes_the_parts_are_divided_and_a_whole_model_samples():
    shape, work = from_config(shapes.SHAPES["qwen2.5-3b"], "3b"), Work(16, 1, 128, 256, 16, 2)
    one, four = memory(shape, Holding(4, 2), work), memory(shape, Holding(4, 2, processes=4, sharded=True), work)
    assert four.weights == one.weights / 4 and four.optimizer == one.optimizer / 4
    assert four.whole == one.weights
    ddp = memory(shape, Holding(4, 2, processes=4), work)
    assert ddp.weights == one.weights and ddp.buckets == one.gradients


def test_a_cache_of_a_fifth_of_the_gpu_stays_during_the_update():
    shape, work = from_config(shapes.SHAPES["qwen2.5-0.5b"], "0.5b"), Work(8, 1, 128, 256, 64, 8)
    small, large = memory(shape, Holding(4, 2), work, GIB), memory(shape, Holding(4, 2), work, 80 * GIB)
    assert not small.keeps_cache and large.keeps_cache
    assert large.phases["update"] - small.phases["update"] == pytest.approx(large.cache)
    assert large.phases["sampling"] == pytest.approx(small.phases["sampling"])


def test_evaluation_counts_where_it_samples_more_at_once():
    from corl_core.training import evaluate

    assert EVAL_ROWS == evaluate.ROWS_AT_ONCE
    config = load_config("demo")  # 8 × 8 completions a step, 252 × 8 in an evaluation, 512 at once
    assert work_of(config, 1, 24).sampled_rows == 512
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
    # 2 bytes each at 1e12 bytes/s, one row without a cache; its logits, ten passes of 4 bytes at 5e12 bytes/s
    assert decode_s(shape, Holding(2, 2), rates, 1, 0) == pytest.approx(2 * matrices / 1e12 + 40 * 151_936 / 5e12)
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
