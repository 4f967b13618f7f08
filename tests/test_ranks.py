"""An agent of several processes votes and is rewarded as one process would be, though groups are split over them."""

import json
import multiprocessing
import os
import socket
from itertools import pairwise
from pathlib import Path

import pytest

from corl_core.training.ranks import Ranks

pytestmark = pytest.mark.training
NUM_QUESTIONS, NUM_GENERATIONS = 3, 8  # 24 rows: with two ranks the second question's group lies on both


def completion(row: int) -> str:
    """What rollout `row` says: answers that differ within a group, some unboxed, votes decided only by the whole group."""
    group, rollout = divmod(row, NUM_GENERATIONS)
    said = ("55566667", "12212212", "34 434 4")[group][rollout].strip()
    return f"\\boxed{{{said}}}" if said else "7;"


def train_one_step(rank: int, size: int, port: int, config, base: str, folder: Path) -> None:
    """One rank of a real TRL step with given completions; writes its rows' rewards, and rank 0 the journal."""
    if size > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size)}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    from datasets import Dataset
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from corl_core.data.questions import Question
    from corl_core.training.clock import Clock
    from corl_core.training.layout import Asked
    from corl_core.training.recorder import Recorder
    from corl_core.training.rollout import Samples
    from corl_core.training.step import StepScorer
    from corl_core.training.supervision import build
    from corl_core.training.trainer import CohortTrainer, grpo_arguments

    model, tokenizer = AutoModelForCausalLM.from_pretrained(base), AutoTokenizer.from_pretrained(base, padding_side="left")
    layout = [Asked(Question(f"q{n}", f"{11 + n}+{22 + n}="), False) for n in range(NUM_QUESTIONS)]
    signals = build(config, "a", Clock(), exchange=None, teacher=None, truths=None)
    trainer = scorer = None
    given: list[float] = []

    def rollouts(prompts, trainer):
        ranks = Ranks.now()
        first = ranks.rank * len(prompts)
        texts = [completion(first + i) for i in range(len(prompts))]
        ids = [tokenizer(text, add_special_tokens=False)["input_ids"] + [tokenizer.eos_token_id] for text in texts]
        floats = [[0.1 * (first + i + 1)] * len(row) for i, row in enumerate(ids)]
        everything = [True] * len(ids)
        samples = Samples(tokenizer(prompts)["input_ids"], ids, floats, floats, floats, texts, everything, everything)
        nonlocal scorer
        scorer = StepScorer(recorder, layout, signals, config, Clock(), ranks)
        scorer.sampled(samples)
        return samples.for_training()

    def score(**given_by_trl):
        given.extend(scorer.score(**given_by_trl))
        return given

    recorder = Recorder(folder / f"rank{rank}", "a")
    trainer = CohortTrainer(
        model=model, processing_class=tokenizer, reward_funcs=score, rollout_func=rollouts,
        args=grpo_arguments(config, folder, 0, use_cpu=True, num_ranks=size),
        train_dataset=Dataset.from_dict({
            "prompt": [asked.text for asked in layout], "question_id": [asked.question.id for asked in layout],
            "paraphrased": [False] * NUM_QUESTIONS,
        }),
    )  # fmt: skip
    trainer.train()
    weight = next(trainer.accelerator.unwrap_model(trainer.model).parameters())
    scorer.finish(0, {}, 0)
    (folder / f"rewards-{rank}.json").write_text(json.dumps({"rewards": given, "weight": float(weight.double().sum())}))


def run_ranks(size: int, config, base, folder: Path) -> tuple[list[float], list[dict], list[float]]:
    """Rewards of all rows in rank order; the journal's steps; each rank's sum over its first weight after the update."""
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = multiprocessing.get_context("spawn")
    ranks = [context.Process(target=train_one_step, args=(r, size, port, config, str(base), folder)) for r in range(size)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(240)
        assert process.exitcode == 0
    told = [json.loads((folder / f"rewards-{rank}.json").read_text()) for rank in range(size)]
    lines = [json.loads(line) for line in (folder / "rank0" / "journal.jsonl").read_text().splitlines()]
    assert not any((folder / f"rank{rank}" / "journal.jsonl").read_text() for rank in range(1, size)), "only rank 0 records"
    return [value for part in told for value in part["rewards"]], lines, [part["weight"] for part in told]


@pytest.mark.parametrize("method", ["ttrl", "intuitor"])
def test_two_ranks_that_split_a_group_get_the_rewards_of_one(method, small_run, base_models, tmp_path):
    fields = {"grpo__max_steps": 1, "grpo__questions_per_step": NUM_QUESTIONS, "grpo__num_generations": NUM_GENERATIONS}
    config = small_run(method, agents=f"[{{name: a, model: {base_models['llama']}}}]", **fields)
    alone, alone_lines, _ = run_ranks(1, config, base_models["llama"], tmp_path / "one")
    split, split_lines, weights = run_ranks(2, config, base_models["llama"], tmp_path / "two")
    assert split == alone and len(split) == 24
    if method == "ttrl":  # 6 beats 5 only with the second half, 2 beats 1, 4 beats 3
        assert split == [float(value) for value in "000111100110110101010101"]
    else:
        assert all(a < b for a, b in pairwise(split))
    assert [line["votes"] for line in split_lines] == [line["votes"] for line in alone_lines] == [["6", "2", "4"]]
    assert weights[0] == weights[1], "one agent's ranks hold one set of weights"


def test_one_process_is_a_world_of_its_own():
    ranks = Ranks.now()
    assert (ranks.rank, ranks.size, ranks.first) == (0, 1, True)
    assert ranks.gather([1, 2]) == [1, 2] and ranks.from_first(lambda: 5) == 5
