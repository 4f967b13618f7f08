"""An agent of several processes votes and is rewarded as one process would be, though groups are split over them."""

import json
import os
import signal
import time
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
import torch

from corl_core.training.ranks import Ranks
from tests.rank_processes import as_rank, context, start_ranks

pytestmark = pytest.mark.training
NUM_QUESTIONS, NUM_GENERATIONS = 3, 8  # 24 rows: with two ranks the second question's group lies on both


def completion(row: int) -> str:
    """What rollout `row` says: answers that differ within a group, some unboxed, votes decided only by the whole group."""
    group, rollout = divmod(row, NUM_GENERATIONS)
    said = ("55566667", "12212212", "34 434 4")[group][rollout].strip()
    return f"\\boxed{{{said}}}" if said else "7;"


def train_one_step(rank: int, port: int, size: int, config, base: str, folder: Path) -> None:
    """One rank of a real TRL step with given completions; writes its rows' rewards, and rank 0 the journal."""
    as_rank(rank, size, port)
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
    norm = next(log["grad_norm"] for log in trainer.state.log_history if "grad_norm" in log)
    loss = next(log["loss"] for log in trainer.state.log_history if "loss" in log)
    weights = [float(weight.double().sum()) for weight in trainer.accelerator.unwrap_model(trainer.model).parameters()]
    scorer.finish(0, {}, 0)
    told = {"rewards": given, "weights": weights, "loss": loss, "grad_norm": norm}
    (folder / f"rewards-{rank}.json").write_text(json.dumps(told))


def run_ranks(size: int, config, base, folder: Path) -> tuple[list[float], list[dict], list[dict]]:
    """Rewards of all rows in rank order; the journal's steps; what each rank tells of its update."""
    folder.mkdir()
    start_ranks(size, train_one_step, size, config, str(base), folder)
    told = [json.loads((folder / f"rewards-{rank}.json").read_text()) for rank in range(size)]
    lines = [json.loads(line) for line in (folder / "rank0" / "journal.jsonl").read_text().splitlines()]
    assert not any((folder / f"rank{rank}" / "journal.jsonl").read_text() for rank in range(1, size)), "only rank 0 records"
    return [value for part in told for value in part["rewards"]], lines, told


@pytest.mark.parametrize("method", ["ttrl", "intuitor"])
def test_two_ranks_that_split_a_group_get_the_rewards_of_one(method, small_run, base_models, tmp_path):
    fields = {"grpo__max_steps": 1, "grpo__questions_per_step": NUM_QUESTIONS, "grpo__num_generations": NUM_GENERATIONS}
    config = small_run(method, agents=f"[{{name: a, model: {base_models['llama']}}}]", **fields)
    alone, alone_lines, (one,) = run_ranks(1, config, base_models["llama"], tmp_path / "one")
    split, split_lines, (first, second) = run_ranks(2, config, base_models["llama"], tmp_path / "two")
    assert split == alone and len(split) == 24
    if method == "ttrl":  # 6 beats 5 only with the second half, 2 beats 1, 4 beats 3
        assert split == [float(value) for value in "000111100110110101010101"]
    else:
        assert all(a < b for a, b in pairwise(split))
    assert [line["votes"] for line in split_lines] == [line["votes"] for line in alone_lines] == [["6", "2", "4"]]
    assert first["weights"] == second["weights"], "one agent's ranks hold one set of weights"
    assert first["loss"] == pytest.approx(one["loss"], abs=1e-6)
    assert first["grad_norm"] == pytest.approx(one["grad_norm"], rel=1e-4), "each rank had half of the rows"
    assert first["weights"] == pytest.approx(one["weights"], abs=1e-5)


def meet_late(rank: int, port: int, folder: Path) -> None:
    """Rank 0 takes four times the collective's time-out over what it does alone, once well and once in vain."""
    as_rank(rank, 2, port)
    from corl_core.training.exchange import CohortError, RunStopped
    from corl_core.training.ranks import FirstFailed

    ranks = Ranks.join(2, on_cpu=True, timeout_s=1.0)
    got: list[object] = [ranks.from_first(lambda: _late(3.0) or "votes"), ranks.gather([rank]), ranks.in_turn(lambda: rank)]
    for error in (CohortError("round 3: no votes"), RunStopped()):
        try:
            ranks.from_first(lambda error=error: _late(2.0, error))
        except (CohortError, RunStopped, FirstFailed) as raised:
            got.append(type(raised).__name__)
    (folder / f"{rank}.json").write_text(json.dumps(got))


def _late(seconds: float, error: Exception | None = None) -> None:
    time.sleep(seconds)
    if error is not None:
        raise error


def test_a_peer_that_is_later_than_the_collectives_time_out_trips_none(tmp_path):
    start_ranks(2, meet_late, tmp_path)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first == ["votes", [0, 1], 0, "CohortError", "RunStopped"]
    assert second == ["votes", [0, 1], 1, "FirstFailed", "RunStopped"]


def die_in_a_step(rank: int, tell) -> None:
    """A rank that has an error, while another goes on."""
    if rank == 2:
        time.sleep(60)
    tell.send(("OutOfMemoryError", "CUDA out of memory"))
    os._exit(1)


def lead(folder: Path, target) -> None:
    from corl_core.config_sections import AgentConfig
    from corl_core.training.group import Group

    os.setsid()
    agent = AgentConfig.model_validate({"name": "a", "model": "tiny:llama", "placement": {"processes": 3}})
    group = Group(agent, num_threads=1)
    group.start(target)
    group.watch(lambda error: None)
    (folder / "pids").write_text(json.dumps([process.pid for process, _ in group._others.values()]))
    if target is sleep_for_ever:
        time.sleep(60)
    error = group.failed(within_s=20)
    group.end(leave_s=0)
    names = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "ACCELERATE_MIXED_PRECISION")
    told = {"error": str(error), "kind": group.kind(), "environment": [os.environ[name] for name in names]}
    (folder / "told.json").write_text(json.dumps(told))


def sleep_for_ever(rank: int, tell) -> None:
    if rank == 2:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(60)


def test_a_rank_that_fails_is_named_with_its_reason_and_no_rank_is_left(tmp_path):
    leader = context().Process(target=lead, args=(tmp_path, die_in_a_step))
    leader.start()
    leader.join(120)
    told = json.loads((tmp_path / "told.json").read_text())
    assert told["error"] == "rank 1 of 3 failed: CUDA out of memory" and told["kind"] == "OutOfMemoryError"
    assert told["environment"] == ["0", "3", "127.0.0.1", "no"]
    assert not any(psutil.pid_exists(pid) for pid in json.loads((tmp_path / "pids").read_text()))


def test_ranks_die_with_the_first_even_if_they_are_suspended(tmp_path, wait_for):
    leader = context().Process(target=lead, args=(tmp_path, sleep_for_ever))
    leader.start()
    wait_for((tmp_path / "pids").exists, "the ranks to be there")
    pids = json.loads((tmp_path / "pids").read_text())
    wait_for(lambda: psutil.Process(pids[1]).status() == psutil.STATUS_STOPPED, "rank 2 to be suspended")
    leader.kill()
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids), "every rank to be gone", timeout_s=10)


def split_weights(rank: int, port: int, folder: Path) -> None:
    """FSDP2 on the CPU: after an update of the split weights, the whole model has them."""
    as_rank(rank, 2, port)
    from torch.distributed.fsdp import fully_shard
    from torch.distributed.tensor import DTensor, init_device_mesh

    from corl_core.training import whole
    from corl_core.training.families import make_model

    Ranks.join(2, on_cpu=True)
    trained = make_model("llama", width=32, seed=0)
    before = {name: weight.detach().clone() for name, weight in trained.named_parameters()}
    copy = whole.whole_model(trained, is_split=True)
    fully_shard(trained, mesh=init_device_mesh("cpu", (2,)))
    with torch.no_grad():
        for weight in trained.parameters():
            weight.mul_(2.0)
    whole.refresh(copy, trained)
    split = all(isinstance(weight, DTensor) for weight in trained.parameters())
    doubled = all(torch.equal(weight, 2.0 * before[name]) for name, weight in copy.named_parameters())
    (folder / f"{rank}.json").write_text(json.dumps([split, doubled]))


def test_weights_that_are_split_over_ranks_are_whole_where_they_are_sampled(tmp_path):
    start_ranks(2, split_weights, tmp_path)
    assert [json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1)] == [[True, True]] * 2


def test_one_process_is_a_world_of_its_own():
    ranks = Ranks.now()
    assert (ranks.rank, ranks.size, ranks.first) == (0, 1, True)
    assert ranks.gather([1, 2]) == [1, 2] and ranks.from_first(lambda: 5) == 5
