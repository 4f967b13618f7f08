"""`bench placement`: where each arm's agents are, and what the table says of them."""

from pathlib import Path

import pytest

from corl_core.bench.placement import ALONE, Row, Setting, arms, configuration, table
from corl_core.cli import main


def test_each_arm_is_a_run_with_its_agents_on_their_gpus():
    setting = Setting("tiny", "cuda", parallel=("ddp", "fsdp"))
    placed = {arm: configuration(setting, Path("model"), arm) for arm in arms(setting)}
    assert {arm: [agent.placement.gpus for agent in config.agents] for arm, config in placed.items()} == {
        ALONE: [[0]], "two agents, a GPU each": [[0], [1]], "two agents, one GPU": [[0], [0]],
        "one agent, two GPUs (ddp)": [[0, 1]], "one agent, two GPUs (fsdp)": [[0, 1]],
    }  # fmt: skip
    assert [config.method for config in placed.values()] == ["ttrl", "corl", "corl", "ttrl", "ttrl"]
    assert all(config.grpo.questions_per_step * config.grpo.num_generations == 128 for config in placed.values())


def test_on_the_cpu_two_gpus_are_two_processes():
    config = configuration(Setting("tiny", "cpu", rows=32), Path("model"), "one agent, two GPUs (ddp)")
    assert config.agents[0].placement.num_processes == 2 and config.agents[0].placement.gpus == []


def test_the_table_sets_every_arm_against_one_agent_alone():
    parts = {"generate": 2.0, "exchange": 0.25, "update": 1.75}
    rows = [Row(ALONE, 4.0, parts), Row("two agents, a GPU each", 4.1, parts), Row("other", None, {}, "out of memory")]
    lines = table(Setting("qwen2.5-3b", "cuda"), rows).splitlines()
    assert lines[-3:] == [
        f"| {ALONE} | 4.00 | 1.00 | 2.00 | 0.25 | 1.75 |",
        "| two agents, a GPU each | 4.10 | 1.02 | 2.00 | 0.25 | 1.75 |",
        "| other | – | out of memory | – | – | – |",
    ]


def test_an_arm_that_cannot_be_is_refused_before_anything_runs():
    with pytest.raises(ValueError, match="which must divide"):
        configuration(Setting("tiny", "cpu", rows=24), Path("model"), "one agent, two GPUs (ddp)", ["grpo.num_generations=9"])


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["engine", "--device", "cuda"], "there is no GPU here that torch can use; take --device cpu"),
        (["placement", "--device", "cuda"], "there is no GPU here that torch can use; take --device cpu"),
        (["memory", "--device", "cuda"], "there is no GPU here that torch can use; take --device trace"),
        (["rollouts", "--device", "cuda"], "there is no GPU here that torch can use; take --device cpu"),
        (["memory", "--shapes", "nope"], "--shapes nope: no such shape; there are "),
        (["engine", "--agents", "2"], "add --model"),
        (["engine", "--steps", "6"], "give at least 7"),
        (["engine", "--model", "tiny", "--steps", "2"], "give at least 3"),
    ],
)
def test_what_a_benchmark_cannot_do_is_a_sentence(arguments, said, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["bench", *arguments]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["placement", "--steps", "3"], ["placement", "--rows", "7"], ["engine", "--rows", "12"], ["rollouts", "--repeats", "0"],
     ["rollouts", "--tokens", "0"], ["exchange", "--agents", "1"], ["exchange", "--rounds", "0"], ["answers", "--answers", "-1"]],
)  # fmt: skip
def test_numbers_that_come_to_nothing_are_refused(arguments, capsys):
    with pytest.raises(SystemExit):
        main(["bench", *arguments])
    assert "is not a whole number of at least" in (said := capsys.readouterr().err) or "is not a multiple of 8" in said
