"""`python -m corl_core answers FILE.jsonl` and `bench answers`."""

import json

from corl_core.bench import answers as bench
from corl_core.cli import main
from corl_core.grading import workers


def run(tmp_path, capsys, *lines: str) -> tuple[int, list[dict], str]:
    path = tmp_path / "answers.jsonl"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    code = main(["answers", str(path)])
    out, err = capsys.readouterr()
    return code, [json.loads(line) for line in out.splitlines()], err


def test_completions_and_pairs_are_answered_line_by_line(tmp_path, capsys):
    code, results, err = run(
        tmp_path, capsys,
        '{"completion": "so \\\\boxed{\\\\frac{1}{2}}"}',
        '{"completion": "I think it is 12"}',
        '{"a": "1,000", "b": 1000}',
        '{"a": "", "b": ""}',
        '{"answer": "2003^{2002^{2001}}", "limit_s": 2}',
    )  # fmt: skip
    assert (code, err) == (0, "")
    assert results == [
        {"line": 1, "answer": "0.5", "key": "1/2", "outcome": "parsed"},
        {"line": 2, "answer": None, "key": None, "outcome": "no_box"},
        {"line": 3, "same": True},
        {"line": 4, "same": False},
        {"line": 5, "answer": "2003^{2002^{2001}}", "key": "2003^{2002^{2001}}", "outcome": "parsed"},
    ]


def test_a_bad_line_is_named_and_the_others_are_answered(tmp_path, capsys):
    bad = {
        "nope": "line 1: not JSON",
        "[1]": "line 2: list instead of an object",
        '{"a": "1"}': "line 3: field 'b' is missing",
        '{"text": "1"}': "line 4: has 'text'; needs 'completion'",
        '{"completion": null}': "line 5: completion is null",
    }
    code, results, err = run(tmp_path, capsys, *bad, "", '{"a": "1", "b": "1"}')
    assert code == 2
    assert results == [{"line": 7, "same": True}]
    for message, part in zip(err.splitlines(), bad.values(), strict=True):
        assert message.startswith("error: ") and part in message


def test_a_file_that_is_not_there_is_one_line(tmp_path, capsys):
    assert main(["answers", str(tmp_path / "none.jsonl")]) == 2
    assert "cannot read" in capsys.readouterr().err


def test_the_benchmark_reads_what_it_says(capsys):
    timing = bench.measure(300)
    assert timing.num_answers == 300 and timing.again_s < timing.first_s
    assert "| 300 |" in bench.table(timing)
    workers.close()
