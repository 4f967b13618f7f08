"""Whole cohorts, trained for real for a few steps: what is learned, what is written, and how a run ends."""

import json
import os
import signal
import threading
import time
from multiprocessing import forkserver

import pandas as pd
import psutil
import pytest
from safetensors.torch import load_file

from corl_core.data import arithmetic
from corl_core.rollouts import index
from corl_core.runs import launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import Tail
from corl_core.runs.results import results
from corl_core.runs.supervisor import Supervisor

pytestmark = pytest.mark.training


def train(config, runs_dir) -> Run:
    run = launch.create(config, runs_dir)
    status = Supervisor(run).run()
    assert (status.state, status.reason, status.step) == ("finished", "", config.grpo.max_steps), run.log_tail("a")
    return run


def weights(run: Run, agent: str) -> dict:
    return load_file(run.agent_path(agent) / "model" / "model.safetensors")


def same(a: dict, b: dict) -> bool:
    return a.keys() == b.keys() and all(bool((a[key] == b[key]).all()) for key in a)


def rollouts(run: Run, agent: str) -> pd.DataFrame:
    return pd.concat(pd.read_parquet(path) for path in run.rollout_files(agent))


def agents_alive(with_helpers: bool = True) -> list[psutil.Process]:
    """Agents that still run, and what they have started (a grader, once an answer is hard to read): whatever the fork server of
    this process has as children or, with helpers, as descendants."""
    server = forkserver._forkserver._forkserver_pid
    family = psutil.Process(server).children(recursive=with_helpers) if server else []
    return [process for process in family if process.is_running() and process.status() != psutil.STATUS_ZOMBIE]


@pytest.mark.parametrize("method", ["corl", "ttrl", "ground_truth"])
def test_each_method_moves_every_agent_and_leaves_a_whole_record(method, small_run, base_models, tmp_path):
    run = train(small_run(method), tmp_path)
    for agent, base in (("a", base_models["llama"]), ("b", base_models["qwen2"])):
        assert not same(weights(run, agent), load_file(base / "model.safetensors"))
        lines = Tail(run.journal_paths()[agent]).read()
        assert [line["step"] for line in lines if line["event"] == "step"] == [0, 1, 2, 3]
        assert [line["step"] for line in lines if line["event"] == "eval"] == [0, 2, 4]
        rows = rollouts(run, agent)
        assert index.load(run.agent_path(agent), run.config.num_votes).num_new == 0  # made as the run ended
        assert len(rows) == 4 * 4 * 8 and set(rows["agent"]) == {agent} and set(rows["step"]) == {0, 1, 2, 3}
        graded = rows[rows["pseudo_label"].notna()]
        assert ((graded["key"] == graded["pseudo_label"]) == (graded["reward"] == 1)).all()
    report = results(run)
    assert {"eval/accuracy", "eval/majority_accuracy"} <= set(report["agents"]["b"]["last"])
    assert report["agents"]["a"]["first"]["step"] == 0 and report["agents"]["a"]["last"]["step"] == 4


def test_the_labels_of_a_ring_are_the_predecessors_votes(small_run, base_models, tmp_path):
    agents = ", ".join(f"{{name: {n}, model: {base_models[m]}}}" for n, m in (("a", "llama"), ("b", "qwen2"), ("c", "llama")))
    run = train(small_run(agents=f"[{agents}]", ring="[c, a, b]", eval__num_questions=0), tmp_path)
    votes = {
        agent: {line["step"]: line["votes"] for line in Tail(run.journal_paths()[agent]).read() if line["event"] == "step"}
        for agent in "abc"
    }
    for agent, peer in (("a", "c"), ("b", "a"), ("c", "b")):
        rows = rollouts(run, agent)
        for step, cast in votes[peer].items():
            got = rows[rows["step"] == step].drop_duplicates("question_id", keep="first")["pseudo_label"]
            assert [None if pd.isna(label) else label for label in got] == cast
    assert votes["a"] != votes["c"], "equal models must draw different rollouts"


def test_more_completions_vote_than_train(small_run, tmp_path):
    run = train(small_run(vote__num_votes=16, eval__num_questions=0), tmp_path)
    for agent, peer in (("a", "b"), ("b", "a")):
        rows = rollouts(run, agent)
        assert len(rows) == 4 * 4 * 16 and rows["trained"].sum() == 4 * 4 * 8
        sent = [vote for line in Tail(run.journal_paths()[peer]).read() if line["event"] == "step" for vote in line["votes"]]
        received = rows.groupby(["step", "question_id"], sort=False)["pseudo_label"].first()
        assert [None if pd.isna(label) else label for label in received] == sent


def test_equal_seeds_repeat_a_run_exactly_and_other_seeds_do_not(small_run, tmp_path):
    first, again, other = (train(small_run(seed=seed), tmp_path) for seed in (3, 3, 4))
    for agent in "ab":
        pd.testing.assert_frame_equal(rollouts(first, agent), rollouts(again, agent))
        assert same(weights(first, agent), weights(again, agent))
        assert not same(weights(first, agent), weights(other, agent))
    assert results(first)["agents"] == results(again)["agents"]


def test_updates_that_reuse_rollouts_are_steps_too(small_run, tmp_path):
    run = train(small_run(grpo__num_iterations=2, eval__num_questions=0), tmp_path)
    lines = Tail(run.journal_paths()["a"]).read()
    written = [(line["event"], line["step"]) for line in lines if line["event"] in ("step", "update")]
    assert written == [("step", 0), ("update", 1), ("step", 2), ("update", 3)]


def test_evaluating_more_often_changes_no_rollout(small_run, tmp_path):
    often, never = train(small_run(eval__every_steps=1), tmp_path), train(small_run(eval__num_questions=0), tmp_path)
    assert same(weights(often, "a"), weights(never, "a"))
    assert results(never)["agents"]["a"]["first"] == {}


@pytest.fixture
def question_files(tmp_path) -> dict[str, str]:
    """One set of questions three times: with its answers, with others' answers, and without any."""
    questions = arithmetic.questions(16, 0, "train")
    answers = [question.answer for question in questions]
    files = {}
    for name, column in (("right", answers), ("scrambled", answers[5:] + answers[:5]), ("removed", None)):
        rows = [{"question": q.question} | ({"answer": column[i]} if column else {}) for i, q in enumerate(questions)]
        files[name] = str(tmp_path / f"{name}.jsonl")
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return files


@pytest.mark.parametrize("method", ["corl", "ttrl"])
def test_a_label_free_reward_never_reads_the_truth(method, small_run, question_files, tmp_path):
    runs = {name: train(small_run(method, data__train=path), tmp_path) for name, path in question_files.items()}
    for agent in "ab":
        rewards = {name: rollouts(run, agent)["reward"].to_numpy().tobytes() for name, run in runs.items()}
        assert rewards["right"] == rewards["scrambled"] == rewards["removed"]
        assert 0 < rollouts(runs["right"], agent)["reward"].mean() < 1
        assert same(weights(runs["right"], agent), weights(runs["scrambled"], agent))
        assert same(weights(runs["right"], agent), weights(runs["removed"], agent))
        measured = Tail(runs["removed"].journal_paths()[agent]).read()
        assert not any("pseudo_label_accuracy" in line.get("metrics", {}) for line in measured)


def test_supervised_training_does_read_the_truth(small_run, question_files, tmp_path):
    """The check above can fail: this method's weights do depend on the answers."""
    right, scrambled = (train(small_run("ground_truth", data__train=question_files[n]), tmp_path) for n in ("right", "scrambled"))
    assert not same(weights(right, "a"), weights(scrambled, "a"))


class Background:
    """A supervisor in a thread of this process, so that a test can do harm to its agents."""

    def __init__(self, config, runs_dir):
        self.run = launch.create(config, runs_dir)
        self.supervisor = Supervisor(self.run)
        self.thread = threading.Thread(target=self.supervisor.run)
        self.thread.start()

    def has_reached(self, step: int) -> bool:
        """Whether it trains and is that far; then both agents must be seen, or `end` would prove nothing."""
        far = self.supervisor.status.state == "running" and self.run.status().step >= step
        assert not far or len(agents_alive(with_helpers=False)) == 2
        return far

    def end(self, timeout_s: float = 60.0):
        self.thread.join(timeout_s)
        assert not self.thread.is_alive()
        assert agents_alive() == []
        return self.run.status()


LONG = {"grpo__max_steps": 2000, "eval__num_questions": 0}


def test_killing_an_agent_ends_the_run_with_its_name_and_round(small_run, tmp_path, wait_for):
    background = Background(small_run(**LONG), tmp_path)
    wait_for(lambda: background.has_reached(3), "step 3")
    os.kill(background.supervisor._agents["b"].process.process.pid, signal.SIGKILL)
    status = background.end()
    assert status.state == "failed"
    assert status.reason.startswith("agent 'b' was killed by SIGKILL in round ")
    assert int(status.reason.rsplit(" ", 1)[1]) >= 3
    last = Tail(background.run.journal_paths()["a"]).read()[-1]  # it learned why while it waited, or was between two waits
    assert last["event"] == "end" or "agent 'b' was killed by SIGKILL" in last["message"]


def test_an_agent_that_hangs_is_named_by_the_one_that_waits(small_run, tmp_path, wait_for):
    background = Background(small_run(exchange__timeout_s=2, **LONG), tmp_path)
    wait_for(lambda: background.has_reached(3), "step 3")
    os.kill(background.supervisor._agents["b"].process.process.pid, signal.SIGSTOP)
    status = background.end()
    assert (status.state, status.cause) == ("failed", "peer lost")
    assert "agent 'a' had no votes from its peer 'b' within 2 s" in status.reason and "round" in status.reason


def test_a_stop_ends_after_the_current_step_and_keeps_what_was_learned(small_run, tmp_path, wait_for):
    background = Background(small_run(**LONG), tmp_path)
    wait_for(lambda: background.has_reached(3), "step 3")
    asked = time.monotonic()
    launch.stop(background.run)
    status = background.end()
    assert (status.state, status.reason) == ("stopped", "")
    assert time.monotonic() - asked < 15
    assert weights(background.run, "a") and len(rollouts(background.run, "b")) >= 3 * 32


def test_different_questions_end_the_run_with_both_names(small_run, tmp_path, monkeypatch):
    """An agent that reads other data than its peer is caught by the digest, before any update."""
    run = launch.create(small_run(), tmp_path)
    supervisor = Supervisor(run)
    start = supervisor._start

    def start_with_other_data(name):
        config = run.config.model_copy(update={"seed": 1 if name == "b" else 0})
        (run.path / "run.yaml").write_text(config.to_yaml())
        made = start(name)
        time.sleep(6)  # until the agent has read its configuration
        return made

    monkeypatch.setattr(supervisor, "_start", start_with_other_data)
    status = supervisor.run()
    assert status.state == "failed" and "drew different questions" in status.reason and "round 0" in status.reason
    assert "'a'" in status.reason and "'b'" in status.reason and agents_alive() == []


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("agents", "[{name: a, model: EMPTY}, {name: b, model: EMPTY}]", "cannot load model='EMPTY'"),
        ("data__train", "nowhere.jsonl", "there is no such file"),
    ],
)
def test_what_cannot_be_loaded_fails_with_a_sentence_and_no_traceback(field, value, message, small_run, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    run = launch.create(small_run(**{field: value.replace("EMPTY", str(empty))}), tmp_path / "runs")
    status = Supervisor(run).run()
    assert status.state == "failed" and message.replace("EMPTY", str(empty)) in status.reason
    assert "Traceback" not in run.log_tail("a") and agents_alive() == []
