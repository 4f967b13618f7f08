"""Housekeeping with a mouse: dialogs are drawn once more after their click, which page tests do not do."""

from corl_core.runs.labels import labels
from tests.pages.made_runs import make_run, run_config


def test_a_run_is_labelled_deleted_and_brought_back(page, dashboard, runs_dir, wait_for):
    run = make_run(runs_dir, run_config())
    page.goto(f"{dashboard}/run?run={run.id}")
    page.get_by_role("button", name="Label").click()
    page.get_by_role("textbox", name="Name").fill("Ada's <b>ring</b>")
    page.get_by_role("button", name="Save").click()
    page.get_by_role("heading", name="Ada's <b>ring</b>").wait_for()
    assert labels(run).name == "Ada's <b>ring</b>"
    page.get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("dialog").get_by_role("button", name="Delete", exact=True).click()
    page.get_by_role("button", name="Undo").wait_for()
    assert not run.path.exists()
    page.get_by_role("button", name="Undo").click()
    wait_for(run.path.exists, "the run to come back", 20)
    page.get_by_role("button", name="Undo").wait_for(state="detached")
    assert page.get_by_text("encountered an error").count() == 0
