"""Votes page: one question with every rollout, filters and links, the whole run over steps, and stores in any state."""

import gc
import json
import shutil
import time
import weakref
from pathlib import Path

import pytest

from pages.components import votes
from pages.components.data import Known
from tests.made_rollouts import made_run, record, small_config

PROJECT = Path(__file__).resolve().parents[2]
AGENTS = ("a", "b", "c")
NASTY = "<img src=x onerror=alert(1)> $x$ **b**"
DRAWS = [
    {"step": 0, "id": "p", "truth": "1", "question": f"Apples? {NASTY}", "text": f"{NASTY}\nso",
     "a": ("1 1 1 2", "3"), "b": ("2 2 2 1", "1"), "c": ("3 - - -", "2")},
    {"step": 0, "id": "q", "truth": "4", "a": ("5 5 5 5", "4"), "b": ("5 5 4 6", "5"), "c": ("4 4 4 4", "5")},
    {"step": 1, "id": "r", "truth": "7", "a": ("7 7 8 8", ""), "b": ("7 7 7 7", "7"), "c": ("- - - -", "7")},
    {"step": 2, "id": "p", "truth": "1", "question": f"Apples? {NASTY}", "text": "so",
     "a": ("1 1 1 1", "1"), "b": ("1 1 1 1", "1"), "c": ("1 1 1 2", "1")},
]  # fmt: skip


@pytest.fixture
def run(tmp_path):
    return made_run(tmp_path, DRAWS, small_config(agents=AGENTS))


def components(at) -> dict[str, dict]:
    """What the components of a page were given, by key."""
    return {element.proto.id.rsplit("-", 1)[-1]: json.loads(element.proto.json) for element in at.get("bidi_component")}


def answers(at, agent: str) -> dict[str, dict]:
    rows = components(at)[f"votes.answers.{agent}"]["answers"]
    return {row["shown"]: row for row in rows}


def matched(at) -> list[int]:
    return at.dataframe[0].value["Step"].tolist()


def test_no_run_yet_points_to_new_run(app, empty_store, said):
    at = app(empty_store, "votes")
    assert "no run yet" in said(at) and at.page_link and not at.exception


def test_a_question_shows_each_agents_answers_counts_vote_and_labels(app, tmp_path, run):
    at = app(tmp_path, "votes", run=run.id, step="0", question="p")
    assert not at.exception and not at.error
    own = answers(at, "a")
    assert [(key, row["count"], row["badges"]) for key, row in own.items()] == [
        ("1", 3, ["vote", "right"]), ("2", 1, ["wrong"])
    ]  # fmt: skip
    assert list(answers(at, "c")) == ["3", "no parsable answer"]
    edges = at.dataframe[1].value
    assert edges.to_dict("records")[0] == {
        "From": "c", "To": "a", "Vote": "3 (1 of 1)", "Pseudo-label": "3", "Label is": "wrong"
    }  # fmt: skip
    assert edges["From"].tolist() == ["c", "a", "b"]  # a → b → c → a


def test_each_rollout_shows_its_reward_its_advantage_and_where_its_answer_stands(app, tmp_path, run):
    at = app(tmp_path, "votes", run=run.id, step="0", question="p")
    rewarded = answers(at, "b")["1"]["rollouts"][0]
    assert rewarded["facts"][:2] == ["reward 1", "advantage +1.500"]  # 0.75 / 0.5001
    start, end = rewarded["span"]
    assert rewarded["text"][start:end] == "1" and rewarded["text"].startswith(NASTY) and not rewarded["before"]
    assert answers(at, "c")["no parsable answer"]["rollouts"][0]["span"] is None


def test_what_models_and_people_wrote_is_text(app, tmp_path, run):
    at = app(tmp_path, "votes", run=run.id, step="0", question="p")
    assert any(f"Apples? {NASTY}" == code.value for code in at.code)
    assert not any("<img" in markdown.value for markdown in (*at.markdown, *at.caption))
    script = (PROJECT / "pages" / "components" / "votes_rollouts.js").read_text(encoding="utf-8")
    assert not any(name in script for name in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write"))


@pytest.mark.parametrize(
    ("query", "steps"),
    [
        ({}, [0, 0, 1, 2]),
        ({"filter": "Both wrong, same answer"}, [0]),
        ({"filter": "Vote wrong, a minority right"}, [0, 0]),
        ({"filter": "Label flipped since step"}, [2]),
        ({"filter": "No parsable answer"}, [1]),
        ({"filter": "Tie"}, [1]),
        ({"q": "apples"}, [0, 2]),
        ({"from": "1"}, [1, 2]),
        ({"to": "0"}, [0, 0]),
        ({"filter": "Vote wrong, a minority right", "q": "apples"}, [0]),
        ({"filter": "nonsense", "from": "x"}, [0, 0, 1, 2]),
    ],
)
def test_filters_and_search_come_from_the_link(app, tmp_path, run, query, steps):
    at = app(tmp_path, "votes", run=run.id, **query)
    assert matched(at) == steps and not at.exception


def test_the_first_match_is_shown_and_no_match_says_so(app, tmp_path, run, said):
    at = app(tmp_path, "votes", run=run.id, filter="Tie")
    assert set(answers(at, "a")) == {"7", "8"}
    at = app(tmp_path, "votes", run=run.id, q="plums")
    assert "No question matches" in said(at) and not at.get("bidi_component")


def test_another_step_of_a_question_is_shown_and_its_link_kept(app, tmp_path, run):
    at = app(tmp_path, "votes", run=run.id)
    at.selectbox(key="votes_step.p.0").set_value(2).run()
    assert at.query_params["step"] == "2" and at.query_params["question"] == "p"
    assert set(answers(at, "c")) == {"1", "2"}


def test_one_question_is_followed_through_training(app, tmp_path, run):
    at = app(tmp_path, "votes", run=run.id, step="0", question="p")
    path = components(at)["votes.path"]["data"]
    assert (path[0]["name"], path[0]["x"], path[0]["y"]) == ("a", [0, 2], [0.75, 1.0])
    assert path[1]["marker"]["symbol"] == ["x", "circle"]  # b: wrong, then right


def test_agreement_is_drawn_for_the_pair_that_is_chosen(app, tmp_path, run):
    at = app(tmp_path, "votes", run=run.id, view="Agreement", block="1")
    areas = {area["uid"]: area for area in components(at)["votes.agreement"]["data"]}
    # step 0: p only a right, q both 5; step 1: both 7 (a's tie goes to the first); step 2: both right
    assert areas["agree_right"]["y"] == [0, 1, 1] and areas["agree_wrong"]["y"] == [0.5, 0, 0]
    assert areas["only_a_right"]["y"] == [0.5, 0, 0] and areas["only_a_right"]["name"] == "only a right"
    at.selectbox(key="b").set_value("c").run()
    areas = {area["uid"]: area for area in components(at)["votes.agreement"]["data"]}
    assert areas["only_a_right"]["y"] == [0.5, 1, 0] and areas["only_b_right"]["y"] == [0.5, 0, 0] and not at.exception


def replayed(at) -> dict[str, dict]:
    return {row["Rule"]: row for row in at.dataframe[-1].value.to_dict("records")}


def test_the_replay_says_what_other_rules_would_have_labelled(app, tmp_path, run):
    at = app(tmp_path, "votes", run=run.id, view="What-if")
    rows = replayed(at)
    assert rows["vote of a"]["Accuracy"] == 0.75 and rows["vote of a"]["In this run"] == "rewards b"
    assert (rows["vote of c"]["Coverage"], rows["received by a"]["Coverage"]) == (0.75, 0.75)
    assert {"votes.whatif.accuracy", "votes.whatif.coverage"} <= set(components(at))
    at.number_input(key="share").set_value(0.6).run()
    assert replayed(at)["vote of a"]["Coverage"] == 0.75 and not at.exception  # its tie of 2 to 2 has share 0.5
    at.number_input(key="votes").set_value(1).run()
    assert replayed(at)["vote of c"]["Labelled"] == 3


def test_without_ground_truth_the_page_says_what_it_cannot_show(app, tmp_path, said):
    run = made_run(tmp_path, [{"step": 0, "id": "p", "a": ("1 1", "2"), "b": ("2 -", "1")}])
    at = app(tmp_path, "votes", run=run.id)
    assert "Truth" not in at.dataframe[0].value and "Truth: unknown" in said(at) and answers(at, "a")["1"]["badges"] == ["vote"]
    for view in ("Agreement", "What-if"):
        at = app(tmp_path, "votes", run=run.id, view=view)
        assert "needs ground truth" in said(at) and not at.exception


def test_a_run_without_rollouts_says_so(app, partial_store, finished_store, said):
    at = app(finished_store, "votes")
    assert "saved no rollouts" in said(at) and not at.exception
    fresh = next(path.name for path in partial_store.iterdir() if "fresh" in path.name)
    at = app(partial_store, "votes", run=fresh)
    assert "No rollouts are saved yet" in said(at) and not at.exception


def test_a_broken_shard_is_named_and_the_rest_is_shown(app, tmp_path, run, said):
    (run.agent_path("c") / "rollouts" / "000000-000002.parquet").write_bytes(b"not parquet")
    at = app(tmp_path, "votes", run=run.id)
    assert "cannot be read" in said(at) and matched(at) == [0, 0, 1, 2] and not at.exception
    assert "votes.answers.a" in components(at) and "votes.answers.c" not in components(at)


@pytest.mark.parametrize(
    "query", [{"step": "9", "question": "p"}, {"step": "x", "question": "p"}, {"step": "0", "question": "<b>"}, {"question": "p"}]
)
def test_a_link_to_a_question_that_was_not_asked_says_so_and_shows_the_first(app, tmp_path, run, said, query):
    at = app(tmp_path, "votes", run=run.id, **query)
    assert "did not ask" in said(at) and not at.exception and set(answers(at, "a")) == {"1", "2"}


def test_a_link_to_a_run_that_is_gone_says_so_and_shows_the_newest(app, tmp_path, run, said):
    at = app(tmp_path, "votes", run="nobody")
    assert "not here any more: nobody" in said(at).replace("\\", "") and matched(at) == [0, 0, 1, 2]


@pytest.mark.parametrize(
    ("page", "query", "words"),
    [
        ("votes", {"view": "Maybe", "filter": "Odd"}, ["View: the link asks for “Maybe”", "Filter: the link asks for “Odd”"]),
        ("theory", {"view": "Maybe"}, ["View: the link asks for “Maybe”"]),
        ("run", {"smooth": "Maybe"}, ["Smoothing: the link asks for “Maybe”"]),
    ],
)
def test_what_a_link_asks_for_in_vain_is_told_on_the_page_it_leads_to(page, query, words, app, tmp_path, run, said):
    at = app(tmp_path, page, **query)
    text = said(at).replace("\\", "")
    assert all(sentence in text for sentence in words) and not at.exception


@pytest.mark.parametrize("view", ["Questions", "Agreement", "What-if"])
def test_another_run_can_be_picked_with_every_choice_made(app, tmp_path, run, view):
    other = made_run(tmp_path / "other", [{"step": 0, "id": "z", "truth": "1", "x": ("1 1", "1"), "y": ("2 2", "1")}],
                     small_config(agents=("x", "y"), k=2))  # fmt: skip
    shutil.move(other.path, tmp_path / "20261130-080000-other-0002")
    chosen = {"view": view, "step": "2", "question": "p", "agents": "c", "from": "1", "to": "2", "a": "b", "b": "c"}
    at = app(tmp_path, "votes", run=run.id, votes="3", block="2", share="0.5", **chosen)
    at.selectbox(key="votes_run").set_value("20261130-080000-other-0002").run()
    assert not at.exception and not at.error and at.query_params["run"] == "20261130-080000-other-0002"
    assert "step" not in at.query_params and "question" not in at.query_params


def test_new_shards_of_a_live_run_show_on_the_next_look(app, tmp_path, run):
    at = app(tmp_path, "votes", run=run.id)
    for agent in AGENTS:
        record(run, agent, [{"step": 3, "id": "s", "truth": "1", agent: ("1 1", "1")}])
    assert matched(at.run()) == [0, 0, 1, 2, 3] and not at.exception


def test_a_long_completion_keeps_its_end_and_says_what_is_left_out(app, tmp_path, monkeypatch):
    monkeypatch.setattr("pages.components.votes_question.MAX_CHARS", 400)
    run = made_run(tmp_path, [{"step": 0, "id": "p", "text": "word " * 200, "a": ("1 1 1 -", "1"), "b": ("1", "1")}])
    one = answers(app(tmp_path, "votes", run=run.id), "a")["1"]["rollouts"][0]
    assert len(one["text"]) == 100 and one["text"].endswith("\\boxed{1}.") and "characters are left out" in one["before"]
    start, end = one["span"]
    assert one["text"][start:end] == "1"


def test_a_cohort_of_one_is_compared_with_nobody(app, tmp_path, said):
    run = made_run(tmp_path, [{"step": 0, "id": "p", "truth": "1", "a": ("1 1", "1")}], small_config("ttrl", agents=("a",)))
    at = app(tmp_path, "votes", run=run.id)
    assert at.dataframe[1].value["From"].tolist() == ["itself"] and not at.exception
    assert "the cohort has one" in said(app(tmp_path, "votes", run=run.id, view="Agreement"))


def test_the_run_page_links_to_the_votes(app, finished_store):
    assert any("votes" in link.proto.page for link in app(finished_store, "run").get("page_link"))


def test_many_questions_open_quickly(app, tmp_path):
    draws = [{"step": step, "id": f"q{place}", "truth": "1", "a": ("1 1 2 -", "1"), "b": ("2 2 2 1", "1")}
             for step in range(100) for place in range(20)]  # fmt: skip
    run = made_run(tmp_path, draws)
    app(tmp_path, "votes", run=run.id)
    start = time.process_time()
    at = app(tmp_path, "votes", run=run.id)
    assert time.process_time() - start < 1.5 and len(matched(at)) == 500


def test_of_a_live_run_only_the_newest_ballots_are_kept(run):
    known = Known(run, run.config, run.status())
    first = votes.opened(known)
    gone = weakref.ref(first)
    assert votes.opened(known) is first
    more = {"step": 30, "id": "s", "truth": "2", "a": ("2 2 2 2", "2"), "b": ("2 2 2 2", "2"), "c": ("2 2 2 2", "2")}
    for agent in AGENTS:
        record(run, agent, [more], resume=30)
    assert votes.opened(known).num_draws == first.num_draws + 1
    del first
    gc.collect()
    assert gone() is None
