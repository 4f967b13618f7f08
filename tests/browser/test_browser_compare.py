"""Compare in a browser: what AppTest can't see. Zoom that lives in the link, redraws, many lines on a canvas, a live refresh."""


import pytest

from corl_core.tracking.store import ensure_store, tracking_uri
from tests.browser.charts import drawn_chart, zoom_in
from tests.pages.made_runs import make_run, run_config

pytestmark = pytest.mark.browser

RANGE = "host => host.layout.xaxis.range"
Y_RANGE = "host => host.layout.yaxis.range"
DRAWN = "host => host.dataset.drawn"
PIXELS = "it => it.getContext('2d').getImageData(0, 0, it.width, it.height).data.some(Boolean)"


@pytest.fixture
def open_chart(page, expect):
    """Opens Compare at an address; returns the second of its charts, of agreement."""

    def opened(url: str):
        page.goto(url)
        return drawn_chart(page, expect, 1, of=4)

    return opened


@pytest.fixture
def compared(dashboard, runs_dir) -> str:
    ensure_store(tracking_uri(runs_dir), runs_dir)
    for seed in range(2):
        make_run(runs_dir, run_config(seed=seed), number=seed)
    make_run(runs_dir, run_config("demo, <b>ttrl</b>", "ttrl"), number=3)
    return f"{dashboard}/compare"


def test_zoom_is_in_the_link_and_outlives_a_change_of_smoothing(page, compared, open_chart):
    chart = open_chart(compared)
    zoom_in(page, chart)
    assert "zoom=agreement" in page.url
    zoomed, height, before = chart.evaluate(RANGE), chart.evaluate(Y_RANGE), chart.evaluate(DRAWN)
    page.get_by_text("Strong", exact=True).click()
    page.wait_for_function("([host, old]) => host.dataset.drawn !== old", arg=[chart.element_handle(), before])
    assert chart.evaluate(RANGE) == zoomed

    again = open_chart(page.url)
    assert again.evaluate(RANGE) == pytest.approx(zoomed, rel=1e-4)
    assert again.evaluate(Y_RANGE) == pytest.approx(height, rel=1e-4)  # a pinned axis too
    again.focus()
    page.keyboard.press("0")  # by keyboard back to the whole
    page.wait_for_url(lambda url: "zoom" not in url)
    assert again.evaluate(RANGE)[0] < zoomed[0] and again.evaluate(Y_RANGE) == pytest.approx([-0.03, 1.03])


def test_names_are_text_in_the_legend(compared, open_chart, expect):
    names = open_chart(compared).locator(".legendtext")
    expect(names.filter(has_text="demo, <b>ttrl</b>")).to_have_count(1)


def test_many_lines_are_drawn_on_a_canvas_and_tell_their_names(page, dashboard, runs_dir, open_chart, expect, wait_for):
    ensure_store(tracking_uri(runs_dir), runs_dir)
    runs = [make_run(runs_dir, run_config(seed=seed, steps=5), number=seed) for seed in range(26)]
    chart = open_chart(f"{dashboard}/compare?runs={','.join(run.id for run in runs)}&group=Each+run")
    canvas = chart.locator("canvas.corl-over")
    wait_for(lambda: canvas.evaluate(PIXELS), "lines on the canvas", 30)
    chart.scroll_into_view_if_needed()
    box = canvas.bounding_box()
    for part in range(2, 9):  # somewhere down the middle there is a line
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * part / 10)
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.33)
    expect(chart.locator("div.corl-over")).to_contain_text("demo, seed")
