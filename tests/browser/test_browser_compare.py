"""Compare in a browser: what AppTest can't see. Zoom that lives in the link, redraws, many lines on a canvas, a live refresh."""

import re

import pytest

from corl_core.tracking.store import ensure_store, tracking_uri
from tests.pages.made_runs import make_run, run_config

pytestmark = pytest.mark.browser

RANGE = "host => host.layout.xaxis.range"
Y_RANGE = "host => host.layout.yaxis.range"
DRAWN = "host => host.dataset.drawn"


def drag(page, chart) -> None:
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 90, steps=5)
    page.mouse.up()


def open_charts(page, url: str):
    page.goto(url)
    page.locator(".corl-chart[data-drawn]").nth(3).wait_for()
    return page.locator(".corl-chart").nth(1)


@pytest.fixture
def compared(dashboard, runs_dir) -> str:
    ensure_store(tracking_uri(runs_dir), runs_dir)
    for seed in range(2):
        make_run(runs_dir, run_config(seed=seed), number=seed)
    make_run(runs_dir, run_config("demo, <b>ttrl</b>", "ttrl"), number=3)
    return f"{dashboard}/compare"


def test_zoom_is_in_the_link_and_outlives_a_change_of_smoothing(page, compared):
    chart = open_charts(page, compared)
    drag(page, chart)
    page.wait_for_url(re.compile("zoom=agreement"))
    zoomed, height, before = chart.evaluate(RANGE), chart.evaluate(Y_RANGE), chart.evaluate(DRAWN)
    page.get_by_text("Strong", exact=True).click()
    page.wait_for_function("([host, old]) => host.dataset.drawn !== old", arg=[chart.element_handle(), before])
    assert chart.evaluate(RANGE) == zoomed

    again = open_charts(page, page.url)
    assert again.evaluate(RANGE) == pytest.approx(zoomed, rel=1e-4)
    assert again.evaluate(Y_RANGE) == pytest.approx(height, rel=1e-4)  # a pinned axis too
    again.focus()
    page.keyboard.press("0")  # by keyboard back to the whole
    page.wait_for_url(lambda url: "zoom" not in url)
    assert again.evaluate(RANGE)[0] < zoomed[0] and again.evaluate(Y_RANGE) == pytest.approx([-0.03, 1.03])


def test_names_are_text_in_the_legend(page, compared):
    chart = open_charts(page, compared)
    assert "demo, <b>ttrl</b>" in chart.locator(".legendtext").all_text_contents()


def test_many_lines_are_drawn_on_a_canvas_and_tell_their_names(page, dashboard, runs_dir):
    ensure_store(tracking_uri(runs_dir), runs_dir)
    runs = [make_run(runs_dir, run_config(seed=seed, steps=5), number=seed) for seed in range(26)]
    chart = open_charts(page, f"{dashboard}/compare?runs={','.join(run.id for run in runs)}&group=Each+run")
    canvas = chart.locator("canvas.corl-over")
    assert canvas.evaluate("it => it.getContext('2d').getImageData(0, 0, it.width, it.height).data.some(Boolean)")
    chart.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    for part in range(2, 9):  # somewhere down the middle there is a line
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * part / 10)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.33)
    assert "demo, seed" in chart.locator("div.corl-over").text_content()
