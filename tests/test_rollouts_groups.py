"""One question at one step: rollouts by answer, rewards, TRL's advantages, and where the answer stands in the text."""

import pytest

from corl_core.answers import parse, span
from corl_core.rollouts.groups import advantages, read_groups
from tests.made_rollouts import made_run, small_config


def test_advantages_are_rewards_in_units_of_the_group():
    # mean 1/4; std with K - 1: sqrt((9/16 + 3/16) / 3) = 1/2
    assert advantages([1, 0, 0, 0]) == pytest.approx([0.75 / 0.5001, *[-0.25 / 0.5001] * 3])
    assert advantages([1, 0, 0, 0], "none") == [0.75, -0.25, -0.25, -0.25]
    assert advantages([1, 0], "batch", batch_std=0.25) == pytest.approx([0.5 / 0.2501, -0.5 / 0.2501])


def test_equal_rewards_and_a_single_rollout_have_no_advantage():
    assert advantages([1, 1, 1]) == [0, 0, 0] and advantages([0.3]) == [0] and advantages([]) == []


@pytest.mark.training
def test_advantages_equal_those_that_trl_computes():
    torch = pytest.importorskip("torch")
    from trl.trainer.utils import nanstd

    rewards = [1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    tensor = torch.tensor(rewards)
    expected = (tensor - tensor.mean()) / (nanstd(tensor.view(1, -1), dim=1) + 1e-4)
    assert advantages(rewards) == pytest.approx(expected.tolist(), rel=1e-5)


@pytest.fixture
def run(tmp_path):
    draws = [
        {"step": 3, "id": "p", "truth": "1", "a": ("2 1 2 - 1 1", "1"), "b": ("1 1 1 1 7 7", "2")},
        {"step": 3, "id": "q", "truth": "9", "a": ("- - - - - -", ""), "b": ("9 9 8 8 8 8", "")},
    ]
    return made_run(tmp_path, draws, small_config(k=4, vote={"num_votes": 6, "min_share": 0.7}))


def test_rollouts_are_grouped_by_answer_with_the_most_common_first_and_no_answer_last(run):
    (a, b), _ = read_groups(run, 3, "p")
    assert [(key, len(own)) for key, own in a.counted] == [("1", 3), ("2", 2), (None, 1)]
    assert (a.agent, a.vote.key, a.vote.count, a.vote.num_parsed, a.truth, a.pseudo_label) == ("a", "1", 3, 5, "1", "1")
    assert not a.counts and not b.counts  # shares 3/5 and 4/6 are below 0.7
    assert a.question == "What is p?"


def test_only_what_was_trained_on_has_an_advantage(run):
    a = read_groups(run, 3, "p")[0][0]
    assert [one.trained for one in a.rollouts] == [True] * 4 + [False] * 2
    assert [one.reward for one in a.rollouts] == [0, 1, 0, 0, 1, 1]
    # of the four that were trained on one is rewarded
    worth = [one.advantage for one in a.rollouts]
    assert worth[:4] == pytest.approx([-0.25 / 0.5001, 0.75 / 0.5001, -0.25 / 0.5001, -0.25 / 0.5001])
    assert worth[4:] == [None, None]


def test_an_unlabelled_group_has_no_reward_and_no_advantage(run):
    (a, b), _ = read_groups(run, 3, "q")
    assert {one.reward for one in (*a.rollouts, *b.rollouts)} == {None}
    assert [one.advantage for one in a.rollouts] == [0, 0, 0, 0, None, None]
    assert a.vote.key is None and a.counted == [(None, list(a.rollouts))]


def test_with_batch_scaling_the_std_is_that_of_the_whole_step(tmp_path):
    draws = [{"step": 0, "id": name, "a": ("1 1 2 2", label)} for name, label in (("p", "1"), ("q", "3"), ("r", ""))]
    run = made_run(tmp_path, draws, small_config(k=4, grpo={"scale_rewards": "batch"}))
    # rewards 1 1 0 0 and 0 0 0 0, and a group without a label: mean 1/4, sum of squares 2·9/16 + 6·1/16 = 3/2, std sqrt(3/2 / 7)
    assert read_groups(run, 0, "p")[0][0].rollouts[0].advantage == pytest.approx(0.5 / ((1.5 / 7) ** 0.5 + 1e-4))


def test_a_question_that_was_not_asked_has_no_groups(run):
    for asked in ((3, "nobody"), (99, "p"), (3, "p", 1)):
        assert read_groups(run, *asked) == ([], [])


def test_an_agent_whose_file_is_broken_is_told_and_the_others_are_read(run):
    (run.agent_path("a") / "rollouts" / "000003-000003.parquet").write_bytes(b"no")
    groups, problems = read_groups(run, 3, "p")
    assert [group.agent for group in groups] == ["b"] and problems[0].startswith("a: 000003-000003.parquet cannot be read")


@pytest.mark.parametrize(
    ("completion", "marked"),
    [
        ("First \\boxed{3}, no: \\boxed{ 5 }.", "5"),
        ("\\boxed{\\boxed{8}}", "8"),
        ("so \\boxed{\\frac{1}{2}} it is", "\\frac{1}{2}"),
        ("\\boxed 7 and done", "7"),
        ("\u200eright \\boxed{1\u200e2}", "1\u200e2"),  # marks of direction are not read, and still stand in the text
        ("\\boxed{1 \\} 2}", "1 \\} 2"),
    ],
)
def test_the_span_of_an_answer_is_where_it_was_written(completion, marked):
    start, end = span(completion)
    assert completion[start:end] == marked and parse(completion) is not None


@pytest.mark.parametrize("completion", ["", "no box", "\\boxed{", "\\boxed{ }", "\\boxed{3} then \\boxed{4"])
def test_without_an_answer_there_is_no_span(completion):
    assert span(completion) is None
