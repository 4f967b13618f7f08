"""Files of answers: long and wide, samples, truths, what is refused; the command on them, and on four real models' answers."""

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

from corl_core.cli import main
from corl_core.data.questions import DataError
from corl_core.diversity.reading import read_answers
from corl_core.diversity.report import report

ROOT = Path(__file__).resolve().parents[1]
REAL = ROOT.parent / "shared" / "data" / "gsm8k_model_solutions.jsonl"
needs_real = pytest.mark.skipif(not REAL.is_file(), reason="needs ../shared/data, which is not part of the repository")
LONG = [
    {"question_id": "q1", "model": "a", "answer": "1,000", "truth": "1000"},
    {"question_id": "q1", "model": "b", "answer": "7", "truth": "1000"},
    {"question_id": "q2", "model": "a", "answer": "\\frac{1}{2}", "truth": "0.5"},
    {"question_id": "q2", "model": "b", "answer": ".5", "truth": "0.5"},
]


@pytest.fixture
def file(tmp_path):
    """Writes a file of answers: rows as JSON lines, or text as it is."""

    def write(content, name: str = "answers.jsonl") -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str) else "".join(json.dumps(row) + "\n" for row in content)
        path.write_text(text, encoding="utf-8")
        return path

    return write


def keys(answers, model: str) -> list[list[str | None]]:
    groups = answers.codes[answers.index(model)].tolist()
    return [[answers.keys[code] if code >= 0 else None for code in group] for group in groups]


def test_long_files_are_read_with_canonical_keys(file):
    answers = read_answers(file(LONG))
    assert answers.models == ("a", "b") and answers.questions == ("q1", "q2") and answers.num_labelled == 2
    assert keys(answers, "a") == [["1000"], ["1/2"]] and keys(answers, "b") == [["7"], ["1/2"]]
    assert report(answers).pairs[0]["exactly_one_right"] == 0.5


def test_csv_gives_the_same_as_json_lines(file):
    text = "question_id,model,answer,truth\nq1,a,\"1,000\",1000\nq1,b,7,1000\nq2,a,\\frac{1}{2},0.5\nq2,b,.5,0.5\n"
    assert report(read_answers(file(text, "answers.csv"))).pairs == report(read_answers(file(LONG))).pairs


def test_a_completions_answer_stands_in_its_last_box(file):
    rows = [
        {"question_id": "q", "model": "a", "completion": "first \\boxed{3}, no: \\boxed{4}", "truth": "4"},
        {"question_id": "q", "model": "b", "completion": "it is 4", "truth": "4"},
    ]
    answers = read_answers(file(rows))
    assert keys(answers, "a") == [["4"]] and keys(answers, "b") == [[None]]
    assert "1 of 1 answers of 'b' could not be read and count as wrong" in answers.notes


def test_completions_that_never_box_are_read_as_announced_and_a_note_says_so(file):
    rows = [
        {"question_id": "q", "model": "a", "completion": "2+2 makes four\n#### 4", "truth": "so it is\n#### 4"},
        {"question_id": "q", "model": "b", "completion": "The answer is 5."},
    ]
    answers = read_answers(file(rows))
    assert keys(answers, "a") == [["4"]] and keys(answers, "b") == [["5"]] and answers.num_labelled == 1
    assert any("no completion has a box" in note for note in answers.notes)


def test_rows_of_one_question_and_model_are_its_samples_and_so_are_lists(file):
    rows = [{"question_id": "q", "model": "a", "answer": answer} for answer in ("1", "2", "1")]
    rows += [{"question_id": "q", "model": "b", "answer": ["3", "3"]}]
    answers = read_answers(file(rows))
    assert answers.num_samples == 3 and keys(answers, "a") == [["1", "2", "1"]] and keys(answers, "b") == [["3", "3", None]]
    assert answers.codes[1, 0, 2] == -2  # not sampled, which is not the same as not read


def test_an_empty_answer_is_wrong_and_an_empty_truth_unknown(file):
    text = "question_id,model,answer,truth\nq1,a,,5\nq1,b,5,5\nq2,a,1,\nq2,b,1,\n"
    answers = read_answers(file(text, "a.csv"))
    assert answers.num_labelled == 1 and keys(answers, "a") == [[None], ["1"]]
    assert report(answers).pairs[0].right_a == 0.0


def test_wide_files_have_a_column_for_each_model(file):
    text = "question_id,level,truth,llama-3.2,qwen2\n1,5,4,4,\\boxed{5}\n2,3,9,9,9\n"
    answers = read_answers(file(text, "wide.csv"))
    assert answers.models == ("llama-3.2", "qwen2") and keys(answers, "qwen2") == [["5"], ["9"]]


def test_wide_files_may_nest_a_models_solution(file):
    rows = [{"question": "1+1", "truth": "2", "a": {"solution": "#### 2", "is_correct": True}, "b": {"solution": "#### 3"}},
            {"question": "2+2", "truth": "4", "a": {"solution": "#### 4", "is_correct": True}}]  # fmt: skip
    answers = read_answers(file(rows))
    assert answers.models == ("a", "b") and answers.texts == ("1+1", "2+2")
    assert answers.codes[1, 1, 0] == -2  # b was not asked the second


def test_a_column_answer_beside_models_columns_is_the_truth(file):
    answers = read_answers(file("question,answer,a,b\n1+1,2,2,3\n", "w.csv"))
    assert answers.models == ("a", "b") and answers.num_labelled == 1
    assert any("'answer' is taken for the true answer" in note for note in answers.notes)


def test_a_completion_is_read_where_its_answer_is_empty(file):
    rows = [{"question_id": "q", "model": "a", "answer": "4", "completion": "so \\boxed{9}"},
            {"question_id": "q", "model": "b", "answer": None, "completion": "so \\boxed{5}"}]  # fmt: skip
    answers = read_answers(file(rows))
    assert keys(answers, "a") == [["4"]] and keys(answers, "b") == [["5"]]


def test_only_the_models_that_are_named_are_compared(file):
    rows = [{"question_id": "q", "model": model, "answer": "1"} for model in "abc"]
    assert read_answers(file(rows), ["c", "a"]).models == ("c", "a")
    with pytest.raises(DataError, match=r"no model 'd'.*there are a, b, c"):
        read_answers(file(rows), ["a", "d"])


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("question_id,model,truth\nq,a,1\n", "no column holds their answers"),
        ("model,answer\na,1\nb,2\n", "no column tells the questions apart"),
        ("question_id,text\nq,1\n", "neither long nor wide"),
        ("question_id,model,answer\nq,a,1\nq,,2\n", "line 3: column 'model' is empty"),
        ("question_id,model,answer\n,a,1\nq,b,2\n", "line 2: column 'question_id' is empty"),
        ("question_id,model,answer\nq,a,1\nq,a,2\n", "answers of one model only"),
        ("question_id,model,answer,truth\nq,a,1,5\nq,b,2,6\n", "line 3: question 'q' has the truth '6' here and"),
        ("question_id,model,answer\n", "has no rows"),
        ("", "is empty"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_place_and_the_remedy(file, content, told):
    with pytest.raises(DataError) as error:
        read_answers(file(content, "bad.csv"))
    assert told in str(error.value) and "bad.csv" in str(error.value)


def test_true_answers_that_say_nothing_are_unlabelled_and_named(file):
    rows = [{**row, "truth": "see figure"} for row in LONG]
    answers = read_answers(file(rows))
    assert answers.num_labelled == 0 and any("say nothing parsable" in note for note in answers.notes)


def test_the_command_prints_pairs_as_json(file, capsys):
    assert main(["diversity", "--answers", str(file(LONG)), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (pair,) = told["pairs"]
    assert (pair["a"], pair["b"]) == ("a", "b") and pair["exactly_one_right"] == 0.5 and len(pair["intervals"]["kappa"]) == 2


def test_the_command_in_words_names_undefined_measures_and_what_needs_truth(file, capsys):
    assert main(["diversity", "--answers", str(file([row for row in LONG if row["question_id"] == "q2"]))]) == 0
    assert "Cohen's kappa of correctness of a × b is not defined: both are right" in capsys.readouterr().out
    without = [{key: value for key, value in row.items() if key != "truth"} for row in LONG]
    assert main(["diversity", "--answers", str(file(without))]) == 0
    said = capsys.readouterr().out
    assert "agreement is the one measure that needs none" in said and "kappa" not in said


@pytest.mark.parametrize(
    "arguments",
    [[], ["--answers", "missing.jsonl"], ["--models", "tiny:llama"], ["--models", "tiny:lama", "tiny:qwen2"],
     ["--models", "tiny:llama", "tiny:qwen2", "--num-questions", "0"], ["--answers", "x", "--group-size", "1"]],
)
def test_a_mistake_is_one_line_and_exit_code_2(arguments, capsys, tmp_path):
    assert main(["diversity", "--runs", str(tmp_path), *arguments]) == 2
    assert capsys.readouterr().err.startswith("error: ")


def test_answers_that_exist_need_no_training_library(file):
    code = f"""import sys; from corl_core.cli import main; main(['diversity', '--answers', {str(file(LONG))!r}])
print(sorted(set(sys.modules) & {{'torch', 'transformers', 'trl', 'streamlit', 'mlflow'}}))"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@needs_real
def test_four_real_models_are_read_as_recorded_and_compared_within_two_seconds():
    started = time.process_time()
    answers = read_answers(REAL)
    made = report(answers)
    assert time.process_time() - started < 2
    rows = [json.loads(line) for line in REAL.read_text(encoding="utf-8").splitlines()]
    assert len(answers.questions) == 1319 == answers.num_labelled and len(made.pairs) == 6
    for model in answers.models:
        right = answers.codes[answers.index(model), :, 0] == answers.truths
        assert right.tolist() == [row[model]["is_correct"] for row in rows]
