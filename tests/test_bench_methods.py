"""`bench methods`: the arms are under one budget, and the table says what was measured."""

import pytest

from corl_core.bench import demo, methods
from corl_core.bench.methods import ARMS, ROLLOUTS, Row, chosen, measure, table
from corl_core.cli import main
from corl_core.config import ConfigError, load_config
from corl_core.methods import SIGNALS


def configs():
    return {arm.name: load_config(arm.preset, list(arm.overrides)) for arm in ARMS}


def test_every_arm_takes_as_many_steps_of_as_many_completions():
    demo = load_config("demo")
    for name, config in configs().items():
        assert config.grpo.questions_per_step * config.grpo.num_generations == ROLLOUTS, name
        same = {"num_generations", "questions_per_step"}
        assert config.grpo.model_dump(exclude=same) == demo.grpo.model_dump(exclude=same), name
        assert (config.eval, config.data) == (demo.eval, demo.data), name


def test_every_signal_and_every_ring_of_two_to_five_has_an_arm():
    assert {config.method for config in configs().values()} == set(SIGNALS)
    rings = {len(config.agents) for config in configs().values() if config.method == "corl"}
    sizes = {config.grpo.num_generations for config in configs().values()}
    assert rings == {2, 3, 4, 5} and sizes == {2, 4, 8, 16}
    assert {"same family", "different family", "different family+"} <= {config.variant for config in configs().values()}


def test_arms_are_chosen_by_a_part_of_their_name():
    assert [arm.name for arm in chosen(["ttrl", "k = 1"])] == ["Co-RL, K = 16", "TTRL"]
    with pytest.raises(ConfigError, match="no arm is called that; there are Co-RL, ring of 3"):
        chosen(["nothing"])


def test_the_table_has_mean_and_deviation_over_seeds_and_a_dash_for_what_is_undefined():
    rows = [Row("RENT", seed, 0.6, accuracy, 0.5, None, 0.25, 0.0) for seed, accuracy in ((0, 0.2), (1, 0.4))]
    # mean .3, standard deviation .1 * sqrt(2) = .14
    assert table(rows).splitlines()[-1] == (
        "| RENT | 2 | 0.60 ± 0.00 | 0.30 ± 0.14 | 0.50 ± 0.00 | – | 0.25 ± 0.00 | 0.00 ± 0.00 |"
    )
    # one seed has no deviation, not one of zero
    assert table(rows[:1]).splitlines()[-1] == "| RENT | 1 | 0.60 | 0.20 | 0.50 | – | 0.25 | 0.00 |"


def test_a_run_that_fails_leaves_the_others_in_the_table(monkeypatch, tmp_path, capsys):
    def train(config, runs_dir):
        if config.method == "ttrl" and config.seed == 1:
            raise demo.Unfinished("ttrl-1 failed: the disk is full")
        return config

    monkeypatch.setattr(demo, "_finished_or_trained", train)
    monkeypatch.setattr(methods, "_row", lambda arm, seed, run: Row(arm.name, run.seed, 0.6, 0.2, 0.5, None, 0.25, 0.0))
    asked = ["bench", "methods", "--arms", "TTRL", "Intuitor", "--seeds", "0", "1", "--runs", str(tmp_path)]
    assert main(asked) == 1
    told = capsys.readouterr()
    assert [line.split(" | ")[:2] for line in told.out.splitlines()[2:]] == [["| TTRL", "1"], ["| Intuitor", "2"]]
    assert told.err.strip() == "error: 1 of 4 runs did not finish: ttrl-1 failed: the disk is full"
    assert main(["bench", "methods", "--arms", "Intuitor", "--runs", str(tmp_path)]) == 0


@pytest.mark.training
def test_a_cell_is_trained_once_and_read_the_next_time(base_models, tmp_path):
    agents = f"agents=[{{name: a, model: {base_models['llama']}}}, {{name: b, model: {base_models['qwen2']}}}]"
    small = [agents, "device=cpu", "grpo.max_steps=2", "eval.every_steps=2", "eval.num_questions=9", "eval.num_samples=2"]
    arms = chosen(["TTRL"])
    first = list(measure(arms, [0], tmp_path, small))
    assert list(measure(arms, [0], tmp_path, small)) == first and len(list(tmp_path.glob("*/run.yaml"))) == 1
    (row,) = first
    assert row.arm == "TTRL" and 0 <= row.accuracy <= 1 and 0 <= row.pseudo_label_accuracy <= 1 and 0 <= row.agreement <= 1
