"""Charts as a browser finds them: by name where charts move, and drawn before anything is read from them."""

import re


def chart(page, name: str):
    """The chart of the Run page with this name, for example "agreement": one that gets its first values moves those after it."""
    return page.locator(f'[class*="st-key-curve-{name}"] .corl-chart, [class*="st-key-run-{name}"] .corl-chart').first


def drawn_chart(page, expect, place: int, of: int):
    """The chart at `place` (from 0) of a page that has `of` charts, once all of them are drawn, in whichever order that was."""
    charts = page.locator(".corl-chart")
    expect(page.locator(".corl-chart[data-drawn]").nth(of - 1)).to_be_attached()
    expect(charts.nth(place)).to_have_attribute("data-drawn", re.compile("."))
    return charts.nth(place)


def zoom_in(page, chart) -> None:
    """Draws a box in the chart, whose place is then in the page's address."""
    chart.scroll_into_view_if_needed()
    box = chart.locator(".nsewdrag").first.bounding_box()
    page.mouse.move(box["x"] + 30, box["y"] + 30)
    page.mouse.down()
    page.mouse.move(box["x"] + 150, box["y"] + 90, steps=5)
    page.mouse.up()
    page.wait_for_url(re.compile("zoom="))
