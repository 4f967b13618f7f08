"""Every method trains for real for a few steps under the same rules, and what should follow from its rule does."""

import json

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from corl_core.answers import answer
from corl_core.config import load_config
from corl_core.rewards import ttrl
from corl_core.rewards.matching import rewards
from corl_core.runs import launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import Tail
from corl_core.runs.results import results
from corl_core.runs.supervisor import Supervisor
from corl_core.training.teacher import Teacher
from corl_core.training.whole import refresh, whole_model
from corl_core.votes import vote

pytestmark = pytest.mark.training

ALONE = "[{name: a, model: %s}]"
LABEL_FREE = ["intuitor", "rent", "co_rewarding_1", "co_rewarding_2", "random", "format"]


@pytest.fixture
def trained(small_run, base_models, tmp_path):
    """A function that trains one agent alone (or two, for a ring) by a method; three steps."""

    def train(method: str, **fields) -> Run:
        alone = {} if method in ("corl", "weighted") else {"agents": ALONE % base_models["llama"]}
        config = small_run(method, **({"grpo__max_steps": 3, "eval__num_questions": 0} | alone | fields))
        run = launch.create(config, tmp_path)
        status = Supervisor(run).run()
        assert (status.state, status.reason) == ("finished", ""), run.log_tail("a")
        return run

    return train


def rows(run: Run, agent: str = "a") -> pd.DataFrame:
    return pd.concat(pd.read_parquet(path) for path in run.rollout_files(agent))


def steps(run: Run, agent: str = "a") -> list[dict]:
    return [line for line in Tail(run.journal_paths()[agent]).read() if line["event"] == "step"]


def weights(run: Run, agent: str = "a") -> dict:
    return load_file(run.agent_path(agent) / "model" / "model.safetensors")


def equal(a: dict, b: dict) -> bool:
    return all(bool((a[key] == b[key]).all()) for key in a)


@pytest.fixture
def worded_questions(tmp_path) -> dict[str, str]:
    """Questions with a paraphrase each, three times: with their answers, with others', and without."""
    pairs = [(10 + n, 30 + n) for n in range(11, 27)]
    answers, files = [str(a + b) for a, b in pairs], {}
    for name, column in (("right", answers), ("scrambled", answers[5:] + answers[:5]), ("removed", None)):
        made = [{"question": f"{a}+{b}=", "paraphrase": f"{b}+{a}="} | ({"answer": column[i]} if column else {})
                for i, (a, b) in enumerate(pairs)]  # fmt: skip
        files[name] = str(tmp_path / f"{name}.jsonl")
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in made))
    return files


@pytest.mark.parametrize("method", LABEL_FREE)
def test_no_label_free_method_reads_the_truth_and_each_moves_the_weights(method, trained, worded_questions, base_models):
    runs = {name: trained(method, data__train=path) for name, path in worded_questions.items()}
    rewarded = {name: rows(run)["reward"].to_numpy().tobytes() for name, run in runs.items()}
    assert rewarded["right"] == rewarded["scrambled"] == rewarded["removed"]
    assert equal(weights(runs["right"]), weights(runs["scrambled"])) and equal(weights(runs["right"]), weights(runs["removed"]))
    assert rows(runs["right"])["reward"].std() > 0
    assert not equal(weights(runs["right"]), load_file(base_models["llama"] / "model.safetensors"))


def test_all_methods_are_asked_the_same_and_cost_the_same(trained, worded_questions):
    """First step's questions and number of completions: only Co-rewarding-I asks half of them, each in both wordings."""
    asked = {m: rows(trained(m, data__train=worded_questions["right"], grpo__max_steps=1)) for m in ("ttrl", *LABEL_FREE)}
    for method, frame in asked.items():
        assert len(frame) == 4 * 8, method
        if method != "co_rewarding_1":
            pd.testing.assert_series_equal(frame["question_id"], asked["ttrl"]["question_id"])
            assert list(frame["completion"]) == list(asked["ttrl"]["completion"]), method  # the same base model, the same seed
    first, second = (group for _, group in asked["co_rewarding_1"].groupby(asked["co_rewarding_1"]["group"] // 2))
    for pair in (first, second):
        assert pair["question_id"].nunique() == 1 and pair["question"].nunique() == 2
    assert list(dict.fromkeys(asked["co_rewarding_1"]["question_id"])) == list(dict.fromkeys(asked["ttrl"]["question_id"]))[:2]


def test_the_labels_of_co_rewarding_1_are_the_votes_of_the_other_wording(trained, worded_questions):
    run = trained("co_rewarding_1", data__train=worded_questions["right"])
    for line in steps(run):
        frame = rows(run)
        labels = frame[frame["step"] == line["step"]].groupby("group")["pseudo_label"].first()
        votes = line["votes"]
        assert [None if pd.isna(label) else label for label in labels] == [votes[i ^ 1] for i in range(4)]


def test_rewards_recomputed_from_recorded_rollouts_are_those_that_were_given(trained):
    frame = rows(trained("ttrl"))
    for _, group in frame.groupby(["step", "group"]):
        answers = [answer(text) if isinstance(text, str) else None for text in group["answer"]]
        (label,) = ttrl.pseudo_labels([vote(answers)])
        expected = rewards(answers, label)
        assert list(group["reward"]) == list(expected) if expected else group["reward"].isna().all()


def test_a_teacher_frozen_at_the_start_keeps_labelling_with_the_base_model(trained, base_models):
    """alpha = 0: whatever the agent learns, the teacher's weights stay the base model's, and so do its labels."""
    fields = {"grpo__learning_rate": 1e-2, "grpo__questions_per_step": 2, "data__num_questions": 2, "vote__num_votes": 32}
    run = trained("co_rewarding_2", signal__alpha_start=0.0, signal__alpha_end=0.0, **fields)
    model, tokenizer = (kind.from_pretrained(base_models["llama"]) for kind in (AutoModelForCausalLM, AutoTokenizer))
    tokenizer.padding_side = "left"
    frozen, frame = Teacher(model, tokenizer, run.config, "a"), rows(run)
    for step, of_step in frame.groupby("step"):
        heads = of_step.drop_duplicates("group")
        assert len(of_step) == 2 * 8  # the 32 votes a question are the teacher's; the agent samples what it trains on
        expected = [cast.key for cast in frozen.votes(step, list(heads["question"]))]
        assert [None if pd.isna(label) else label for label in heads["pseudo_label"]] == expected
    assert not equal(weights(run), load_file(base_models["llama"] / "model.safetensors"))


def test_a_teacher_follows_the_agent_by_its_share(base_models, small_run):
    policy, tokenizer = (kind.from_pretrained(base_models["llama"]) for kind in (AutoModelForCausalLM, AutoTokenizer))
    config = small_run("co_rewarding_2")
    teacher = Teacher(policy, tokenizer, config, "a")
    name, start = next((name, p.detach().clone()) for name, p in policy.named_parameters())
    with torch.no_grad():
        dict(policy.named_parameters())[name].add_(1.0)
    teacher.follow(0.25)
    moved = dict(teacher.model.named_parameters())[name]
    torch.testing.assert_close(moved, start + 0.25)  # .25 * (start + 1) + .75 * start
    assert not moved.requires_grad
    teacher.follow(1.0)
    torch.testing.assert_close(moved, start + 1.0)


def test_a_teacher_of_an_agent_whose_weights_are_split_has_weights_of_its_own_and_shows_that_it_samples(base_models, small_run):
    """It copies the whole model that the agent samples from."""
    trained, tokenizer = (kind.from_pretrained(base_models["llama"]) for kind in (AutoModelForCausalLM, AutoTokenizer))
    tokenizer.padding_side, ticks = "left", []
    config = small_run("co_rewarding_2", rollouts__keep_cache="true")
    policy = whole_model(trained, is_split=True)
    teacher = Teacher(policy, tokenizer, config, "a", tick=lambda: ticks.append(1))
    mine, its = dict(teacher.model.named_parameters()), dict(policy.named_parameters())
    assert mine.keys() == its.keys() and all(mine[name] is not its[name] for name in mine)
    name, start = next((name, weight.detach().clone()) for name, weight in mine.items())
    with torch.no_grad():
        dict(trained.named_parameters())[name].add_(1.0)
    refresh(policy, trained)
    teacher.follow(0.25)
    torch.testing.assert_close(mine[name], start + 0.25)  # .75 * start + .25 * (start + 1)
    teacher.votes(0, ["12+34="])
    assert ticks and teacher._sampler._static == {"bf16": False, "keep": True, "tick": teacher._sampler._static["tick"]}
    assert teacher._sampler._static["tick"] is not None


def test_rent_lowers_the_entropy_and_intuitor_raises_the_certainty(trained):
    """One batch of questions, seen again and again: what each method is paid for goes up."""
    fields = {"grpo__max_steps": 25, "grpo__learning_rate": 2e-3, "data__num_questions": 4, "grpo__max_completion_length": 16}
    for method, metric, sign in (("rent", "entropy", -1), ("intuitor", "self_certainty", 1)):
        values = [line["metrics"][metric] for line in steps(trained(method, **fields))]
        assert sign * (sum(values[-5:]) - sum(values[:5])) / 5 > 0.02, (method, values)
        rewarded = [line["metrics"]["reward"] for line in steps(trained(method, **fields))]
        assert rewarded[-1] > rewarded[0]


def test_format_reward_teaches_the_box(trained):
    fields = {"grpo__max_steps": 30, "grpo__learning_rate": 1e-3, "grpo__temperature": 1.4}
    values = [line["metrics"]["reward"] for line in steps(trained("format", **fields))]
    assert sum(values[-5:]) / 5 > sum(values[:5]) / 5 + 0.05, values


def test_a_weighted_sum_has_a_curve_for_each_signal_and_adds_them(trained):
    run = trained("weighted", signal__weights="{corl: 1.0, format: 0.25}")
    for line in steps(run):
        metrics = line["metrics"]
        assert metrics["reward"] == pytest.approx(metrics["reward/corl"] + 0.25 * metrics["reward/format"], abs=1e-6)
        assert "pseudo_label_accuracy" in metrics
    assert set(rows(run)["reward"].dropna().unique()) <= {0.0, 0.25, 1.0, 1.25}


def test_it_trains_where_trl_gets_no_reward_for_groups_without_a_label(trained):
    run = trained("ttrl", vote__min_share=0.5, grpo__scale_rewards="batch")
    found = [(line["metrics"]["labeled_frac"], line["metrics"]["grad_norm"]) for line in steps(run)]
    assert any(0 < labelled < 1 and norm > 0 for labelled, norm in found), found
    assert "returned None" not in run.log_tail("a", 100_000)


def test_the_checkpoint_with_the_best_peer_agreement_is_kept_and_the_rule_is_written_down(trained):
    run = trained("corl", eval__num_questions=12, eval__every_steps=1, eval__checkpoint="peer_agreement")
    cohort = [line for line in Tail(run.journal_paths()[""]).read() if line["event"] == "eval"]
    agreement = {line["step"]: line["metrics"]["eval/agreement"] for line in cohort}
    best = max(agreement, key=lambda step: (agreement[step], step))  # of equal ones the latest
    for agent in "ab":
        (kept,) = [line for line in Tail(run.journal_paths()[agent]).read() if line["event"] == "checkpoint"]
        assert (kept["rule"], kept["step"], kept["uses_truth"]) == ("peer_agreement", best, False)
        assert kept["value"] == pytest.approx(agreement[best])
        assert not (run.agent_path(agent) / "best").exists()


def test_choosing_by_true_answers_is_said(trained):
    run = trained("ttrl", eval__num_questions=12, eval__every_steps=1, eval__checkpoint="ground_truth", eval__num_samples=4)
    lines = Tail(run.journal_paths()["a"]).read()
    accuracy = {line["step"]: line["metrics"]["eval/accuracy"] for line in lines if line["event"] == "eval"}
    (kept,) = [line for line in lines if line["event"] == "checkpoint"]
    best = max(accuracy, key=lambda step: (accuracy[step], step))
    assert (kept["rule"], kept["step"], kept["uses_truth"]) == ("ground_truth", best, True)
    assert results(run)["agents"]["a"]["checkpoint"] == {key: kept[key] for key in ("rule", "step", "value", "uses_truth")}
    assert AutoModelForCausalLM.from_pretrained(run.agent_path("a") / "model")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["method=intuitor", "vote.num_votes=16"], "method 'intuitor' needs no votes"),
        (["method=weighted"], "method 'weighted' needs weights"),
        (["method=ttrl", "signal.weights={ttrl: 1}"], "no other method has any"),
        (["method=weighted", "signal.weights={ttrl: 0}"], "at least one signal needs a weight other than 0"),
        (["method=weighted", "signal.weights={ttrl: 1, nope: 1}"], "nope"),
        (["method=co_rewarding_1", "grpo.questions_per_step=7"], "must be even with 'co_rewarding_1'"),
        (["method=co_rewarding_1", "agents.0.paraphrase=true"], "every agent reads both wordings"),
        (["method=ttrl", "eval.checkpoint=peer_agreement"], "has no peers; use 'last'"),
        (["eval.checkpoint=ground_truth", "eval.num_questions=0"], "eval.num_questions is 0; use 'last'"),
        (["ring={llama: qwen2, qwen2: llama, gpt_neox: gpt_neox}"], "'gpt_neox' would reward itself"),
        (["ring={llama: qwen2, qwen2: llama, gpt_neox: llama}"], "every agent must be the peer of exactly one other"),
    ],
)
def test_settings_that_do_not_go_together_are_refused_with_a_remedy(overrides, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        load_config("demo", overrides)
