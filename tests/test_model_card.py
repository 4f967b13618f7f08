"""The model card: everything it must state, valid front matter, and a person's words as words."""

import pytest
import yaml
from huggingface_hub import ModelCard

from corl_core.config import RunConfig
from corl_core.runs.folder import Run
from corl_core.runs.journal import Journal
from corl_core.training import model_card

HOSTILE = "</h1><script>alert(1)</script> [x](javascript:alert(1)) `a` **b**\n---\nlicense: mit\n# c | d"


@pytest.fixture
def card(tmp_path):
    """A function that writes the card of an agent of a run whose journal holds two evaluations; returns it, parsed."""

    def make(agent: str = "a", folder: str = "model", chosen: dict | None = None, **fields) -> ModelCard:
        agents = [
            {"name": "a", "model": "Qwen/Qwen2.5-0.5B-Instruct", "revision": "abc123", "temperature": 0.7},
            {"name": "b", "model": str(tmp_path / "secret" / "llama"), "lora": {"r": 8, "lora_alpha": 16}},
            {"name": "c", "model": "tiny:qwen2"},
        ]
        values = {"name": "two families", "agents": agents, "data": {"train": "openai/gsm8k", "config": "main"}}
        config = RunConfig.model_validate(values | fields)
        path = tmp_path / f"run{len(list(tmp_path.iterdir()))}"
        (path / "agents" / agent / folder).mkdir(parents=True)
        (path / "run.yaml").write_text(config.to_yaml(), encoding="utf-8")
        run = Run(path)
        journal = Journal(run.journal_paths()[agent])
        for step, accuracy in ((0, 0.25), (50, 0.75), (200, 0.5)):
            journal.write("eval", step=step, metrics={"eval/accuracy": accuracy, "eval/majority_accuracy": accuracy + 0.125})
        if chosen:
            journal.write("checkpoint", **chosen)
        model_card.write(run.agent_path(agent) / folder, run, agent, 200, num_questions=7_473)
        return ModelCard.load(run.agent_path(agent) / folder / "README.md")

    return make


def test_it_states_cohort_method_data_results_and_how_to_load_it(card):
    made = card(chosen={"step": 50, "rule": "peer_agreement", "value": 0.9, "uses_truth": False})
    said = made.text.replace("\\", "")
    for words in (
        "agent a", "Co-RL", "revision abc123", "after 50 of 200 updates", "which needs no labels", "a from c",
        "7,473 different ones", "not read by the training",
        "| after 0 updates | after 50 updates | after 200 updates |",
        "| Accuracy of sampled answers | 0.250 | 0.750 | 0.500 |",
        "| Temperature | 0.7 |", "8 × 8", "AutoModelForCausalLM.from_pretrained(folder)", "2608.17253",
        "base model's licence", "school forgets-carry",
    ):  # fmt: skip
        assert words in said, words


def test_the_front_matter_is_what_the_hub_reads(card):
    data = card().data
    assert data.base_model == "Qwen/Qwen2.5-0.5B-Instruct" and data.datasets == ["openai/gsm8k"]
    assert (data.library_name, data.pipeline_tag) == ("transformers", "text-generation")
    assert {"co-rl", "grpo", "corl"} <= set(data.tags) and data.license is None


def test_what_has_no_id_on_the_hub_is_not_named_as_if_it_had(card, tmp_path):
    made = card("b", data={"train": str(tmp_path / "secret" / "questions.jsonl")})
    assert made.data.base_model is None and made.data.datasets is None
    assert "secret" not in made.content and "questions.jsonl" in made.text and "LoRA, rank 8, alpha 16" in made.text
    assert "`adapter/`" in made.text


def test_true_answers_are_told_where_they_were_used(card):
    assert "True answers: the reward" in card(method="ground_truth").text
    chosen = {"step": 50, "rule": "ground_truth", "value": 0.7, "uses_truth": True}
    made = card(eval={"checkpoint": "ground_truth"}, chosen=chosen)
    assert "which used true answers" in made.text and "True answers of held-out questions chose the weights" in made.text


def test_a_snapshot_says_its_own_step_and_no_rule(card):
    made = card(folder="step-000200", chosen={"step": 50, "rule": "peer_agreement", "value": 0.9, "uses_truth": False})
    assert "after 200 of 200 updates" in made.text and "Weights kept" not in made.text


def test_words_of_a_person_are_words_and_never_markup_or_yaml(card):
    data = {"train": "openai/gsm8k", "prompt_template": "```\n</script>{question}", "system_prompt": HOSTILE}
    made = card(name=HOSTILE[:80], data=data)
    keys = yaml.safe_load(made.content.split("---")[1]).keys()
    assert keys <= {"base_model", "datasets", "library_name", "pipeline_tag", "tags"}
    title = made.text.strip().splitlines()[0]
    assert title.startswith("# \\<") and "\\<script\\>" in title and "\\[x\\]\\(javascript\\:" in title
    assert "````text\n```\n</script>{question}\n````" in made.text, "the fence is longer than what is inside"
    assert f"```text\n{HOSTILE}\n```" in made.text


def test_an_evaluation_is_one_column_however_often_it_is_named():
    lines = [{"step": step, "metrics": {"eval/accuracy": step / 4}} for step in (1, 2, 3)]
    one = model_card._results(lines[:1], {"step": 1, "rule": "ground_truth"})
    assert "| Accuracy of sampled answers | 0.250 |\n" in one and "| Held-out questions | after 1 updates |\n" in one
    last = model_card._results(lines, {"step": 3, "rule": "last"})
    assert "| Accuracy of sampled answers | 0.250 | 0.750 |\n" in last
    unmeasured = model_card._results(lines, {"step": 9, "rule": "last"})
    assert "| Held-out questions | after 1 updates | after 3 updates |\n" in unmeasured


def test_without_known_answers_it_says_so():
    said = model_card._results([{"step": 0, "metrics": {}}], {})
    assert said == "Nothing was measured on held-out questions with known answers."
