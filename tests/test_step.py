"""Scoring a step by itself: what TRL gets for a group without a label, and what a weighted sum is made of."""

from types import SimpleNamespace

import pytest

from corl_core.config import load_config
from corl_core.data.questions import Question
from corl_core.rewards.batch import Scored
from corl_core.training.clock import Clock
from corl_core.training.layout import Asked
from corl_core.training.recorder import Recorder
from corl_core.training.rollout import Samples
from corl_core.training.step import StepScorer

TEXTS = [r"\boxed{1}", r"\boxed{2}", "?", "?"]  # two completions of each of two questions


def scored(tmp_path, overrides, **signals: Scored):
    config = load_config("demo-pair", ["grpo.num_generations=2", "grpo.questions_per_step=2", *overrides])
    layout = [Asked(Question(f"q{n}", f"What is q{n}?", "1"), False) for n in range(2)]
    made = {name: lambda batch, values=values: values for name, values in signals.items()}
    scorer = StepScorer(Recorder(tmp_path, "a"), layout, made, config, Clock())
    ones, yes = [[1.0]] * 4, [True] * 4
    scorer.sampled(Samples([[1]] * 4, [[1]] * 4, ones, ones, ones, TEXTS, yes, yes))
    asked = {"question_id": ["q0", "q0", "q1", "q1"], "paraphrased": [False] * 4}
    rewards = scorer.score(["p"] * 4, TEXTS, **asked, trainer_state=SimpleNamespace(global_step=0))
    return rewards, scorer.finish(0, {}, 4)


@pytest.mark.parametrize(("scale", "unlabelled"), [("group", 0.0), ("none", 0.0), ("batch", None)])
def test_a_group_without_a_label_is_not_in_the_batch_that_scales_the_others(tmp_path, scale, unlabelled):
    half = Scored(((1.0, 0.0), None), ("1", None))
    rewards, metrics = scored(tmp_path, [f"grpo.scale_rewards={scale}"], corl=half)
    assert rewards == [1.0, 0.0, unlabelled, unlabelled]
    assert metrics["reward"] == 0.5 and metrics["frac_reward_zero_std"] == 0.5


def test_a_sum_weighs_its_signals_also_where_there_is_one(tmp_path):
    hits, shape = Scored(((1.0, 0.0), (1.0, 1.0)), ("1", "2")), Scored(((1.0, 1.0), (0.0, 1.0)), None)
    rewards, metrics = scored(tmp_path, ["method=weighted", "signal.weights={ttrl: -2}"], ttrl=hits)
    assert rewards == [-2.0, 0.0, -2.0, -2.0] and metrics["reward/ttrl"] == 0.75
    both = ["method=weighted", "signal.weights={ttrl: 1, format: 0.5}"]
    rewards, metrics = scored(tmp_path, both, ttrl=hits, format=shape)
    assert rewards == [1.5, 0.5, 1.0, 1.5]
    assert (metrics["reward/ttrl"], metrics["reward/format"]) == (0.75, 0.75) and "reward_accuracy" not in metrics
