"""How layers run in the update, compiled or not and checkpointed or not; and what else torch compiles: small functions of a
decode step.

A decoder's layers are one code with different weights, so that code is compiled once and serves all of them, for any rows and
lengths: a step leaves out rows, and prompts differ. Sampling has its own few kernels and its graphs, and wants the layers as they
are written (`as_written`). What torch cannot compile it runs as written, with a warning of its own.
"""

import functools
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import torch
from transformers import PreTrainedModel
from transformers.utils import is_triton_available

from corl_core.config_sections import GRPOSettings
from corl_core.training.sampling.weights import base_of

if TYPE_CHECKING:
    from corl_core.training.trainer import CohortTrainer

P, T = ParamSpec("P"), TypeVar("T")
RECOMPILES = 16  # of one code: with and without padding and gradients, a single row, layers of other shapes
SIZES = {2: (0, 1), 3: (0, 1), 4: (0, 2, 3)}  # of a layer's inputs, by their number of dimensions: rows and positions


def fit(trainer: "CohortTrainer", grpo: GRPOSettings, num_processes: int) -> None:
    """How the update runs the layers of an agent's model, by its settings: which of them as compiled code, and which keep what
    their backward pass needs although others compute it again."""
    model = trainer.model
    parameters = list(model.parameters())
    can_compile = parameters[0].is_cuda and is_triton_available()
    num, trains_all = sum(parameter.numel() for parameter in parameters), all(one.requires_grad for one in parameters)
    if grpo.compiles(can_compile, num, trains_all, num_processes):
        compile_layers(base_of(model))
    if grpo.checkpointed_layers is not None:
        trainer.keeping_layers = layers_of(base_of(model))[grpo.checkpointed_layers :]


def layers_of(model: PreTrainedModel) -> list[torch.nn.Module]:
    """The blocks that transformers never splits over devices, in their order."""
    kinds = set(getattr(model, "_no_split_modules", None) or ())
    return [module for module in model.modules() if type(module).__name__ in kinds]


def compile_layers(model: PreTrainedModel, backend: str = "inductor") -> int:
    """Compiles a model's layers; returns how many. It happens when they are first run. `backend`: torch.compile's."""
    layers = layers_of(model)
    _settle()
    for layer in layers:
        layer.compile(backend=backend)
        layer._compiled_call_impl = _of_any_size(layer._compiled_call_impl)
    return len(layers)


def _of_any_size(call: Callable[P, T]) -> Callable[P, T]:
    """A layer's call, compiled at once for other rows and lengths than its first."""

    @functools.wraps(call)
    def marked(*args: P.args, **kwargs: P.kwargs) -> T:
        for value in (*args, *kwargs.values()):
            for tensor in value if isinstance(value, tuple) else (value,):
                if isinstance(tensor, torch.Tensor):
                    _vary(tensor, SIZES.get(tensor.dim(), ()))
        return call(*args, **kwargs)

    return marked


def _vary(tensor: torch.Tensor, sizes: Collection[int], others: bool = True) -> None:
    """Those of its sizes may be others at the next call; one that is 1 is another code. `others`: whether the rest may turn out
    to vary, too; else each of them is another code."""
    for dim in range(tensor.dim()):
        if dim not in sizes:
            if not others:
                torch._dynamo.mark_static(tensor, dim)
        elif tensor.shape[dim] > 1:
            torch._dynamo.maybe_mark_dynamic(tensor, dim)


@contextmanager
def as_written(model: torch.nn.Module) -> Iterator[None]:
    """Inside, compiled layers run as they are written."""
    calls = {module: call for module in model.modules() if (call := module._compiled_call_impl) is not None}
    for module in calls:
        module._compiled_call_impl = None
    try:
        yield
    finally:
        for module, call in calls.items():
            module._compiled_call_impl = call


def on_gpu(*sizes: int) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """The function as one kernel or few, for tensors on a GPU whose sizes vary in the dimensions `sizes` alone; as it is written
    elsewhere. For elementwise operations: how a sum is split would follow from the first sizes that are met, and with it a
    seed's draws."""

    def decorate(function: Callable[..., T]) -> Callable[..., T]:
        @functools.cache
        def fused() -> Callable[..., T]:
            if not is_triton_available():
                return function
            _settle()
            options = {"combo_kernels": True} if "combo_kernels" in torch._inductor.list_options() else None
            return torch.compile(function, options=options)  # several outputs in one kernel

        @functools.wraps(function)
        def call(*args: torch.Tensor) -> T:
            if not args[0].is_cuda:
                return function(*args)
            made = fused()
            for tensor in args:
                _vary(tensor, sizes, others=False)
            return made(*args)

        return call

    return decorate


def _settle() -> None:
    """What cannot be compiled runs as it is written: the backward pass is compiled with the forward pass, where failing is still
    allowed. And no processes are made to compile in: a stop ends them with the agent's session, and the agent would wait for
    them."""
    import torch._dynamo  # takes a second, and is needed here alone
    import torch._functorch.config
    import torch._inductor.config

    torch._dynamo.config.suppress_errors = True
    torch._dynamo.config.recompile_limit = RECOMPILES
    torch._functorch.config.force_non_lazy_backward_lowering = True
    torch._inductor.config.compile_threads = 1
