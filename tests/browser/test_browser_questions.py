"""Questions on the New run page in a real browser: an upload is read, shown and named in the command."""

import json

import pytest

pytestmark = pytest.mark.browser


def test_an_uploaded_file_is_shown_with_its_guessed_columns(page, dashboard, tmp_path, runs_dir):
    path = tmp_path / "any name.txt"
    path.write_text("".join(json.dumps({"problem": f"What is {n}+1?", "solution": n + 1}) + "\n" for n in range(9)))
    page.goto(f"{dashboard}/new_run")
    page.locator("input[type=file]").set_input_files(str(path))
    page.get_by_text("9 training questions from").first.wait_for()
    page.get_by_text("What the models read").wait_for()
    page.get_by_text("question = problem, answer = solution").first.wait_for()
    (kept,) = (runs_dir / "uploads").iterdir()
    page.locator("code").filter(has_text=str(kept)).first.wait_for()
