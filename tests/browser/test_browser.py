"""A person with a browser: open, launch from the form, see curves move, stop, compare, download.

Runs are real: two tiny agents that train in seconds. Streamlit draws text fields in the
browser, so fields are found by their labels as a person would.
"""

import itertools
import re

import pytest

from corl_core.runs import launch
from corl_core.runs.folder import Status, all_runs, write_status
from tests.browser.charts import chart, drawn_chart, zoom_in

pytestmark = [pytest.mark.browser, pytest.mark.training]

POINTS = "host => Math.max(0, ...(host.data ?? []).map(trace => trace.x.length))"
RANGE = "host => host.layout.xaxis.range"


@pytest.fixture
def template(small_run, runs_dir):
    """A run that has ended, whose configuration trains in seconds: the form starts from it."""
    config = small_run(name="two agents", grpo__max_steps=300, eval__every_steps=20)
    run = launch.create(config, runs_dir)
    write_status(run.path, Status(state="stopped", created=0.0, ended=1.0, max_steps=300))
    return run


def launch_from_form(page, dashboard: str, template, **fields: str) -> str:
    """Fills in the form from the template, with `fields` by label; returns the new run's id."""
    page.goto(f"{dashboard}/new_run?from={template.id}")
    for label, value in fields.items():
        box = page.get_by_label(label, exact=True)
        box.fill(value)
        box.press("Enter")
        page.get_by_text(value, exact=True).first.wait_for()
    page.wait_for_timeout(500)  # Streamlit draws the form again after the last change
    page.locator("[data-test-script-state=notRunning]").wait_for()
    page.get_by_role("button", name="Launch").dblclick()
    page.wait_for_url(re.compile(r"/run\?run="))
    return page.url.rsplit("run=", 1)[-1]


def test_launch_watch_zoom_stop_compare_and_download(page, dashboard, template, runs_dir, wait_for, expect):
    run_id = launch_from_form(page, dashboard, template)
    assert len(all_runs(runs_dir)) == 2  # the template and one more, although it was a double click

    page.locator(".corl-chart .legend").first.wait_for(timeout=120_000)
    curve = chart(page, "agreement")
    before = wait_for(lambda: curve.evaluate(POINTS), "the first points of a curve")
    zoom_in(page, curve)
    zoomed = curve.evaluate(RANGE)
    wait_for(lambda: curve.evaluate(POINTS) > before + 2, "the curve to grow")
    assert curve.evaluate(RANGE) == zoomed

    page.get_by_role("button", name="Stop").first.click()
    page.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()
    page.get_by_text(re.compile("Stopped$")).first.wait_for(timeout=60_000)
    assert all_runs(runs_dir)[0].status().state == "stopped"
    wait_for(lambda: curve.evaluate(POINTS) > before, "the curve of the run that was stopped")

    second = launch_from_form(page, dashboard, template, Steps="6")
    page.get_by_text(re.compile("Finished$")).first.wait_for(timeout=180_000)
    page.goto(f"{dashboard}/compare?runs={run_id},{second}&group=Each+run")
    expect(drawn_chart(page, expect, 0, of=4).locator(".legendtext")).to_have_count(2)

    page.get_by_role("button", name="Export").first.click()
    with page.expect_download() as download:
        page.get_by_role("button", name="PDF").click()
    assert download.value.path().read_bytes().startswith(b"%PDF")


def test_pages_fit_their_window_and_show_no_error(page, dashboard):
    for width, path in itertools.product((1280, 390), ("", "new_run", "run", "compare")):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{dashboard}/{path}")
        page.locator("h1").first.wait_for()
        page.wait_for_timeout(1000)
        assert page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0, path
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_a_direct_link_before_any_other_page_has_the_frame(page, dashboard, expect):
    page.goto(f"{dashboard}/run")
    page.get_by_text("There is no run yet").wait_for()
    expect(page.get_by_role("link", name="Compare")).to_have_count(1)
    expect(page).to_have_title("Co-RL Lab")
