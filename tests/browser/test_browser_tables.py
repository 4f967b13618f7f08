"""Tables in a browser: no file with a raw formula leaves them, and a cell of the picker's matrix opens its questions."""

import csv
import io
import json

import pytest

pytestmark = pytest.mark.browser

FORMULA = '=HYPERLINK("http://evil.example","5")'
DROP_STYLE = "document.querySelectorAll('style').forEach(it => it.textContent.includes('Download as CSV') && it.remove())"
WRONG = {"a": (0, 1, 2), "b": (7, 8, 9), "c": range(10)}


@pytest.fixture
def answers(tmp_path) -> str:
    """Ten questions of three models; each question's text is a formula, and so is c's answer."""
    rows = [
        {"question_id": f"q{n}", "question": f"{FORMULA} {n}", "model": model, "truth": str(n + 1)}
        | {"answer": FORMULA if model == "c" else str(0 if n in wrong else n + 1)}
        for n in range(10)
        for model, wrong in WRONG.items()
    ]
    path = tmp_path / "answers.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


def table(page, name: str):
    """The table that is described so, in the element with its toolbar."""
    return page.locator("[data-testid=stElementContainer]").filter(has=page.locator(f'[aria-label="{name}"]')).last


def shown(page) -> list[str]:
    """The buttons that can be seen and pressed, by what their names begin with."""
    return page.locator("button[aria-label]:visible").evaluate_all("all => all.map(it => it.ariaLabel.split(':')[0])")


def test_a_table_can_be_searched_and_enlarged_and_gives_no_raw_csv(page, dashboard, answers, expect):
    page.goto(f"{dashboard}/picker?answers={answers}&pair_a=a&pair_b=c")
    questions = table(page, "What a and c answered")
    questions.scroll_into_view_if_needed()
    questions.hover()
    questions.get_by_role("button", name="Search").wait_for()
    expect(page.locator("[aria-label^='Download as CSV']").nth(3)).to_be_attached()  # Streamlit's button: what this is about
    assert "Download as CSV" not in shown(page)

    with page.expect_download() as download:
        page.get_by_role("button", name="Questions (CSV)").dispatch_event("click")
    rows = list(csv.DictReader(io.StringIO(download.value.path().read_text(), newline="")))
    assert len(rows) == 10 and rows[3]["question"] == f"'{FORMULA} 3" and rows[3]["answer_b"] == f"'{FORMULA}"
    assert (rows[3]["model_a"], rows[3]["model_b"], rows[3]["outcome"]) == ("a", "c", "only_a")

    questions.get_by_role("button", name="Fullscreen").dispatch_event("click")  # the bar fades when the pointer leaves the table
    page.get_by_role("button", name="Close fullscreen").wait_for()
    expect(page.locator("button[aria-label^='Search']:visible").first).to_be_visible()
    assert "Download as CSV" not in shown(page)
    page.evaluate(DROP_STYLE)
    assert "Download as CSV" in shown(page)  # so it is the style that hides it


def test_a_click_on_a_cell_opens_its_pairs_questions(page, dashboard, answers, wait_for):
    page.goto(f"{dashboard}/picker?answers={answers}")
    matrix = table(page, "Cohen's kappa of correctness of each pair of models")
    matrix.scroll_into_view_if_needed()
    box = matrix.locator("canvas").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.2, box["y"] + box["height"] * 0.875)  # row c, column a
    page.get_by_text("c × a", exact=True).wait_for()
    page.wait_for_url(lambda url: "pair_a=c" in url and "pair_b=a" in url)
    cells = table(page, "What c and a answered").locator("[role=gridcell]")
    # c is never right and answers the formula; a is right from the fourth question on
    wrong = [cell for n in range(3) for cell in ("both wrong, different answers", f"{FORMULA} {n}", f"{n + 1}", FORMULA, "0")]
    right = [cell for n in range(3, 10) for cell in ("only a right", f"{FORMULA} {n}", f"{n + 1}", FORMULA, f"{n + 1}")]
    wait_for(lambda: cells.all_text_contents() == wrong + right, "who answered what and who was right, of c and a", 20)
