"""What is known of a run's data before it starts, what is refused, and the command that prints it."""

import json
from pathlib import Path

import pytest
from transformers import FalconConfig, GPT2Config, LlamaConfig, OPTConfig

from corl_core.cli import main
from corl_core.config import load_config
from corl_core.data.checks import Lengths
from corl_core.data.learning_signal import known_accuracies, zero_signal
from corl_core.data.overlap import duplicates, overlaps
from corl_core.data.preflight import preflight, refuse_before_launch
from corl_core.data.questions import DataError, Question
from corl_core.training import lengths


def rows_file(tmp_path, rows: list[dict], name: str = "q.jsonl") -> str:
    path = tmp_path / name
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def config(train: str, **fields):
    values = {"data.train": train, "data.prompt_template": "'{question}'"} | {k.replace("__", "."): v for k, v in fields.items()}
    return load_config("demo-pair", [f"{key}={value}" for key, value in values.items()])


def found(report, check: str) -> list[tuple[str, str]]:
    return [(finding.level, finding.text) for finding in report.findings if finding.check == check]


PROSE = "See the figure on the next page, where the reader will find every value that was asked for above."


def test_supervised_training_is_refused_under_nine_answers_in_ten(tmp_path):
    rows = [{"question": f"q{n}", "answer": n} for n in range(18)] + [{"question": "x", "answer": PROSE}, {"question": "y"}]
    report = preflight(config(rows_file(tmp_path, rows), method="ground_truth"))
    assert report.refusals == []  # 18 of 20: exactly 90%
    rows[0]["answer"] = None
    report = preflight(config(rows_file(tmp_path, rows), method="ground_truth"))
    (refusal,) = report.refusals
    assert "17 of 20 true answers parse (85.0%); 2 rows have none (line 1, line 20)" in refusal
    assert "1 say nothing parsable (line 19: 'See the figure" in refusal
    assert "set data.answer_column" in refusal and "the columns are question, answer" in refusal
    with pytest.raises(DataError, match="needs true answers for 90%"):
        report.require()


def test_label_free_training_is_never_refused_for_its_answers(tmp_path):
    report = preflight(config(rows_file(tmp_path, [{"question": f"q{n}"} for n in range(9)])))
    assert report.refusals == []
    assert found(report, "true answers") == [
        ("note", "No true answers for training: what needs them, like pseudo-label accuracy, is not shown")
    ]


def test_duplicates_are_named_by_line_and_torn_answers_counted(tmp_path):
    rows = [{"question": text, "answer": n} for n, text in enumerate(["What is 2+2?", "b", " what  is 2+2?"])]
    rows += [{"question": f"q{n}", "answer": n} for n in range(9)]
    ((level, text),) = found(preflight(config(rows_file(tmp_path, rows))), "duplicates")
    assert level == "warning"
    assert text == "1 training questions repeat another (line 1 = line 3); 1 of them with another true answer"


def test_texts_are_the_same_after_case_width_and_white_space():
    assert duplicates(["What is ２?", "b", "what  is 2?\n", "c"]) == [[0, 2]]


def test_overlap_is_seven_in_ten_of_the_word_8_grams():
    base = list("abcdefghijklmnopq")  # 17 words: 10 eight-grams
    train = [" ".join(base)]
    last = [*base[:-3], "x", "y", "z"]  # the last 3 eight-grams are others: 7 of 10 stay
    assert overlaps([" ".join(last)], train) == {0: 0.7}
    assert overlaps([" ".join([*base[:-4], "w", "x", "y", "z"])], train) == {}
    assert overlaps(["short one", "Short  ONE", "another"], ["short one"]) == {0: 1.0, 1: 1.0}


def test_overlap_of_training_and_evaluation_is_told(tmp_path):
    train = rows_file(tmp_path, [{"question": f"How many legs have {n} cats?", "answer": 4 * n} for n in range(9)])
    others = [{"question": "How many legs have 3 cats?", "answer": 12}, {"question": "New?", "answer": 1}]
    held_out = rows_file(tmp_path, others, "e.jsonl")
    ((level, text),) = found(preflight(config(train, data__eval=held_out)), "overlap")
    assert level == "warning" and "1 of 2 held-out questions are in the training questions" in text and "line 1" in text


def test_prompts_that_leave_no_room_are_told_and_refused_beyond_one_in_ten(tmp_path):
    train = rows_file(tmp_path, [{"question": f"q{n}", "answer": n} for n in range(10)])

    def report(num_long: int):
        tokens = [200] * num_long + [20] * (10 - num_long)
        return preflight(config(train, grpo__max_completion_length=100), lambda questions: [Lengths("llama", tokens, 256)])

    assert found(report(0), "prompt lengths")[0][0] == "ok"
    ((level, text),) = found(report(1), "prompt lengths")
    assert level == "warning" and "1 do not fit into 156 (the model's 256 less 100 for a completion), first line 1" in text
    assert "lower grpo.max_completion_length" in report(2).refusals[0]


def test_one_prompt_that_a_model_with_a_table_of_positions_cannot_read_is_refused(tmp_path):
    train = rows_file(tmp_path, [{"question": f"q{n}", "answer": n} for n in range(30)])
    tokens = [200, *[20] * 29]
    report = preflight(config(train, grpo__max_completion_length=100), lambda _: [Lengths("llama", tokens, 256, ends=True)])
    assert "1 do not fit into 156" in report.refusals[0] and "this model cannot read on" in report.refusals[0]
    tables = [lengths._has_table(made()) for made in (GPT2Config, OPTConfig, LlamaConfig, FalconConfig)]
    assert tables == [True, True, False, False]


def test_held_out_prompts_are_measured_too(tmp_path):
    train = rows_file(tmp_path, [{"question": f"q{n}", "answer": n} for n in range(10)])
    asked = [{"question": f"q{n}" + " long" * 40 * (n == 13), "answer": n} for n in range(10, 20)]
    held_out = rows_file(tmp_path, asked, "e.jsonl")

    def measured(questions):
        return [Lengths("llama", [len(question.question) for question in questions], 256)]

    report = preflight(config(train, data__eval=held_out, grpo__max_completion_length=100), measured)
    assert [level for level, _ in found(report, "prompt lengths")] == ["ok", "warning"]
    text = found(report, "prompt lengths")[1][1]
    assert text.startswith("Held-out prompts of agent 'llama'") and "1 do not fit into 156" in text and "first line 4" in text


@pytest.mark.parametrize(
    ("rule", "held_out", "text"),
    [
        ("ground_truth", None, "there are none for data.train="),
        ("peer_agreement", None, "there are none for data.train="),
        ("ground_truth", [{"question": "x"}, {"question": "y"}], "none of them has a true answer"),
        ("peer_agreement", [{"question": "x"}, {"question": "y"}], None),
        ("ground_truth", [{"question": "x", "answer": 1}, {"question": "y"}], None),
    ],
)
def test_weights_that_nothing_held_out_could_choose_are_refused(tmp_path, rule, held_out, text):
    train = rows_file(tmp_path, [{"question": f"q{n}", "answer": n} for n in range(9)])
    more = {"data__eval": rows_file(tmp_path, held_out, "e.jsonl")} if held_out else {}
    refusals = preflight(config(train, eval__checkpoint=rule, **more)).refusals
    assert [text in refusal and f"eval.checkpoint='{rule}'" in refusal for refusal in refusals] == ([True] if text else [])


def test_more_held_out_questions_than_the_arithmetic_has_are_refused_by_name(capsys):
    with pytest.raises(DataError, match=r"eval\.num_questions=300: .* 252 held-out questions; take at most 252"):
        preflight(load_config("demo", ["eval.num_questions=300"]))
    assert main(["check-data", "demo", "--set", "eval.num_questions=300"]) == 2
    assert "eval.num_questions=300" in capsys.readouterr().err


def test_without_a_tokenizer_lengths_are_in_characters(tmp_path):
    report = preflight(config(rows_file(tmp_path, [{"question": "12345", "answer": 1}] * 8)))
    assert found(report, "prompt lengths")[0][1].startswith("Prompts have 5 characters in the middle, 5 at most")


def test_signal_is_averaged_over_questions_not_taken_at_the_mean():
    assert zero_signal([0.6], 8) == pytest.approx(0.017452, abs=1e-6)
    assert zero_signal([0.9], 8) == pytest.approx(0.430467, abs=1e-6)
    assert zero_signal([0.18], 2) == pytest.approx(0.7048)
    assert zero_signal([0.0, 0.36], 2) == pytest.approx((1 + 0.36**2 + 0.64**2) / 2)  # 0.7696 at the same mean
    assert zero_signal([0.1819], 2) == pytest.approx(0.7024, abs=1e-4)


@pytest.mark.parametrize(
    "rows",
    [
        [{"question": "2+2?", "accuracy": 0.5}, {"question": "3+3?", "accuracy": 0}, {"question": "other?", "accuracy": 1}],
        [{"question_id": "a", "is_correct": value} for value in (True, False)] + [{"question_id": "b", "is_correct": False}],
        [{"question_id": q, "completion": text} for q, text in (("a", r"\boxed{4}"), ("a", r"\boxed{5}"), ("b", "6"))],
    ],
)
def test_accuracies_come_from_numbers_marks_or_completions(rows, tmp_path):
    questions = [Question("a", "2+2?", "4"), Question("b", "3+3?", "6"), Question("c", "5+5?", "10")]
    assert known_accuracies(Path(rows_file(tmp_path, rows)), questions) == [0.5, 0.0]


def test_rollouts_that_cannot_be_graded_are_an_error_with_the_line(tmp_path):
    questions = [Question("a", "2+2?", "4")]
    with pytest.raises(DataError, match="line 1: no column tells whether it is right; give one of accuracy, is_correct"):
        known_accuracies(Path(rows_file(tmp_path, [{"question": "2+2?"}])), questions)
    with pytest.raises(DataError, match="no row is about a training question"):
        known_accuracies(Path(rows_file(tmp_path, [{"question": "9+9?", "accuracy": 1}])), questions)
    with pytest.raises(DataError, match="no row is about a training question"):
        known_accuracies(tmp_path, questions)
    with pytest.raises(DataError, match=r"line 1: accuracy 7 is not between 0 and 1"):
        known_accuracies(Path(rows_file(tmp_path, [{"question": "2+2?", "accuracy": 7}])), questions)


def test_tiny_models_are_told_to_know_arithmetic_only(tmp_path):
    report = preflight(config(rows_file(tmp_path, [{"question": "a"}] * 8)))
    assert found(report, "models")[0][1].startswith("Tiny models (llama, qwen2) know the built-in arithmetic only")


def test_the_demo_has_nothing_to_warn_of():
    assert {finding.level for finding in preflight(load_config("demo")).findings} == {"ok", "note"}


def test_a_launch_is_refused_before_its_folder_is_made(tmp_path, capsys):
    train = rows_file(tmp_path, [{"question": "a"}] * 8)
    runs = tmp_path / "runs"
    arguments = ["launch", "demo-pair", "--set", f"data.train={train}", "--runs", str(runs)]
    assert main([*arguments, "--set", "method=ground_truth"]) == 2
    error = capsys.readouterr().err
    assert "needs true answers for 90%" in error and error.count("\n") == 1 and not runs.exists()
    assert main([*arguments[:3], f"data.train={tmp_path / 'no.csv'}", *arguments[4:]]) == 2
    assert "there is no such file" in capsys.readouterr().err


def test_a_dataset_id_is_left_to_the_agents():
    refuse_before_launch(config("owner/never-downloaded", method="ground_truth"))


@pytest.mark.training
def test_agents_refuse_before_training_what_only_they_could_load(small_run, tmp_path):
    from corl_core.runs.launch import create
    from corl_core.runs.supervisor import Supervisor

    folder = tmp_path / "dataset"
    folder.mkdir()
    rows_file(folder, [{"question": f"{n}+1=", "answer": PROSE} for n in range(9)], "train.jsonl")
    run = create(small_run("ground_truth", data__train=folder, eval__num_questions=0), tmp_path)
    status = Supervisor(run).run()
    assert status.state == "failed" and "0 of 9 true answers parse" in status.reason


def test_check_data_prints_findings_columns_and_the_first_prompts(tmp_path, capsys):
    train = rows_file(tmp_path, [{"problem": f"{n}+1?", "answer": n + 1, "level": 1} for n in range(9)])
    assert main(["check-data", train]) == 0
    said = capsys.readouterr().out
    assert "question = problem, answer = answer" in said and "problem, answer, level (choose with" in said
    assert "--- line 1; true answer: 1; the prompt:\n0+1?\nPlease reason step by step" in said


def test_check_data_gives_json_and_exit_code_1_when_refused(tmp_path, capsys):
    train = rows_file(tmp_path, [{"question": "a", "answer": PROSE}] * 8)
    assert main(["check-data", train, "--json", "--set", "method=ground_truth"]) == 1
    report = json.loads(capsys.readouterr().out)
    assert report["refused"] and report["train"]["labelled"] == 0 and len(report["train"]["unreadable"]) == 8
    assert report["train"]["columns"]["question"] == "question"


def test_check_data_reads_presets_and_measures_tiny_models_in_tokens(capsys):
    assert main(["check-data", "demo"]) == 0
    assert "room for 104 (the model's 128 less 24 for a completion)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("spec", "message"),
    [("demmo", "did you mean 'demo'?"), ("no.csv", "there is no such file"), ("no.yaml", "cannot read 'no.yaml'")],
)
def test_check_data_says_what_is_wrong_in_one_line(spec, message, capsys):
    assert main(["check-data", spec]) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ") and message in error and error.count("\n") == 1


def test_signal_of_a_file_of_rollouts_is_printed(tmp_path, capsys):
    train = rows_file(tmp_path, [{"question": "2+2?", "answer": 4}, {"question": "3+3?", "answer": 6}])
    rollouts = rows_file(tmp_path, [{"question": "2+2?", "accuracy": 0.5}, {"question": "3+3?", "accuracy": 1}], "r.jsonl")
    main(["check-data", train, "--rollouts", rollouts, "--set", "grpo.num_generations=2"])
    said = capsys.readouterr().out
    assert "75.0% of the groups of 2 will be all right or all wrong and teach nothing (over 2 questions)" in said
