"""Cohort picker page: files by path and upload, heat maps and their questions, without truth, samplings, setting up a cohort."""

import json
import time
from dataclasses import replace

import pyarrow as pa
import pytest
from pyarrow import parquet

from corl_core.diversity import jobs
from corl_core.diversity.request import request
from corl_core.runs.folder import read_status, write_status

NASTY = "<img src=x onerror=alert(1)> **b**"
SAMPLE = "Sample candidates"


def rows(truth: bool = True, models: str = "ab", samples: int = 1) -> list[dict]:
    """Ten questions: a is wrong on the first three, b on the last three, c on all."""
    wrong = {"a": range(3), "b": range(7, 10), "c": range(10)}
    return [
        {"question_id": f"q{n}", "question": f"{n} + 1? {NASTY}", "model": model}
        | {"answer": str(0 if n in wrong[model] else n + 1)} | ({"truth": str(n + 1)} if truth else {})
        for n in range(10) for model in models for _ in range(samples)
    ]  # fmt: skip


@pytest.fixture
def file(tmp_path):
    def write(content: list[dict]) -> str:
        path = tmp_path / "answers.jsonl"
        path.write_text("".join(json.dumps(row) + "\n" for row in content), encoding="utf-8")
        return str(path)

    return write


def told(text: str) -> str:
    return text.replace("\\", "")


def table(at, column: str):
    return next(element.value for element in at.dataframe if column in element.value.columns)


def matrices(at, models: list[str]) -> list:
    return [element.value for element in at.dataframe if list(element.value.columns) == models]


def test_a_first_visit_says_what_a_file_looks_like_and_shows_the_papers_pairs(app, empty_store, said):
    at = app(empty_store, "picker")
    assert not at.exception and not at.error
    assert "question_id" in at.code[0].value and "One row an answer" in said(at)
    assert len(table(at, "κ")) == 12


def test_a_file_gives_heat_maps_the_pairs_questions_and_the_edges(app, empty_store, file, said):
    at = app(empty_store, "picker", answers=file(rows()))
    assert not at.exception and not at.error
    kappa, c, w, agreement = matrices(at, ["a", "b"])
    # both right 4, only a 3, only b 3, both wrong 0: observed .4, chance .49 + .09 = .58, kappa −.18/.42
    assert kappa.loc["a", "b"] == kappa.loc["b", "a"] == pytest.approx(-0.18 / 0.42)
    assert c.loc["a", "b"] == pytest.approx(0.6) and w.loc["a", "b"] == 0 and agreement.loc["a", "b"] == pytest.approx(0.4)
    listed = table(at, "Who is right")
    assert listed["Who is right"].tolist() == ["only b right"] * 3 + ["both right"] * 4 + ["only a right"] * 3
    assert listed["Question"][0] == f"0 + 1? {NASTY}" and listed["Truth"][0] == "1"
    edges = table(at, "Peer → agent").set_index("Peer → agent")
    assert edges.loc["a → b", "Label accuracy"] == pytest.approx(0.7) and edges.loc["a → b", "Rights"] == 1.0
    assert "several samples a question" in said(at)  # there is one, so nothing is predicted


def test_other_measures_and_another_pair_can_be_chosen_and_are_in_the_url(app, empty_store, file):
    at = app(empty_store, "picker", answers=file(rows(models="abc")))
    at.selectbox(key="pair_a").set_value("c").run()
    assert table(at, "Who is right")["Who is right"].tolist() == ["only b right"] * 7 + ["both wrong, same answer"] * 3
    again = app(empty_store, "picker", answers=at.text_input(key="answers").value, pair_a="c", pair_b="a")
    assert again.selectbox(key="pair_a").value == "c" and again.selectbox(key="pair_b").value == "a"


def test_an_outcome_filters_the_questions(app, empty_store, file, said):
    at = app(empty_store, "picker", answers=file(rows()))
    pills = next(group for group in at.get("button_group") if "right" in group.proto.options[0].content)
    assert [told(option.content) for option in pills.proto.options] == ["both right: 4", "only a right: 3", "only b right: 3"]
    assert pills.proto.wrap  # long names of models would push the last choice off the page
    pills.set_value("only_a").run()
    assert table(at, "Who is right")["Who is right"].tolist() == ["only a right"] * 3 and "3 of 10 questions" in said(at)


def test_without_truth_only_agreement_is_shown_and_the_page_says_so(app, empty_store, file, said):
    at = app(empty_store, "picker", answers=file(rows(truth=False)))
    assert not at.exception and not at.error
    assert "No true answer is known" in said(at) and len(matrices(at, ["a", "b"])) == 1
    assert set(table(at, "Who is right")["Who is right"]) == {
        "same answer, truth unknown", "different answers, truth unknown",
    }  # fmt: skip
    assert not any("Peer → agent" in element.value.columns for element in at.dataframe)


def test_samples_give_votes_and_ranked_cohorts_with_warnings(app, empty_store, file, said):
    at = app(empty_store, "picker", answers=file(rows(models="ac", samples=3)), basis="Majority vote")
    assert not at.exception and not at.error
    ranked = table(at, "Predicted")
    assert ranked["Cohort"].tolist() == ["a × c"] and ranked[""][0] == "⚠"
    assert "under one half" in " ".join(told(element.value) for element in at.warning)


def test_a_pair_that_is_always_right_says_so_instead_of_nan(app, empty_store, file, said):
    same = [{**row, "answer": row["truth"]} for row in rows()]
    at = app(empty_store, "picker", answers=file(same))
    assert not at.exception and "both are right on every question" in told(said(at))
    assert "not defined" in table(at, "95% interval")["Value"].tolist()


@pytest.mark.parametrize("content", [[{"question_id": "q", "model": "a", "answer": "1"}], [{"x": 1}]])
def test_a_file_that_cannot_be_used_is_one_sentence(app, empty_store, file, content):
    at = app(empty_store, "picker", answers=file(content))
    assert not at.exception and len(at.error) == 1 and "answers" in told(at.error[0].value)


def test_a_missing_file_is_one_sentence(app, empty_store):
    at = app(empty_store, "picker", answers="nowhere.jsonl")
    assert not at.exception and "there is no such file" in told(at.error[0].value)


def test_an_upload_is_checked_and_analysed(app, empty_store):
    at = app(empty_store, "picker")
    content = "".join(json.dumps(row) + "\n" for row in rows()).encode()
    at.file_uploader[0].upload("mine.jsonl", content).run()
    assert not at.exception and not at.error and len(matrices(at, ["a", "b"])) == 4


def test_whoever_may_only_read_opens_no_file_by_its_path(app, empty_store, file, monkeypatch, said):
    monkeypatch.setenv("CORL_READ_ONLY", "1")
    at = app(empty_store, "picker", answers=file(rows()))
    assert not at.exception and "not read by path" in told(at.warning[0].value) and not matrices(at, ["a", "b"])


# ---- candidates


@pytest.fixture
def sampled(empty_store):
    """A sampling that has finished: a and b of the tiny families, two samples each."""
    asked = request(["tiny:llama", "tiny:qwen2"], num_questions=10, num_samples=2)
    job = jobs.create(asked, empty_store)
    names = {"a": "llama", "b": "qwen2"}
    content = [{**row, "model": names[row["model"]]} for row in rows(samples=2)]
    parquet.write_table(pa.Table.from_pylist(content), job.path / jobs.ANSWERS)
    now = time.time()
    write_status(job.path, replace(read_status(job.path), state="finished", step=40, max_steps=40, started=now - 9, ended=now))
    return job


def test_candidates_are_sampled_by_a_click_and_only_once(app, empty_store, monkeypatch, said):
    seen = []

    def launch(asked, runs_dir):
        seen.append(asked)
        return jobs.create(asked, runs_dir)

    monkeypatch.setattr(jobs, "launch", launch)
    at = app(empty_store, "picker", source=SAMPLE)
    assert "Nothing has been sampled yet" in said(at) and "4,800 completions" in said(at)
    at.number_input(key="candidate_k").set_value(4).run()
    at.button(key="sample_start").click().run()
    at.button(key="sample_start").click().run()
    assert not at.exception and len(seen) == 1 and seen[0].eval.num_samples == 4
    assert at.selectbox(key="sampling").value == jobs.all_jobs(empty_store)[0].id


def test_candidates_that_cannot_be_sampled_turn_the_button_off(app, empty_store, said):
    at = app(empty_store, "picker", source=SAMPLE)
    at.multiselect(key="candidates").set_value(["tiny:llama"]).run()
    assert at.button(key="sample_start").disabled and "1 candidates" in said(at)


def test_a_sampling_under_way_shows_progress_and_can_be_stopped(app, empty_store, said):
    job = jobs.create(request(["tiny:llama", "tiny:qwen2"], num_questions=10), empty_store)
    write_status(job.path, replace(read_status(job.path), state="running", step=40, phase="sampling qwen2 (2 of 2)"))
    at = app(empty_store, "picker", source=SAMPLE)
    assert not at.exception and "Sampling qwen2 (2 of 2); 40 of 160 completions" in told(said(at))
    at.button(key="sampling_stop").click().run()
    assert job.stop_requested


def test_a_sampling_that_failed_says_why(app, empty_store, said):
    job = jobs.create(request(["a/b", "c/d"]), empty_store)
    write_status(job.path, replace(read_status(job.path), state="failed", reason=f"cannot load model {NASTY}"))
    at = app(empty_store, "picker", source=SAMPLE)
    assert not at.exception and f"Cannot load model {NASTY}" in told(said(at)) and "<img" not in said(at).replace("\\<img", "")


def test_a_kept_sampling_is_analysed_and_its_cohort_can_be_set_up(app, empty_store, sampled):
    at = app(empty_store, "picker", source=SAMPLE, sampling=sampled.id)
    assert not at.exception and not at.error and table(at, "Predicted")["Cohort"].tolist() == ["llama × qwen2"]
    at.button(key="set_up").click().run()
    assert not at.exception and at.title[0].value == "New run"
    values = at.session_state["draft.values"]
    assert [agent["name"] for agent in values["agents"]] == ["llama", "qwen2"] and values["method"] == "corl"
    assert values["grpo"]["max_completion_length"] == 24 and values["data"]["prompt_template"] == "{question}"


def test_a_sampling_can_be_deleted(app, empty_store, sampled):
    at = app(empty_store, "picker", source=SAMPLE)
    at.button(key="sampling_delete").click().run()
    assert not at.exception and not sampled.path.exists()
