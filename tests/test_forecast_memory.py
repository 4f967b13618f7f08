"""The forecast's bytes: against real modules, what compiled layers keep, and a real step of the decoder and the trainer."""

import math
from dataclasses import replace

import pytest
import torch
from small_shape import SMALL, agent
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition

from corl_core.bench import shapes
from corl_core.bench.live_bytes import LiveBytes
from corl_core.bench.memory import Setting
from corl_core.forecast.activations import Precision, layer_bytes
from corl_core.forecast.memory import GIB, Holding, Work, cache_bytes, memory
from corl_core.forecast.models import shape_of
from corl_core.forecast.shape import from_config
from corl_core.training import compiled
from corl_core.training.sampling import joined

HOW = [
    {}, {"checkpointing": False}, {"bfloat16_weights": True, "slices": 2}, {"checkpointed_layers": 1}, {"checkpointed_layers": 3},
]  # fmt: skip


@pytest.fixture(autouse=True)
def anew():
    """torch remembers of a code what it has compiled, and that it could not, for the whole process."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def as_met(size: int | torch.SymInt) -> int:
    """What a size was when the layer was compiled, for all sizes."""
    return size if isinstance(size, int) else size.node.hint


def saved_by_a_compiled_layer(dtype: torch.dtype, length: int) -> float:
    """Bytes a token that torch's partitioner, which the compiler on a GPU has too, hands from the forward pass to the backward
    pass; without the layer's output, its input and the weights' casts."""
    model, found = shapes.make_model("small", "cpu", dtype).train(), []

    def forward(graph, inputs):
        outputs = next(iter(reversed(graph.graph.nodes))).args[0]
        given = {node for node in graph.graph.nodes if node.op == "placeholder"}
        kept = [node.meta["val"] for node in outputs[1:] if node is not None and node not in given]
        sizes = [([as_met(size) for size in one.shape], one.itemsize) for one in kept if isinstance(one, torch.Tensor)]
        found.append(sum(math.prod(shape) * size for shape, size in sizes if shape[0] in (2, 2 * length)))
        return graph.forward

    backend = aot_autograd(
        fw_compiler=forward, bw_compiler=lambda graph, inputs: graph.forward, partition_fn=min_cut_rematerialization_partition
    )
    compiled.compile_layers(model, backend)
    ids = torch.randint(3, 60, (2, length))
    mask = torch.ones_like(ids)
    mask[0, :3] = 0
    with torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.float32):
        model(input_ids=ids, attention_mask=mask, use_cache=False).logits.float().sum().backward()
    return found[0] / (2 * length)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_compiled_layer_keeps_what_torchs_partitioner_says(dtype, monkeypatch):
    """On a CPU attention's output is there in two layouts: c Q more."""
    monkeypatch.setitem(shapes.SHAPES, "small", SMALL)
    shape, length = from_config(SMALL, "small"), 64
    precision = Precision(dtype.itemsize, 2, compiled=True)
    wanted = layer_bytes(shape, precision, length) - dtype.itemsize * shape.hidden + 2 * shape.query
    assert saved_by_a_compiled_layer(dtype, length) == pytest.approx(wanted, rel=0.02)


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


@pytest.mark.parametrize("how", HOW, ids=str)
def test_a_real_step_of_the_decoder_and_the_trainer_takes_what_is_forecast(how, monkeypatch):
    from corl_core.bench.memory_step import step

    monkeypatch.setitem(shapes.SHAPES, "small", SMALL)
    setting = Setting("small", 16, completion=56, prompt=8, **how)
    found, made = step(setting, "cpu"), setting.predicted(float("inf"), on_gpu=False)
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
