"""Paraphrases: the column, who reads it, the built-in ones, rewriting by a model, and the audit."""

import json

import pytest

from corl_core.cli import main
from corl_core.config import DataConfig, load_config
from corl_core.data import arithmetic
from corl_core.data.paraphrase import audit, failure, pair, read, rewrite
from corl_core.data.preflight import preflight
from corl_core.data.questions import Question
from corl_core.data.sources import load_training


def rows_file(tmp_path, rows: list[dict]) -> str:
    path = tmp_path / "q.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def test_a_paraphrase_column_is_read_row_by_row_and_leaves_id_and_answer(tmp_path):
    rows = [{"question": "2+2?", "answer": 4, "rephrased_question": "Two and 2?"}, {"question": "3+3?", "answer": 6}]
    first, second = load_training(DataConfig(train=rows_file(tmp_path, rows)), 9, 0).questions
    assert (first.question, first.paraphrase, first.answer, second.paraphrase) == ("2+2?", "Two and 2?", "4", None)
    bare = load_training(DataConfig(train=rows_file(tmp_path, [{"question": "2+2?"}])), 9, 0).questions[0]
    assert first.id == bare.id


def test_an_agent_reads_the_paraphrase_where_there_is_one():
    question = Question("a", "2+2?", "4", paraphrase="Two and 2?")
    assert (question.asked(True), question.asked(False)) == ("Two and 2?", "2+2?")
    assert Question("b", "3+3?").asked(True) == "3+3?"


def test_only_the_agent_told_to_is_prompted_with_the_paraphrase(tmp_path):
    from corl_core.runs.launch import create
    from corl_core.training.agent import Agent
    from corl_core.training.families import make_tokenizer

    run, question = create(load_config("demo-paraphrase"), tmp_path), Question("add-47-38", "47+38=", "85", "add", "38+47=")
    prompts = {}
    for name in ("llama", "qwen2"):
        agent = Agent(run, name, port=0)
        agent.tokenizer = make_tokenizer()
        prompts[name] = agent._read_prompt(question)
    assert prompts == {"llama": "47+38=", "qwen2": "38+47="}


def test_sums_are_paraphrased_by_turning_them_round_within_their_split():
    seen = 0
    for split in ("train", "eval"):
        for q in arithmetic.questions(240, 0, split):
            if q.paraphrase is None:
                continue
            kind, a, b = q.id.split("-")
            assert (kind, q.paraphrase) == ("add", f"{b}+{a}=") and a != b
            assert arithmetic.split_of(f"add-{b}-{a}") == split
            seen += 1
    assert seen > 40


def test_no_agent_may_read_paraphrases_that_do_not_exist(tmp_path):
    train = rows_file(tmp_path, [{"question": f"q{n}", "answer": n} for n in range(9)])
    report = preflight(load_config("demo-paraphrase", [f"data.train={train}"]))
    assert report.refusals == [
        f"agents qwen2 are to read paraphrases and '{train}' has none; set data.paraphrase_column, "
        "or make them with: python -m corl_core paraphrase"
    ]


@pytest.mark.parametrize(
    ("question", "paraphrase", "lost", "added"),
    [
        ("47+38=", "38+47=", (), ()),
        ("She has 3 cats and 1,000 dogs.", "1000 dogs and three cats are hers.", (), ()),
        ("She has three cats.", "She owns 3 cats.", (), ()),
        ("She has 3 cats and 12 dogs.", "She has 3 cats and 21 dogs.", ("12",), ("21",)),
        ("She has 3 cats.", "She has cats.", ("3",), ()),
        ("Half of 0.5 is?", "What is half of 0.50?", (), ()),
    ],
)
def test_a_paraphrase_whose_numbers_changed_is_flagged(question, paraphrase, lost, added):
    found = pair(Question("a", question), paraphrase)
    assert (found.lost, found.added, found.flagged) == (lost, added, bool(lost or added))


def test_the_audit_shows_flagged_pairs_first_and_skips_rows_without(tmp_path):
    rows = [{"question": "Is 2 even?", "paraphrase": "2: even?"}, {"question": "b"}]
    rows.append({"question": "Is 3 odd?", "paraphrase": "Is 5 odd?"})
    loaded = load_training(DataConfig(train=rows_file(tmp_path, rows)), 9, 0)
    assert [(found.place, found.change()) for found in audit(loaded.questions, loaded.places)] == [
        ("line 3", "lost 3; added 5"), ("line 1", "")
    ]  # fmt: skip


def test_a_rewrite_counts_only_between_the_marks_and_with_its_numbers():
    question = Question("a", "Add 2 and 3.")
    assert read("Sure! RESULT_START\nSum 2 and 3. RESULT_END") == "Sum 2 and 3."
    assert read("Sum 2 and 3.") is None and read("RESULT_START RESULT_END") is None
    assert failure(question, "Sum 2 and 3.") == ""
    assert failure(question, " add 2  and 3.") == "the same words again"
    assert failure(question, "Sum 2 and 4.") == "its numbers changed"
    assert failure(question, None) == "nothing between RESULT_START and RESULT_END"


def test_failed_rewrites_are_asked_again_and_then_left_out_in_place():
    questions = [Question(str(n), f"Add {n} and {n}.") for n in range(3)]
    asked: list[int] = []

    def generate(texts: list[str], attempt: int) -> list[str]:  # row 0 at once, row 1 at the second attempt, row 2 never
        asked.append(len(texts))
        rows = [int(text.split()[1]) for text in texts]
        return [f"RESULT_START Twice {row}: the sum? RESULT_END" if attempt >= row else "no idea" for row in rows]

    done = rewrite(questions, generate, attempts=2)
    assert done.texts == ["Twice 0: the sum?", "Twice 1: the sum?", None] and asked == [3, 2]
    assert dict(done.failures) == {"nothing between RESULT_START and RESULT_END": 1}


@pytest.fixture
def untrained(tmp_path):
    """A folder with a tiny model that knows nothing, on one thread: small matrices are slower on several."""
    import torch

    from corl_core.training.families import make_model, make_tokenizer

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    make_model("llama", 16, 0).save_pretrained(tmp_path / "model")
    make_tokenizer().save_pretrained(tmp_path / "model")
    yield str(tmp_path / "model")
    torch.set_num_threads(threads)


SOURCE = [{"problem": "47+38=", "answer": 85}, {"problem": "11+12="}, {"problem": "1+1=", "answer": 2}]


def test_the_command_keeps_rows_whose_rewrite_fails(untrained, tmp_path, capsys):
    out = tmp_path / "out.jsonl"
    source = rows_file(tmp_path, SOURCE)
    arguments = ["paraphrase", source, "--model", untrained, "--out", str(out), "--batch-size", "2", "--json"]
    assert main([*arguments, "--device", "cpu", "--attempts", "1"]) == 1  # nothing was paraphrased
    report = json.loads(capsys.readouterr().out)
    assert (report["questions"], report["paraphrased"]) == (3, 0) and sum(report["failed"].values()) == 3
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert rows[0] == {"question": "47+38=", "answer": "85", "paraphrase": None}
    assert [row["question"] for row in rows] == ["47+38=", "11+12=", "1+1="]
    assert main(arguments) == 2
    assert "exists already; give another name" in capsys.readouterr().err


def test_what_the_command_wrote_is_a_source_with_paraphrases(tmp_path, capsys, monkeypatch):
    from corl_core.training import paraphrase as model

    def generator(*_):
        return lambda questions, attempt: [f"RESULT_START What is {q} RESULT_END" if "11" not in q else "?" for q in questions]

    monkeypatch.setattr(model, "generator", generator)
    out = tmp_path / "out.jsonl"
    assert main(["paraphrase", rows_file(tmp_path, SOURCE), "--model", "any", "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "2 of 3 questions have a paraphrase" in said and "1 without: nothing between RESULT_START and RESULT_END" in said
    questions = load_training(DataConfig(train=str(out)), 9, 0).questions
    assert [(q.question, q.answer, q.paraphrase) for q in questions] == [
        ("47+38=", "85", "What is 47+38="), ("11+12=", None, None), ("1+1=", "2", "What is 1+1=")
    ]  # fmt: skip
    main(["check-data", str(out)])
    assert "--- line 1, paraphrased:\n47+38=\n  →\nWhat is 47+38=" in capsys.readouterr().out


def test_a_model_that_cannot_be_loaded_is_one_line(tmp_path, capsys):
    source = rows_file(tmp_path, [{"question": "a"}])
    assert main(["paraphrase", source, "--model", str(tmp_path / "no"), "--out", str(tmp_path / "o.jsonl")]) == 2
    error = capsys.readouterr().err
    assert "cannot load model=" in error and "give a Hugging Face id or a local folder" in error and error.count("\n") == 1


@pytest.mark.training
def test_agents_with_different_wordings_exchange_votes_on_the_same_questions(small_run, tmp_path):
    """Co-RL with one agent on paraphrases: same question ids in both journals, so the exchange's digests match."""
    from corl_core.runs.launch import create
    from corl_core.runs.supervisor import Supervisor

    config = small_run(agents__1__paraphrase=True)
    run = create(config, tmp_path)
    Supervisor(run).run()
    assert run.status().state == "finished", run.status().reason
    steps = {}
    for name in ("a", "b"):
        lines = [json.loads(line) for line in run.journal_paths()[name].read_text().splitlines()]
        steps[name] = [line["questions"] for line in lines if line.get("questions")]
    assert steps["a"] == steps["b"] and len(steps["a"]) == 4


def test_the_preset_lets_one_of_two_families_read_paraphrases():
    config = load_config("demo-paraphrase")
    assert [(agent.model, agent.paraphrase) for agent in config.agents] == [("tiny:llama", False), ("tiny:qwen2", True)]
    report = preflight(config)
    assert not report.refusals and any("read by qwen2" in finding.text for finding in report.findings)
