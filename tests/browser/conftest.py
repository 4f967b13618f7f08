"""A dashboard of its own on a free port, and a page to use it with."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.dashboard_server import serving


@pytest.fixture
def page(browser):
    """A fresh window of 1280 by 1000 pixels; a page error fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, accept_downloads=True)
    opened = context.new_page()
    opened.set_default_timeout(30_000)
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert not errors


@pytest.fixture
def expect():
    """Playwright's `expect`, which asks again until a page has come to what is expected of it. What a page shows is asked for
    so, and never once: charts and tables come in an order of their own."""
    from playwright.sync_api import expect as asking

    asking.set_options(timeout=30_000)
    return asking


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    """A runs folder whose runs are all told to stop at the end."""
    from corl_core.runs.folder import all_runs
    from corl_core.runs.launch import stop

    folder = tmp_path / "runs"
    folder.mkdir()
    yield folder
    for run in all_runs(folder):
        stop(run)


@pytest.fixture
def dashboard(runs_dir: Path, wait_for) -> Iterator[str]:
    """The address of a dashboard on `runs_dir`."""
    with serving(runs_dir, runs_dir.parent / "dashboard.log", wait_for) as (_, address):
        yield address
