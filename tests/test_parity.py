"""Rewards and advantages beside those that the released implementations' rules give, for the same completions and logits.

The rules are written down here from scratch, as their sources state them: Co-RL (string votes, the peer's label, sympy grading;
TRL's advantages), TTRL, RENT and Intuitor (verl's advantages: sample standard deviation plus 1e-6). Where this project differs
on purpose the docstring says so and both results are pinned.
"""

from collections import Counter

import numpy as np
import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer

from corl_core.answers import parse
from corl_core.rewards import intuitor, rent
from corl_core.rewards.batch import Batch
from corl_core.rewards.matching import rewards as matching_rewards
from corl_core.training import supervision
from corl_core.training.clock import Clock
from corl_core.training.rollout import entropy, self_certainty
from corl_core.training.trainer import CohortTrainer, grpo_arguments
from corl_core.votes import vote

# Four groups of eight completions of two agents: a clear vote, a tie, spellings of one number, and one that hardly parses.
MINE = ["44445567", "11223344", "77789   ", "      9 "]
PEERS = ["55554467", "22114433", "8877777 ", "9 9 9   "]


def texts(groups: list[str]) -> list[list[str]]:
    return [[f"so \\boxed{{{said}}}" if said.strip() else "no idea" for said in group] for group in groups]


def released_vote(group: list[str | None]) -> str | None:
    """`Counter.most_common(1)` over what was extracted: the first seen among equals; nothing that failed votes."""
    counted = Counter(answer for answer in group if answer is not None)
    return counted.most_common(1)[0][0] if counted else None


def released_extract(text: str) -> str | None:
    return text.split("\\boxed{")[1].split("}")[0] if "\\boxed{" in text else None


def released_rewards(groups: list[list[str]], labels: list[str | None]) -> np.ndarray:
    pairs = zip(groups, labels, strict=True)
    return np.array([[float(released_extract(text) == label) for text in group] for group, label in pairs])


def verl_advantages(rewards: np.ndarray) -> np.ndarray:
    return (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, ddof=1, keepdims=True) + 1e-6)


def trl_rule(rewards: np.ndarray) -> np.ndarray:
    return (rewards - rewards.mean(1, keepdims=True)) / (rewards.std(1, ddof=1, keepdims=True) + 1e-4)


def batch_of(groups: list[list[str]]) -> Batch:
    answers = tuple(tuple(parse(text) for text in group) for group in groups)
    zeros = tuple((0.0,) * len(group) for group in groups)
    ids = tuple(f"q{n}" for n in range(len(groups)))
    return Batch(0, ids, ids, tuple(map(tuple, groups)), answers, tuple(map(vote, answers)), zeros, zeros)


class Peer:
    """An exchange whose other end has voted already."""

    def __init__(self, groups: list[list[str]]):
        votes = [vote([parse(text) for text in group]) for group in groups]
        self._sent = [cast.answer.text if cast.answer else None for cast in votes]

    def swap(self, round_id, question_ids, votes):
        return self._sent


def dense(rewards) -> np.ndarray:
    return np.array([group if group is not None else (0.0,) * 8 for group in rewards])


@pytest.fixture(scope="module")
def trained_advantages(base_models, tmp_path_factory):
    """A function that gives the advantages with which TRL weights a step's rollouts, from their rewards (P, 8)."""
    from corl_core.config import load_config

    def advantages(rewards: np.ndarray) -> np.ndarray:
        base, seen = base_models["llama"], []
        agents = f"agents=[{{name: a, model: {base}}}]"
        steps = ["grpo.max_steps=1", f"grpo.questions_per_step={len(rewards)}", "grpo.num_generations=8"]
        config = load_config("demo", [agents, "method=ttrl", *steps, "grpo.max_completion_length=2"])

        class Watching(CohortTrainer):
            def _compute_loss(self, model, inputs):
                seen.append(inputs["advantages"].tolist())
                return super()._compute_loss(model, inputs)

        trainer = Watching(
            model=AutoModelForCausalLM.from_pretrained(base),
            processing_class=AutoTokenizer.from_pretrained(base, padding_side="left"),
            reward_funcs=lambda completions, **_: rewards.ravel().tolist(),
            args=grpo_arguments(config, tmp_path_factory.mktemp("trl"), 0, use_cpu=True),
            train_dataset=Dataset.from_dict({"prompt": [f"{n}+1=" for n in range(11, 11 + len(rewards))]}),
        )
        trainer.train()
        return np.sort(np.array(seen).ravel())  # TRL shuffles the rows of a step

    return advantages


@pytest.mark.training
def test_co_rl_gives_the_released_rewards_and_advantages(small_run, trained_advantages):
    groups, peers = texts(MINE), texts(PEERS)
    labels = [released_vote([released_extract(text) for text in group]) for group in peers]
    released = released_rewards(groups, labels)
    signal = supervision.build(small_run("corl"), "a", Clock(), lambda: Peer(peers), teacher=None, truths=None)["corl"]
    ours = dense(signal(batch_of(groups)).rewards)
    assert labels == ["5", "2", "7", "9"]
    np.testing.assert_array_equal(ours, released)
    np.testing.assert_allclose(trained_advantages(ours), np.sort(trl_rule(released).ravel()), atol=1e-6)


def test_spellings_of_one_number_are_one_answer_here_and_several_in_the_released_vote():
    """Differs on purpose: the released vote counts strings, so 1,000 and 1000 split their votes and 7 wins; keys do not."""
    group = ["1,000", "1000", "1{,}000", "7", "7"]
    assert released_vote(group) == "7"
    assert vote([parse(f"\\boxed{{{text}}}") for text in group]).key == "1000"


@pytest.mark.training
def test_ttrl_gives_the_released_rewards_and_advantages(small_run, trained_advantages):
    """Advantages differ on purpose in the fourth digit: TRL adds 1e-4 to the standard deviation, verl 1e-6."""
    groups = texts(MINE)
    labels = [released_vote([released_extract(text) for text in group]) for group in groups]
    released = released_rewards(groups, labels)
    signal = supervision.build(small_run("ttrl"), "a", Clock(), exchange=None, teacher=None, truths=None)["ttrl"]
    ours = dense(signal(batch_of(groups)).rewards)
    np.testing.assert_array_equal(ours, released)
    np.testing.assert_allclose(trl_rule(ours), verl_advantages(released), rtol=3e-4, atol=1e-9)
    np.testing.assert_allclose(trained_advantages(ours), np.sort(trl_rule(ours).ravel()), atol=1e-6)
    one_of_eight = np.array([[1.0] + [0.0] * 7])  # std .353553: .875 / .353653 and .875 / .353554
    assert trl_rule(one_of_eight)[0, 0] == pytest.approx(2.474175, abs=1e-5)
    assert verl_advantages(one_of_eight)[0, 0] == pytest.approx(2.474867, abs=1e-5)


def test_an_empty_extraction_wins_the_released_ttrl_vote_and_none_here():
    """Differs on purpose: the released extractor gives '' where nothing is found, '' can win the vote, and grading '' against
    '' is true, so falling silent is rewarded. Here such a rollout neither votes nor is rewarded."""
    group = texts(["9       "])[0]
    extracted = [released_extract(text) or "" for text in group]
    label = Counter(extracted).most_common(1)[0][0]
    assert [float(answer == label) for answer in extracted] == [0.0] + [1.0] * 7
    answers = [parse(text) for text in group]
    assert vote(answers).key == "9" and matching_rewards(answers, "9") == (1.0,) + (0.0,) * 7


@pytest.fixture
def logits() -> torch.Tensor:
    """Two groups of 8 completions of 12 tokens over 32 words, (2, 8, 12, 32), sharper in some rows than in others."""
    made = torch.randn(2, 8, 12, 32, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    return made * torch.linspace(0.5, 3, 8, dtype=torch.float64)[None, :, None, None]


def as_groups(values: torch.Tensor) -> tuple[tuple[float, ...], ...]:
    return tuple(map(tuple, values.tolist()))


@pytest.mark.training
def test_rent_gives_the_released_rewards_and_advantages(logits, trained_advantages):
    p = torch.softmax(logits, -1)
    released = -(torch.logsumexp(logits, -1) - (p * logits).sum(-1)).mean(-1).numpy()  # verl's entropy_from_logits, masked mean
    answers = tuple((None,) * 8 for _ in range(2))
    ours = np.array(rent.rewards(as_groups(entropy(torch.log_softmax(logits, -1)).mean(-1)), answers))
    np.testing.assert_allclose(ours, released, rtol=1e-10)
    np.testing.assert_allclose(trl_rule(ours), verl_advantages(released), rtol=3e-3)
    np.testing.assert_allclose(trained_advantages(ours), np.sort(trl_rule(released).ravel()), atol=1e-4)


def test_rents_released_format_floor_is_minus_seven(logits):
    entropies = as_groups(entropy(torch.log_softmax(logits, -1)).mean(-1))
    answers = tuple(tuple(parse(text) for text in group) for group in texts(["1 2 3 4 ", "12345678"]))
    given = rent.rewards(entropies, answers, no_answer=-7.0)
    for row in range(2):
        for k in range(8):
            assert given[row][k] == (-7.0 if answers[row][k] is None else -entropies[row][k])


@pytest.mark.training
def test_intuitors_constant_vanishes_in_the_advantages(logits, trained_advantages):
    """The released code rewards logsumexp(z) - mean(z) = KL(uniform || p) + log V; here the KL itself is the reward."""
    released = (torch.logsumexp(logits, -1) - logits.mean(-1)).mean(-1).numpy()
    ours = np.array(intuitor.rewards(as_groups(self_certainty(torch.log_softmax(logits, -1)).mean(-1))))
    np.testing.assert_allclose(released - ours, np.log(32), rtol=1e-10)
    np.testing.assert_allclose(verl_advantages(ours), verl_advantages(released), atol=1e-9)
    np.testing.assert_allclose(trained_advantages(ours), np.sort(trl_rule(released).ravel()), atol=1e-4)
