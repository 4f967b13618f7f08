"""An agent whose weights are split over its processes (FSDP2) trains, is saved and goes on as one with whole weights does.

Accelerate splits weights over GPUs only; what it does to them works on any device, so here its choice is taken for it.
"""

import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from corl_core.runs import checkpoints, launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import read
from tests.rank_processes import as_rank, start_ranks

pytestmark = pytest.mark.training
STEPS, HALF = 6, 3
FSDP = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config:
  {fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_state_dict_type: FULL_STATE_DICT,
   fsdp_reshard_after_forward: true, fsdp_cpu_ram_efficient_loading: false}
mixed_precision: 'no'
num_processes: 2
"""


def learn(rank: int, port: int, folder: str, resume_step: int | None, stop_at: int | None) -> None:
    """One rank of agent a, from a checkpoint or the start, to the end or to a stop."""
    as_rank(rank, 2, port)
    from corl_core.training import group, whole
    from corl_core.training.agent import Agent

    run = Run(Path(folder))
    run.agent_path("a").mkdir(parents=True, exist_ok=True)
    os.environ |= group.accelerate_environment(run.config.agent("a"))
    if whole.is_split(2):
        split_on_cpu()
    agent = Agent(run, "a", port=0, resume_step=resume_step, rank=rank)
    agent.stops_at = lambda step: step == stop_at
    agent.run()
    is_split = any(isinstance(weight, torch.distributed.tensor.DTensor) for weight in agent.model.parameters())
    assert is_split == whole.is_split(2), "the placement decides whether weights are split"


def split_on_cpu() -> None:
    """Lets Accelerate take this process for one with a GPU where it chooses between whole and split weights."""
    from accelerate.state import AcceleratorState, PartialState
    from accelerate.utils import DistributedType

    choose = AcceleratorState.__init__

    def choose_split(self, *given, **named):
        if not AcceleratorState._shared_state:
            PartialState(cpu=True).distributed_type = DistributedType.MULTI_GPU
        choose(self, *given, **named)

    AcceleratorState.__init__ = choose_split


def trained(config, folder: Path, *parts: tuple[int | None, int | None]) -> Run:
    """A run whose agent has trained in these parts: from which checkpoint, and to which stop."""
    run = launch.create(config, folder)
    for resume_step, stop_at in parts:
        start_ranks(2, learn, str(run.path), resume_step, stop_at)
    return run


def measured(run: Run) -> list[dict]:
    """What the journal says of steps and evaluations, without times."""
    lines = [line for line in read(run.journal_paths()["a"]) if line["event"] in ("step", "eval")]
    return [{key: value for key, value in line["metrics"].items() if not key.endswith(("time_s", "wait_s"))} for line in lines]


def weights(run: Run) -> dict[str, torch.Tensor]:
    return load_file(run.agent_path("a") / "model" / "model.safetensors")


@pytest.mark.parametrize(("method", "lora"), [("ttrl", ""), ("co_rewarding_2", ""), ("ttrl", ", lora: {r: 4}")])
def test_split_weights_learn_what_whole_ones_learn_and_go_on_from_a_checkpoint(method, lora, small_run, base_models, tmp_path):
    if lora:
        pytest.importorskip("peft")
    (tmp_path / "fsdp.yaml").write_text(FSDP)

    def config(more: str):
        agents = f"[{{name: a, model: {base_models['llama']}, placement: {{processes: 2{more}}}{lora}}}]"
        fields = {"grpo__max_steps": STEPS, "checkpoints__every_steps": HALF, "eval__every_steps": HALF}
        return small_run(method, agents=agents, **fields)

    ddp = trained(config(""), tmp_path / "ddp", (None, None))
    fsdp = config(f", accelerate_config: {tmp_path / 'fsdp.yaml'}")
    split = trained(fsdp, tmp_path / "fsdp", (None, None))
    for ours, theirs in zip(measured(split), measured(ddp), strict=True):
        assert ours == pytest.approx(theirs, abs=1e-3)
    assert weights(split).keys() == weights(ddp).keys()
    for name, weight in weights(ddp).items():
        torch.testing.assert_close(weights(split)[name], weight, atol=1e-4, rtol=1e-3, msg=name)

    stopped = trained(fsdp, tmp_path / "stopped", (None, HALF))
    assert checkpoints.complete(stopped.agent_path("a")) == [HALF]
    start_ranks(2, learn, str(stopped.path), HALF, None)
    assert measured(stopped) == measured(split)
    assert all(torch.equal(weight, weights(split)[name]) for name, weight in weights(stopped).items()), "bit for bit"
