"""The Votes page in a browser: a question is picked by its row, an answer opened by the keyboard, and all text stays text."""

import re

import pytest

from tests.made_rollouts import made_run, small_config

pytestmark = pytest.mark.browser
NASTY = '<img src=x onerror="window.hit=1">'


@pytest.fixture
def run(runs_dir):
    draws = [
        {"step": step, "id": f"q{step}", "truth": "1", "question": f"Question {step}? {NASTY}", "text": f"{NASTY} so",
         "a": ("1 1 1 2", "2"), "b": ("2 2 - 1", "1")}
        for step in range(3)
    ]  # fmt: skip
    return made_run(runs_dir, draws, small_config())


def test_a_question_is_picked_and_its_completions_read(page, dashboard, run, expect):
    page.goto(f"{dashboard}/votes?run={run.id}")
    first = page.locator(".answer > summary").first
    first.wait_for(timeout=60_000)
    expect(first.locator(".count")).to_have_text("3 of 4")
    first.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".corl-answers mark")).to_have_text(["1", "1", "1"])
    expect(page.locator(".corl-answers pre").first).to_contain_text(NASTY)
    assert page.locator("img[src=x]").count() == 0 and page.evaluate("window.hit") is None

    grid = page.locator("[data-testid=stDataFrame]").first.bounding_box()
    page.mouse.click(grid["x"] + 18, grid["y"] + 35 * 2 + 17)  # the box of the second row, below the heading
    page.wait_for_url(re.compile(r"question=q1"))
    page.get_by_role("heading", name="Step 1").wait_for()


def test_every_view_fits_its_window(page, dashboard, run):
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for view in ("Questions", "Agreement", "What-if"):
            page.goto(f"{dashboard}/votes?run={run.id}&view={view}")
            page.get_by_text("24 rollouts of 2 agents").wait_for(timeout=60_000)
            page.wait_for_timeout(1500)
            assert page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0, view
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (view, width)
