"""Layers compiled for the update: the same weights after it, sampled from as they are written, and only where it pays.

`aot_eager` takes torch.compile's whole way but for the code that it would generate in the end, which needs a compiler.
"""

import copy
import random
from types import SimpleNamespace

import pytest
import torch
from datasets import Dataset
from sampling_models import grouped
from torch._dynamo.backends.common import aot_autograd
from torch._dynamo.backends.registry import lookup_backend
from transformers import AutoModelForCausalLM, AutoTokenizer

from corl_core import config_sections
from corl_core.bench.rollouts import Ids
from corl_core.config_sections import GRPOSettings
from corl_core.training import adapters, compiled
from corl_core.training.rollout import Sampler
from corl_core.training.sampling import lean
from corl_core.training.trainer import CohortTrainer, grpo_arguments


@pytest.fixture(autouse=True)
def anew():
    """torch remembers of a code what it has compiled, and that it could not, for the whole process."""
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def weights_after(base, config, folder, backend: str | None) -> torch.Tensor:
    model = AutoModelForCausalLM.from_pretrained(base)
    arguments = grpo_arguments(config, folder, seed=3, use_cpu=True)
    arguments.optim = "sgd"
    trainer = CohortTrainer(
        model=model,
        processing_class=AutoTokenizer.from_pretrained(base, padding_side="left"),
        reward_funcs=lambda completion_ids, **_: [float(index % 3 == 0) for index in range(len(completion_ids))],
        args=arguments,
        train_dataset=Dataset.from_dict({"prompt": [f"{n}+{n + 7}=" for n in range(11, 11 + 3 * 4)]}),
    )
    made: list[bool] = []
    if backend:
        own = lookup_backend(backend)
        layers = compiled.compile_layers(model, lambda graph, inputs: made.append(True) or own(graph, inputs))
        assert layers == model.config.num_hidden_layers
    trainer.train()
    assert bool(made) == bool(backend)
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


@pytest.mark.training
@pytest.mark.parametrize("checkpointing", [False, True])
def test_compiled_layers_learn_the_same(checkpointing, base_models, small_run, tmp_path):
    config = small_run(grpo__max_steps=3, grpo__learning_rate=0.01, grpo__gradient_checkpointing=checkpointing)
    base = base_models["llama"]
    start = torch.cat([p.detach().flatten() for p in AutoModelForCausalLM.from_pretrained(base).parameters()])
    plain, fast = (weights_after(base, config, tmp_path, backend) for backend in (None, "aot_eager"))
    moved = (plain - start).abs().max()
    assert moved > 1e-4 and (plain - fast).abs().max() < 1e-3 * moved


@pytest.mark.parametrize("path", ["static", "shared"])
def test_sampling_runs_the_layers_as_they_are_written(path):
    made: list[bool] = []
    model, prompts = grouped(), ["3 4 5", "6 7"]
    wanted = Sampler(copy.deepcopy(model), Ids(), 8, 1.0, path=path).sample(prompts, 4, seed=1)
    compiled.compile_layers(model, lambda graph, inputs: made.append(True) or graph.forward)
    assert Sampler(model, Ids(), 8, 1.0, path=path).sample(prompts, 4, seed=1) == wanted
    assert not made
    model(torch.tensor([[3, 4, 5]]))
    assert made, "the update has them again"


def refuse(graph, inputs):
    raise RuntimeError("no code for this")


@pytest.mark.parametrize("passes", ["forward", "backward"])
def test_what_cannot_be_compiled_runs_as_it_is_written(passes):
    def keep(graph, inputs):
        return graph.forward

    model = grouped().train()
    plain = copy.deepcopy(model)
    compilers = {"forward": (refuse, keep), "backward": (keep, refuse)}[passes]
    compiled.compile_layers(model, aot_autograd(fw_compiler=compilers[0], bw_compiler=compilers[1]))
    for length in (3, 4):
        ids = torch.arange(3, 3 + length)[None]
        for one in (model, plain):
            one(input_ids=ids, use_cache=False).logits.sum().backward()
    for got, wanted in zip(model.parameters(), plain.parameters(), strict=True):
        assert torch.allclose(got.grad, wanted.grad, atol=1e-5)


def test_no_processes_compile_for_an_agent():
    """A stop sends SIGTERM to the agent's whole session: they would end, and the agent wait for them."""
    compiled.compile_layers(grouped())
    assert torch._inductor.config.compile_threads == 1


def test_layers_are_compiled_once_for_all_sizes():
    """Rows and lengths differ at every step. Another code is for a single row, one for padding, one for no gradients."""
    made, kinds = [], [None]

    def note(graph, inputs):
        made.append(kinds[-1])
        return graph.forward

    model, draw = grouped().train(), random.Random(0)
    compiled.compile_layers(model, note)
    for _ in range(40):
        rows, is_padded, learns = draw.randint(1, 15), draw.random() < 0.5, draw.random() < 0.8
        kinds.append((rows == 1, is_padded, learns))
        ids = torch.randint(3, 20, (rows, draw.randint(8, 24)))
        mask = torch.ones_like(ids)
        mask[0, : 2 * is_padded] = 0
        with torch.set_grad_enabled(learns):
            model(input_ids=ids, attention_mask=mask, use_cache=False)
    assert len(set(kinds[1:])) > 5 and 4 <= len(made) == len(set(made)) < compiled.RECOMPILES


def test_small_functions_are_compiled_for_any_rows_and_for_each_width(monkeypatch):
    """Two models of different heads, each with one token a row and with several: four codes, in which no width is a variable."""
    made = []

    def note(graph, inputs):
        made.append([size for one in inputs if isinstance(one, torch.Tensor) for size in one.shape[1::2]])
        return graph.forward

    function = torch.compile(lean.rotated.__wrapped__, backend=note)
    for _ in range(2):
        for heads, width in ((16, 128), (12, 64)):
            for rows, length in ((3, 1), (128, 1), (40, 1), (16, 91), (5, 33)):
                parts = [torch.randn(rows, num, length, width) for num in (heads, 2, 1, 1)]
                for part in parts:
                    compiled._vary(part, (0, 2), others=False)
                assert torch.allclose(function(*parts)[0], lean.rotated(*parts)[0], atol=1e-5)
    assert len(made) == 4 and all(isinstance(size, int) for sizes in made for size in sizes)


def large(monkeypatch, on_gpu: bool):
    """A model that counts as one, on what says that it is a GPU."""
    monkeypatch.setattr(config_sections, "WORTH_COMPILING", 1)
    monkeypatch.setattr(compiled, "is_triton_available", lambda: True)
    monkeypatch.setattr(torch.nn.Parameter, "is_cuda", on_gpu, raising=False)
    return grouped()


def fitted(model: torch.nn.Module, processes: int = 1, **grpo) -> torch.nn.Module:
    compiled.fit(SimpleNamespace(model=model), GRPOSettings(**grpo), processes)
    return model


def is_compiled(model: torch.nn.Module) -> bool:
    return any(module._compiled_call_impl is not None for module in model.modules())


@pytest.mark.parametrize(
    ("wanted", "on_gpu", "processes", "compiles"),
    [(None, True, 1, True), (None, False, 1, False), (None, True, 2, False), (False, True, 1, False), (True, False, 2, True)],
)
def test_left_to_itself_it_compiles_for_an_agent_of_one_process_on_a_gpu(wanted, on_gpu, processes, compiles, monkeypatch):
    model = large(monkeypatch, on_gpu)
    assert is_compiled(fitted(model, processes, torch_compile=wanted)) == compiles


def test_left_to_itself_it_compiles_no_small_model_and_none_with_frozen_weights(monkeypatch):
    model = large(monkeypatch, on_gpu=True)
    model.model.norm.weight.requires_grad_(False)
    assert not is_compiled(fitted(model))
    monkeypatch.undo()
    monkeypatch.setattr(torch.nn.Parameter, "is_cuda", True, raising=False)
    assert not is_compiled(fitted(grouped()))


def test_the_layers_of_a_model_with_adapters_are_found():
    from corl_core.config_models import LoraSettings

    model = adapters.add(grouped(), LoraSettings(r=4), seed=0)
    assert is_compiled(adapters.plain(fitted(model, torch_compile=True)))
