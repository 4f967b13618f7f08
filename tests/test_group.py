"""How an agent's processes are told to work together, and when the agent's own error is the one that counts."""

import itertools
import multiprocessing
import os
import signal
import time
from multiprocessing import Pipe

import pytest

from corl_core.config import AgentConfig, ConfigError
from corl_core.training import group, process, whole
from corl_core.training.group import Group, accelerate_environment

FSDP = """compute_environment: LOCAL_MACHINE
distributed_type: FSDP
fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP, fsdp_state_dict_type: FULL_STATE_DICT}
mixed_precision: 'no'
num_processes: 8
"""


def agent(**placement) -> AgentConfig:
    return AgentConfig(name="a", model="tiny:llama", placement={"processes": 2} | placement)


@pytest.fixture
def file(tmp_path):
    """A function that writes an `accelerate config` file, and gives its path."""

    def write(more: str = "") -> str:
        path = tmp_path / "accelerate.yaml"
        path.write_text(FSDP + more)
        return str(path)

    return write


def test_an_agent_whose_file_says_fsdp_samples_from_a_whole_copy_of_its_weights(file, monkeypatch):
    for name in whole.SPLIT:
        monkeypatch.delenv(name, raising=False)
    assert not whole.is_split(2)
    for name, value in accelerate_environment(agent(accelerate_config=file())).items():
        monkeypatch.setenv(name, value)
    assert whole.is_split(2) and not whole.is_split(1)
    monkeypatch.setenv("ACCELERATE_USE_FSDP", "false")
    assert not whole.is_split(2)


def test_without_a_file_the_users_own_accelerate_config_is_not_read(file, monkeypatch):
    from accelerate.commands import launch
    from accelerate.commands.config import config_args

    for module in (launch, config_args):
        monkeypatch.setattr(module, "default_config_file", file("gpu_ids: 6,7\n"))
    made = accelerate_environment(agent())
    assert made.get("ACCELERATE_USE_FSDP", "false") == "false" and "CUDA_VISIBLE_DEVICES" not in made


def test_a_files_gpus_do_not_replace_those_of_the_agent_and_other_machines_are_refused(file, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "2,3")
    assert "CUDA_VISIBLE_DEVICES" not in accelerate_environment(agent(accelerate_config=file("gpu_ids: 6,7\n")))
    with pytest.raises(ConfigError, match="num_machines=2, but all processes of an agent are on one machine"):
        accelerate_environment(agent(accelerate_config=file("num_machines: 2\n")))


def test_ranks_listen_on_the_loopback_interface_unless_the_environment_says_otherwise(monkeypatch):
    monkeypatch.setattr(group.socket, "if_nameindex", lambda: [(1, "lo"), (2, "eth0")])
    monkeypatch.setattr(os, "environ", {"NCCL_SOCKET_IFNAME": "eth0"})
    group._talk_inside()
    assert os.environ == {"GLOO_SOCKET_IFNAME": "lo", "NCCL_SOCKET_IFNAME": "eth0"}
    monkeypatch.setattr(group.socket, "if_nameindex", lambda: [(1, "lo0")])
    monkeypatch.setattr(os, "environ", {})
    group._talk_inside()
    assert os.environ == {}


class Killed:
    """A rank that is killed once somebody has looked at it."""

    def __init__(self):
        self.sentinel, there = Pipe()
        there.close()  # so it is ready
        self._codes = itertools.chain([None], itertools.repeat(-signal.SIGKILL))

    @property
    def exitcode(self) -> int | None:
        return next(self._codes)

    def join(self, timeout_s: float = 0.0) -> None:
        pass


@pytest.mark.parametrize("is_ended", [False, True])
def test_a_rank_that_is_killed_because_the_agent_has_failed_is_no_second_reason(is_ended, monkeypatch):
    monkeypatch.setattr(group, "NOTICE_S", 0.3)
    said, ranks = [], Group(agent(), num_threads=1)
    ranks._others = {1: (Killed(), Pipe()[0])}
    ranks.watch(said.append)
    time.sleep(0.05)
    if is_ended:
        ranks.end(leave_s=0.0)
    time.sleep(0.6)
    assert [str(error) for error in said] == ([] if is_ended else ["rank 1 of 2 was killed by SIGKILL"])


def asked_to_save_at_once() -> None:
    """The agent's process, which an alarm asks to save before it has done anything."""

    def setsid() -> None:
        os.kill(os.getpid(), signal.SIGUSR1)
        os._exit(7)

    process.os.setsid = setsid
    process.main(process.Start("nowhere", "a", "127.0.0.1", 0, 0, 0.0, None))


def test_an_agent_that_is_asked_to_save_before_it_can_lives_on():
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["corl_core.training.process"])
    started = context.Process(target=asked_to_save_at_once)
    started.start()
    started.join(60)
    assert started.exitcode == 7


def test_an_agent_started_under_another_launcher_is_no_rank_of_it(monkeypatch):
    """torchrun, Slurm or a library has left its variables behind; Accelerate would wait for the ranks that they promise."""
    for name in (*group.OF_LAUNCHERS, "ACCELERATE_USE_FSDP"):
        monkeypatch.setenv(name, "1")
    Group(AgentConfig(name="a", model="tiny:llama"), num_threads=1).start(lambda *_: None)
    assert not [name for name in os.environ if name in group.OF_LAUNCHERS or name.startswith("ACCELERATE_USE_")]
