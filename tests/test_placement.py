"""Which agent is on which GPU, what the queue makes of it, and what is refused."""

import json
import os

import pytest

from corl_core.config import load_config
from corl_core.config_errors import ConfigError
from corl_core.runs import launch, queue, queue_dispatch
from corl_core.runs.folder import Run
from corl_core.runs.placement import PlacementError, counts, fill, in_words, wishes
from corl_core.runs.queue_dispatch import Dispatcher
from corl_core.runs.queue_slots import Free, Need, Slots, need, place


def config(*overrides: str):
    return load_config("demo-pair", ["device=auto", *overrides])


def filled(gpus: list[str], *overrides: str):
    return fill(wishes(config(*overrides), gpus), dict.fromkeys(gpus, 0))


def test_agents_are_spread_over_the_gpus_and_share_the_only_one():
    assert filled(["0", "1"]) == {"llama": ("0",), "qwen2": ("1",)}
    assert filled(["5"]) == {"llama": ("5",), "qwen2": ("5",)}
    assert filled([]) == {}, "on the CPU"
    assert wishes(config("device=cpu"), ["0"]) == {}


def test_gpus_are_named_by_number_among_those_that_are_visible():
    assert filled(["4", "7"], "agents.0.placement.gpus=[1]") == {"llama": ("7",), "qwen2": ("4",)}
    assert filled(["4", "7"], "agents.0.placement.gpus=[0]", "agents.1.placement.gpus=[0]") == {"llama": ("4",), "qwen2": ("4",)}


def test_the_processes_of_one_agent_are_on_different_gpus():
    assert filled(["0", "1"], "agents.0.placement.processes=2") == {"llama": ("0", "1"), "qwen2": ("0",)}
    assert filled(["0", "1", "2"], "agents.0.placement.gpus=[0, 2]") == {"llama": ("0", "2"), "qwen2": ("1",)}


@pytest.mark.parametrize(
    ("gpus", "override", "says"),
    [
        (["0", "1"], "agents.1.placement.gpus=[2]", "agent 'qwen2': placement.gpus=[2], but the GPUs visible here are 0, 1"),
        ([], "agents.1.placement.gpus=[0]", "no GPU is visible here"),
        (["0"], "agents.0.placement.processes=2", "agent 'llama': placement.processes=2, one GPU each, but"),
    ],
)
def test_gpus_that_are_not_there_are_refused_by_name(gpus, override, says):
    with pytest.raises(PlacementError) as refused:
        wishes(config(override), gpus)
    assert says in str(refused.value)


def test_a_run_that_names_a_gpu_that_is_not_there_is_refused_before_anything_is_written(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    with pytest.raises(PlacementError, match=r"placement.gpus=\[3\]"):
        launch.create(config("agents.0.placement.gpus=[3]"), tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["device=cpu", "agents.0.placement.gpus=[0]"], "'llama' has placement.gpus=[0] with device='cpu'"),
        (["agents.0.placement.node=10.0.0.2"], "node='10.0.0.2' with launcher='local'"),
        (["launcher=ray", "agents.0.placement.gpus=[0]"], "which numbers no GPUs; give ray.resources"),
        (["launcher=ray", "device=cuda"], "ask for GPUs, e.g. {GPU: 1}"),
        (["launcher=ray", "agents.0.placement.processes=2", "ray.resources={GPU: 1}"], "asks for 1 for each agent; ask for"),
        (["ray.address=10.0.0.1:6379"], "use launcher 'ray', or remove it"),
        (["agents.0.placement.parallel=fsdp"], "'fsdp' is for several processes"),
        (["device=cpu", "agents.0.placement.processes=2", "agents.0.placement.parallel=fsdp"], "it needs GPUs; use 'ddp'"),
        (["agents.0.placement.processes=3"], "3 processes × gradient_accumulation_steps=1, which must divide"),
        (["agents.0.placement.gpus=[0, 0]"], "names one twice"),
        # 64 rows on 16 processes: parts of 4 of a group of 8, which draw half of 9 votes each
        (["agents.0.placement.processes=16", "vote.num_votes=9"], "vote.num_votes=9 must then be a multiple of 2"),
    ],
)
def test_what_does_not_go_together_is_an_error_that_says_what_to_do(overrides, says):
    with pytest.raises(ConfigError) as refused:
        config(*overrides)
    assert says in str(refused.value)


def test_several_agents_of_one_process_may_share_a_gpu_of_ray_and_several_processes_have_one_each():
    assert config("launcher=ray", "ray.resources={GPU: 0.5}").ray.resources == {"GPU": 0.5}
    assert config("launcher=ray", "agents.0.placement.processes=2", "ray.resources={GPU: 2}").ray.resources == {"GPU": 2}


def test_in_words():
    assert in_words({"a": ("0",), "b": ("1", "2")}) == "a on GPU 0, b on GPUs 1 and 2"


def test_the_queue_puts_each_agent_on_the_emptiest_gpu_and_waits_where_one_is_full():
    two = need(config(), ["0", "1"])
    free = Free(Slots(gpu=1), ["0", "1"], [])
    assert free.take(two) == Need(places={"llama": ("0",), "qwen2": ("1",)})
    assert free.take(two) is None and free.agents_on == {"0": 1, "1": 1}
    free = Free(Slots(gpu=2), ["0", "1"], [Need(places={"x": ("0",)})])
    assert counts(free.take(two).places) == {"1": 1, "0": 1}  # 1 was the emptiest, then both have one
    assert free.take(two) is None, "GPU 0 is full, and both agents cannot be on 1"


def test_a_run_that_names_a_gpu_waits_for_that_one():
    named = need(config("agents.0.placement.gpus=[0]", "agents.1.placement.gpus=[0]"), ["0", "1"])
    assert Free(Slots(gpu=2), ["0", "1"], [Need(places={"x": ("0",)})]).take(named) is None
    assert Free(Slots(gpu=2), ["0", "1"], [Need(places={"x": ("1",)})]).take(named) == named


def test_more_agents_than_places_start_when_nothing_else_is_there():
    two = need(config(), ["0"])
    assert Free(Slots(gpu=1), ["0"], []).take(two) is not None
    assert Free(Slots(gpu=1), ["0"], [Need(places={"x": ("0",)})]).take(two) is None


def test_processes_and_threads_are_cores_on_the_cpu_and_ray_takes_none():
    assert need(config("agents.0.placement.processes=2", "threads_per_agent=2"), []) == Need(cores=6)
    assert need(config("launcher=ray"), ["0"]) == Need()


def test_what_the_queue_has_chosen_is_what_the_run_sees(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,5")
    run = queue.enqueue_checked([config()], tmp_path)[0]
    started: list[Run] = []
    Dispatcher(tmp_path, started.append).step()
    assert started == [run] and run.places == {"llama": ("2",), "qwen2": ("5",)} and run.gpu == "2,5"
    place(run, {"llama": ("5",), "qwen2": ("5",)})
    assert run.gpu == "5"
    (run.path / "gpu.json").write_text(json.dumps({"llama": ["5"]}))  # not every agent: as if there were none
    assert run.places is None and run.gpu is None


def test_a_run_that_waits_for_gpus_which_are_gone_fails_and_the_queue_goes_on(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    bad, good = queue.enqueue_checked([config("agents.0.placement.gpus=[1]"), config()], tmp_path)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    started: list[Run] = []
    Dispatcher(tmp_path, started.append).step()
    assert started == [good] and bad.status().state == "failed" and "placement.gpus=[1]" in bad.status().reason
    assert queue_dispatch.free(tmp_path).gpus == ["0"]


def test_an_agents_process_sees_its_gpus_alone(monkeypatch):
    from corl_core.training import process

    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    process._see_only(("1", "2"))
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1,2"
    process._see_only(None)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "1,2"
