"""Theory in a browser: lines on a canvas follow a setting, and what was hidden in the legend stays hidden."""

import pytest

from tests.browser.charts import drawn_chart

pytestmark = pytest.mark.browser

HIDDEN = "host => host.corlLines.map((line) => line.hidden)"
END = "host => host.corlLines.at(-1).y.at(-1)"  # of B under Co-RL


def test_a_setting_moves_the_lines_and_a_hidden_one_stays_hidden(page, dashboard, expect, wait_for):
    page.goto(f"{dashboard}/theory")
    chart = drawn_chart(page, expect, 2, of=5)  # accuracy over training
    handle = chart.element_handle()
    chart.scroll_into_view_if_needed()
    assert chart.evaluate(HIDDEN) == [False] * 4 and chart.evaluate(END) > 0.97
    chart.locator(".legendtoggle").first.click()
    page.wait_for_function("host => host.corlLines[0].hidden", arg=handle)

    before = handle.evaluate("host => host.dataset.drawn")
    page.get_by_role("button", name="Co-RL hurts").click()
    page.wait_for_function("([host, old]) => host.dataset.drawn !== old", arg=[handle, before])
    assert chart.evaluate(HIDDEN) == [True, False, False, False] and chart.evaluate(END) < 0.03
    pixels = "it => it.getContext('2d').getImageData(0, 0, it.width, it.height).data.some(Boolean)"
    wait_for(lambda: chart.locator("canvas.corl-over").evaluate(pixels), "lines on the canvas", 30)


def test_a_chart_on_a_canvas_is_saved_with_its_lines(page, dashboard, expect):
    page.goto(f"{dashboard}/theory")
    chart = drawn_chart(page, expect, 0, of=5)
    chart.hover()
    with page.expect_download() as download:
        chart.locator("[data-title='Download as SVG']").click()
    drawn = download.value.path().read_text()
    assert drawn.count('class="js-line"') >= 3 and "both end right" in drawn  # the arrows, the edges, the path
