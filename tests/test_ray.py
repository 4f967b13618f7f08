"""Agents on the nodes of a Ray cluster: two raylets on this machine, with addresses of their own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from corl_core.config import load_config
from corl_core.runs import checkpoints, launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import read

ray = pytest.importorskip("ray", reason="ray is not installed")

from corl_core.runs.launchers.ray import RayError, RayLauncher, check_place, check_places  # noqa: E402
from corl_core.runs.launchers.ray_node import Node, own_folder  # noqa: E402

SECOND = "127.0.0.2"
NODES = [
    {"NodeManagerAddress": "10.0.0.1", "Resources": {"CPU": 4.0}},
    {"NodeManagerAddress": "10.0.0.2", "Resources": {"CPU": 2.0, "GPU": 1.0}},
]


def config(*overrides: str):
    return load_config("demo-pair", ["launcher=ray", *overrides])


@pytest.mark.parametrize(
    ("overrides", "says"),
    [
        (["agents.1.placement.node=10.0.0.9"], "node='10.0.0.9' is no node of the cluster, which has 10.0.0.1, 10.0.0.2"),
        (["ray.resources={GPU: 2}"], "asks Ray for {'GPU': 2.0}, which no node has ([{'GPU': 0}, {'GPU': 1.0}])"),
        (["ray.resources={GPU: 1}", "agents.1.placement.node=10.0.0.1"], "which no node has ([{'GPU': 0}])"),
    ],
)
def test_an_agent_that_no_node_could_take_is_refused_with_what_there_is(overrides, says):
    asked = config(*overrides)
    with pytest.raises(RayError) as refused:
        check_place(asked, asked.agent("qwen2"), NODES)
    assert says in str(refused.value)


def test_a_cluster_that_is_not_there_is_said_at_once(tmp_path):
    run = launch.create(config("ray.address=127.0.0.1:9"), tmp_path)
    with pytest.raises(RayError, match=r"ray.address='127.0.0.1:9': nobody answers there"):
        RayLauncher(run)


@pytest.mark.parametrize(
    ("overrides", "asks"),
    [
        (["ray.resources={GPU: 1}"], "agent 'qwen2' asks Ray for {'GPU': 1.0}"),  # there is one GPU for two agents
        (["ray.resources={CPU: 3}", "agents.1.placement.node=10.0.0.1"], "agent 'llama' asks Ray for {'CPU': 3.0}"),
    ],
)
def test_a_cohort_that_has_no_room_at_once_is_refused_though_each_agent_has(overrides, asks):
    asked = config(*overrides)
    with pytest.raises(RayError) as refused:
        check_places(asked, NODES)
    assert f"{asks}, which no node has left beside the cohort's other agents" in str(refused.value)


def test_agents_that_name_a_node_come_first_and_the_others_get_what_is_left():
    # 10.0.0.1 has 4 cores, 10.0.0.2 has 2: qwen2 must have 10.0.0.2, so llama's two cores are on 10.0.0.1
    check_places(config("ray.resources={CPU: 2}", "agents.1.placement.node=10.0.0.2"), NODES)
    check_places(config("ray.resources={CPU: 1, GPU: 0.5}"), NODES)


def test_a_data_file_takes_its_place_whatever_its_name_is(tmp_path, monkeypatch):
    monkeypatch.setenv("CORL_NODE_DIR", str(tmp_path / "nodes # of: mine"))
    told = config("data.train=arithmetic").to_yaml()
    node = Node("run", told, "llama", {"train": ("questions #1: easy.jsonl", b"{}")})
    train = Run(node._run.path).config.data.train
    assert train.endswith("questions #1: easy.jsonl") and Path(train).read_bytes() == b"{}"
    assert node._top.parent == tmp_path / "nodes # of: mine"
    node.close()
    assert list((tmp_path / "nodes # of: mine").iterdir()) == []


def test_a_node_clears_up_after_owners_that_have_ended_and_leaves_the_living_alone(tmp_path):
    code = "import sys, time; from pathlib import Path; from corl_core.runs.launchers.ray_node import own_folder; " \
           "own = own_folder(Path(sys.argv[1])); print(own[0], flush=True); time.sleep(60)"  # fmt: skip
    owner = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    left = Path(owner.stdout.readline().strip())
    mine, lock = own_folder(tmp_path)
    assert left.exists() and mine.exists()
    owner.kill()
    owner.wait()
    again, other = own_folder(tmp_path)
    assert not left.exists() and mine.exists() and again.exists()
    lock.release()
    other.release()


@pytest.fixture(scope="module")
def cluster():
    """A head and a second node; the second one's raylet can be killed."""
    from ray.cluster_utils import Cluster

    os.environ |= {"RAY_USAGE_STATS_ENABLED": "0", "RAY_worker_niceness": "0"}
    small = {"num_cpus": 2, "object_store_memory": 80_000_000}
    made = Cluster(initialize_head=True, head_node_args=small | {"include_dashboard": False})
    made.second = made.add_node(node_ip_address=SECOND, wait=False, **small)
    yield made
    made.shutdown()


@pytest.mark.training
def test_a_run_on_two_nodes_tells_of_one_that_is_lost_and_goes_on_elsewhere(cluster, small_run, tmp_path, wait_for):
    fields = {"launcher": "ray", "ray__address": cluster.address, "agents.1.placement.node": SECOND, "grpo__max_steps": 400}
    fields |= {"grpo__questions_per_step": 2, "grpo__num_generations": 4, "eval__num_questions": 4, "eval__every_steps": 400}
    run = launch.launch(small_run(checkpoints__every_steps=3, **fields), tmp_path)
    agents = [run.agent_path(name) for name in "ab"]
    wait_for(lambda: all(checkpoints.complete(agent) for agent in agents), "checkpoints to come in", timeout_s=240)
    os.kill(cluster.second.all_processes["raylet"][0].process.pid, signal.SIGKILL)
    wait_for(lambda: run.status().final, "the loss to be seen", timeout_s=90)
    status = run.status()
    assert (status.state, status.cause) == ("failed", "node lost")
    assert status.reason.startswith(f"agent 'b' on node {SECOND} (") and " is gone in round " in status.reason
    wait_for(lambda: not processes_in(run.id), "no agent to be left", timeout_s=20)

    elsewhere = (run.path / "run.yaml").read_text().replace(f"node: {SECOND}", "node: null")
    (run.path / "run.yaml").write_text(elsewhere)
    run = Run(run.path)
    launch.resume(run)
    wait_for(lambda: run.status().step > run.status().attempt_step + 1 > 3, "the run to go on", timeout_s=240)
    launch.stop(run)
    wait_for(lambda: run.status().final, "the run to stop", timeout_s=90)
    assert (run.status().state, run.status().reason) == ("stopped", "")
    for path in run.journal_paths().values():
        steps = [line["step"] for line in read(path) if line["event"] == "step"]
        assert steps == list(range(len(steps))) and len(steps) >= run.status().step
    assert all((agent / "model" / "model.safetensors").exists() for agent in agents)
    wait_for(lambda: not processes_in(run.id), "no agent to be left", timeout_s=20)


def processes_in(run_id: str) -> list[psutil.Process]:
    return [one for one in psutil.process_iter(["cmdline"]) if any(run_id in word for word in one.info["cmdline"] or [])]
