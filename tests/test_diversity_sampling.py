"""Candidates: what is asked, sampling in a process of its own, what is kept; and the check of the predictions."""

import json
import os
from collections import Counter

import psutil
import pytest
import torch

from corl_core.bench import pairs as bench
from corl_core.cli import main
from corl_core.config import ConfigError
from corl_core.diversity import jobs
from corl_core.diversity.reading import read_answers
from corl_core.diversity.request import request
from corl_core.runs.folder import all_runs, read_status, start_of, write_status
from corl_core.runs.launch import LaunchError

SMALL = ["data.prompt_template={question}", "grpo.max_completion_length=24", "device=cpu"]


def test_a_candidate_for_each_model_seed_and_wording_with_a_name_of_its_own():
    asked = request(["tiny:llama", "tiny:qwen2@careless"], seeds=[0, 1], paraphrases=True)
    assert [agent.name for agent in asked.agents] == [
        "llama-s0", "llama-s0-re", "llama-s1", "llama-s1-re",
        "qwen2-careless-s0", "qwen2-careless-s0-re", "qwen2-careless-s1", "qwen2-careless-s1-re",
    ]  # fmt: skip
    assert asked.agents[5].school == "careless" and asked.agents[5].paraphrase and asked.agents[7].seed == 1


def test_models_from_elsewhere_are_named_after_themselves_and_asked_in_the_default_words():
    asked = request(["Qwen/Qwen2.5-0.5B@main", "/models/Llama-3.2-1B"], "questions.jsonl", 50, 4)
    assert [agent.name for agent in asked.agents] == ["qwen2-5-0-5b", "llama-3-2-1b"]
    assert asked.agents[0].revision == "main" and "boxed" in asked.data.prompt_template
    assert jobs.num_completions(asked) == 2 * 50 * 4


def test_tiny_models_on_arithmetic_are_asked_as_the_demo_asks():
    asked = request(["tiny:llama", "tiny:qwen2"])
    assert asked.data.prompt_template == "{question}" and asked.grpo.max_completion_length == 24


@pytest.mark.parametrize("models", [["tiny:llama"], ["tiny:lama", "tiny:qwen2"], ["tiny:llama@nowhere", "tiny:qwen2"]])
def test_what_cannot_be_sampled_is_refused(models):
    with pytest.raises(ConfigError):
        request(models)


@pytest.fixture
def job(tmp_path) -> jobs.Job:
    return jobs.create(request(["tiny:llama", "tiny:qwen2"], num_questions=10), tmp_path)


def test_a_sampling_is_kept_apart_from_runs(job, tmp_path):
    assert jobs.all_jobs(tmp_path) == [job] and all_runs(tmp_path) == []
    assert job.request == request(["tiny:llama", "tiny:qwen2"], num_questions=10)
    assert job.status().state == "starting" and job.status().max_steps == 2 * 10 * 8 and job.answers is None


def test_jobs_are_found_by_the_start_of_their_id_and_damaged_ones_hide_no_other(job, tmp_path):
    assert jobs.find_job(tmp_path, job.id[:-1]) == job and jobs.find_job(tmp_path, "") is None
    (tmp_path / "diversity" / "broken").mkdir()
    (tmp_path / "diversity" / "broken" / "request.yaml").write_text("agents: [")
    assert jobs.all_jobs(tmp_path) == [job]


def test_a_process_that_is_gone_has_failed_and_one_that_runs_can_be_stopped_but_not_deleted(job):
    me = psutil.Process(os.getpid())
    alive = read_status(job.path).__dict__ | {"state": "running", "pid": me.pid, "pid_created": start_of(me)}
    write_status(job.path, type(read_status(job.path))(**alive))
    assert job.status().state == "running"
    with pytest.raises(LaunchError, match="stop it first"):
        jobs.delete(job)
    jobs.stop(job)
    assert job.status().state == "stopping"
    write_status(job.path, type(read_status(job.path))(**alive | {"pid_created": start_of(me) - 100}))
    assert (job.status().state, job.status().reason) == ("failed", "the sampling process was killed")
    jobs.delete(job)
    assert not job.path.exists()


def test_a_clock_that_is_set_ends_no_sampling(job, tmp_path, monkeypatch):
    import psutil._pslinux as linux

    class Started:
        pid = os.getpid()  # a process that lives

        def __init__(self, command, **options):
            pass

    monkeypatch.setattr(jobs.subprocess, "Popen", Started)
    launched = jobs.launch(job.request, tmp_path)
    boot_time = linux.boot_time
    for shift_s in (86_400.0, -86_400.0):
        monkeypatch.setattr(linux, "boot_time", lambda shift_s=shift_s: boot_time() + shift_s)
        assert launched.status().state == "starting"


@pytest.mark.training
def test_candidates_are_sampled_in_the_background_and_the_answers_are_kept(base_models, tmp_path, wait_for, capsys):
    models = [str(path) for path in base_models.values()]
    job = jobs.launch(request(models, "arithmetic", 12, 4, overrides=SMALL), tmp_path)
    assert os.getsid(job.status().pid) == job.status().pid  # a session of its own
    wait_for(lambda: job.status().final, "the sampling to end")
    assert job.status().state == "finished", job.log_tail()
    assert job.status().step == job.status().max_steps == 2 * 12 * 4
    answers = read_answers(job.answers)
    assert answers.models == tuple(agent.name for agent in job.request.agents)
    assert answers.codes.shape == (2, 12, 4) and answers.num_labelled == 12 and (answers.codes != -2).all()
    assert main(["diversity", "--runs", str(tmp_path), "--answers", job.id, "--json", "--no-predictions"]) == 0
    assert len(json.loads(capsys.readouterr().out)["seeds_only"]) == 2


@pytest.mark.training
def test_equal_models_with_other_seeds_give_other_samples_and_equal_seeds_equal_ones(base_models):
    from corl_core.training.candidates import questions_of, sample

    asked = request([str(base_models["llama"])], "arithmetic", 6, 4, seeds=[0, 1], overrides=SMALL)

    def texts(place: int) -> list[str]:
        rows = sample(asked, asked.agents[place], questions_of(asked), "cpu", lambda *_: None, lambda _: None)
        return [row["completion"] for row in rows]

    assert texts(0) == texts(0) != texts(1)


def test_candidates_are_sampled_in_the_precision_that_the_run_will_have(monkeypatch):
    from corl_core.training import candidates

    class Asked(Exception):
        pass

    def sampler(*_, **options):
        raise Asked(options)

    monkeypatch.setattr(candidates, "Sampler", sampler)
    monkeypatch.setattr(candidates.models, "load", lambda *_: (torch.nn.Linear(1, 1), None))
    monkeypatch.setattr(candidates.models, "is_templated", lambda *_: False)
    for bf16 in (True, False):
        wanted = ["device=auto", f"grpo.bf16={bf16}", "rollouts.keep_cache=false"]
        asked = request(["a/b", "c/d"], "arithmetic", 6, overrides=wanted)
        with pytest.raises(Asked) as options:
            list(candidates.sample(asked, asked.agents[0], [], "cpu", lambda *_: None, lambda _: None))
        assert options.value.args == ({"bf16": bf16, "keep": False},)


def test_questions_are_drawn_once_each_from_the_whole_source(tmp_path):
    from corl_core.training.candidates import questions_of

    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps({"question": f"{n % 30} + 1?", "answer": n % 30 + 1}) + "\n" for n in range(60)))
    asked = request(["a/b", "c/d"], str(path), 10)
    drawn = questions_of(asked)
    assert len(drawn) == 10 and max(Counter(question.id for question in drawn).values()) == 1
    assert drawn == questions_of(asked) and {q.question for q in drawn} != {f"{n} + 1?" for n in range(10)}


@pytest.mark.training
def test_a_model_that_cannot_be_loaded_ends_the_sampling_with_the_reason(tmp_path, wait_for):
    job = jobs.launch(request([str(tmp_path / "no-such-model"), str(tmp_path / "nor-this")], num_questions=2), tmp_path)
    wait_for(lambda: job.status().final, "the sampling to end")
    assert job.status().state == "failed" and "cannot load model" in job.status().reason


# ---- bench pairs


def row(models: str, predicted: tuple[float, ...], measured: tuple[float, ...], **rules: float) -> bench.Row:
    values = dict.fromkeys(bench.RULES, 0.0) | {"theory": sum(predicted) / len(predicted)} | rules
    return bench.Row(0, tuple(models), (0.6,) * len(models), (0.7,) * len(models), predicted, measured, values, False)


def test_ranks_and_errors_are_those_worked_out_by_hand():
    rows = [
        row("ab", (0.9, 0.7), (0.9, 0.9), base=3),
        row("ac", (0.6, 0.6), (0.5, 0.5), base=2),
        row("bc", (0.5, 0.5), (0.6, 0.6), base=1),
    ]
    found = {check.what: check for check in bench.checks(rows)}
    # mean predicted .8 .6 .5, measured .9 .5 .6: ranks 3 2 1 against 3 1 2; 1 − 6·2/(3·8) = .5; errors .1 .1 .1
    assert found["theory, pairs"].rank_correlation == pytest.approx(0.5)
    assert found["theory, pairs"].mean_absolute_error == pytest.approx(0.1)
    assert found["theory, rings"].num == 0 and found["theory, rings"].rank_correlation is None
    assert found["theory, every agent"].num == 6
    assert found["theory, every agent"].mean_absolute_error == pytest.approx((0 + 0.2 + 0.4) / 6)
    assert found[f"rule: {bench.RULES['base']}"].rank_correlation == pytest.approx(0.5)
    assert found[f"rule: {bench.RULES['union']}"].rank_correlation is None  # does not vary


def test_the_table_has_every_cohort_the_best_first():
    text = bench.table([row("ab", (0.5, 0.5), (0.5, 0.5)), row("abc", (0.9, 0.9, 0.9), (0.8, 0.8, 0.8))])
    assert text.index("a → b → c") < text.index("a × b") and "0.90 → 0.80" in text


def test_cohorts_train_as_the_demo_pair_and_the_same_rings_are_chosen_every_time():
    config = bench.training(bench.BASES, 1, ("llama-1", "qwen2-careless"), ["grpo.max_steps=5"])
    assert config.preset == "demo-pair" and config.seed == 1 and config.grpo.max_steps == 5
    assert config.agent("llama-1").seed == 1 and config.agent("qwen2-careless").school == "careless"
    assert config.peers() == {"llama-1": "qwen2-careless", "qwen2-careless": "llama-1"}
    assert bench.chosen_rings(6, 8) == bench.chosen_rings(6, 8) and len(set(bench.chosen_rings(6, 8))) == 8


def test_a_ring_is_trained_in_the_direction_that_is_predicted():
    """`forecast` rewards each model by the one before it, the first by the last; so does the ring of a run."""
    assert bench.training(bench.BASES, 0, ("llama", "gpt_neox", "qwen2")).peers() == {
        "gpt_neox": "llama", "qwen2": "gpt_neox", "llama": "qwen2",
    }  # fmt: skip
