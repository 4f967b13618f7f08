"""The Run page while a run goes on: what a person has zoomed, hidden, paused or moved stays as it is when values come in.

The run is made here: its journals grow and are logged as a supervisor would, without training.
"""

import re
import threading
import time
from dataclasses import asdict, replace

import pytest

from corl_core.alarms.record import Alarm
from corl_core.runs.folder import read_status, write_status
from corl_core.runs.journal import Journal
from corl_core.tracking.log import RunLogger
from corl_core.tracking.store import tracking_uri
from tests.browser.charts import chart, zoom_in
from tests.pages.made_runs import make_run, run_config

pytestmark = pytest.mark.browser

PAIRS = ("llama.qwen2", "llama.gpt_neox", "qwen2.gpt_neox")
LAST = "host => Math.max(...(host.data ?? []).flatMap(trace => trace.x ?? []).filter(x => x !== null))"
HIDDEN = "host => host.data.filter(trace => trace.name && trace.visible === 'legendonly').map(trace => trace.name)"
RANGE = "host => host.layout?.xaxis.range"
ASCENDING = """host => host.data.filter(trace => trace.fill !== "toself").every(trace =>
    Array.from(trace.x ?? []).filter(x => x !== null).every((x, place, all) => !place || x >= all[place - 1]))"""
ARROW = "host => host.layout.annotations.filter(one => one.showarrow).map(one => one.arrowwidth)"


class Growing:
    """A run under way: from time to time it does a step, logs it, and says so in its status."""

    def __init__(self, runs_dir):
        self.run = make_run(runs_dir, run_config("live", steps=400), "running", 30)
        self._journals = {agent: Journal(path) for agent, path in self.run.journal_paths().items()}
        self._logger, self._stop = RunLogger(self.run, tracking_uri(runs_dir)), threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)
        self.step, self.alarms = 30, []

    def _go(self) -> None:
        while not self._stop.wait(0.5):
            for agent, journal in self._journals.items():
                own = {"pseudo_label_accuracy": 0.9, "reward_std": 0.2, "reward": 0.5, "tokens": 100.0 * self.step}
                agreement = {f"agreement/{pair}": 1.0 for pair in PAIRS} | {"agreement": 1.0}
                journal.write("step", step=self.step, metrics=own if agent else agreement)
            self.step += 1
            self._logger.flush()
            told = [asdict(alarm) for alarm in self.alarms]
            beat = {"step": self.step, "heartbeat": time.time() + 3600, "alarms": told}
            write_status(self.run.path, replace(read_status(self.run.path), **beat))

    def __enter__(self) -> "Growing":
        self._thread.start()
        return self

    def __exit__(self, *_) -> None:
        self._stop.set()
        self._thread.join(20)

    def end(self) -> None:
        """The run finishes after the step that it has reached."""
        self.__exit__()
        done = {"state": "finished", "ended": time.time()}
        write_status(self.run.path, replace(read_status(self.run.path), **done))


@pytest.fixture
def growing(runs_dir):
    with Growing(runs_dir) as run:
        yield run


def test_zoom_hidden_lines_and_the_slider_outlive_refreshes(page, dashboard, growing, wait_for, expect):
    page.goto(f"{dashboard}/run?run={growing.run.id}")
    curve = chart(page, "pseudo_label")
    curve.locator(".legend").wait_for(timeout=60_000)
    curve.locator(".legendtoggle").nth(1).click()
    wait_for(lambda: curve.evaluate(HIDDEN) == ["qwen2"], "the line to be hidden")
    zoom_in(page, curve)
    zoomed = wait_for(lambda: curve.evaluate(RANGE), "the zoomed chart")

    slider = page.get_by_role("slider").first
    slider.focus()
    slider.press("Home")
    page.get_by_text(re.compile("^Steps 0 to 0")).wait_for()
    page.wait_for_timeout(2000)  # the ring is drawn after its text
    then = chart(page, "ring").evaluate(ARROW)
    before = growing.step
    wait_for(lambda: chart(page, "agreement").evaluate(LAST) > before + 4, "the curves to grow")
    assert curve.evaluate(RANGE) == zoomed
    assert curve.evaluate(HIDDEN) == ["qwen2"]
    expect(page.get_by_text(re.compile("^Steps 0 to 0"))).to_have_count(1)
    assert "ring_step=1" in page.url
    assert chart(page, "ring").evaluate(ARROW) == then

    slider.press("End")
    page.get_by_text(re.compile("^Steps .* the newest$")).wait_for()
    wait_for(lambda: min(chart(page, "ring").evaluate(ARROW)) > 7.9, "arrows as wide as at full agreement")


def test_a_paused_page_stands_still_and_goes_on(page, dashboard, growing, wait_for):
    page.goto(f"{dashboard}/run?run={growing.run.id}")
    agreement = chart(page, "agreement")
    agreement.locator(".legend").wait_for(timeout=60_000)
    toggle, state = page.get_by_text("Live", exact=True), page.locator(".st-key-live input")
    toggle.click()
    wait_for(lambda: not state.is_checked(), "the switch to be off")
    page.wait_for_timeout(3000)
    still, done = agreement.evaluate(LAST), growing.step
    wait_for(lambda: growing.step > done + 8, "the run to go on")
    assert agreement.evaluate(LAST) == still
    toggle.click()
    wait_for(state.is_checked, "the switch to be on")
    wait_for(lambda: agreement.evaluate(LAST) > done, "the page to catch up")


def test_an_alarm_shows_by_itself_as_a_band_and_in_words(page, dashboard, growing, expect):
    page.goto(f"{dashboard}/run?run={growing.run.id}")
    agreement = chart(page, "agreement")
    agreement.locator(".legend").wait_for(timeout=60_000)
    assert agreement.locator(".shapelayer path").count() == 0
    growing.alarms = [Alarm("label_lock_in", "llama", 25, {}, "llama is sure of wrong votes.")]
    page.get_by_text("llama is sure of wrong votes").wait_for()
    expect(agreement.locator(".shapelayer path")).to_have_count(2)  # a band and its edge
    expect(agreement.get_by_text("Label lock-in: llama")).to_have_count(1)
    page.get_by_text(re.compile(r"steps/s and [\d,]+ tokens/s")).first.wait_for()


def test_lines_run_one_way_when_the_run_ends_while_it_is_looked_at_or_is_zoomed(page, dashboard, growing, wait_for):
    page.goto(f"{dashboard}/run?run={growing.run.id}")
    agreement, before = chart(page, "agreement"), growing.step
    agreement.locator(".legend").wait_for(timeout=60_000)
    wait_for(lambda: agreement.evaluate(LAST) > before + 2, "points that are settled and points that follow")
    curve = chart(page, "pseudo_label")
    curve.focus()
    page.keyboard.press("+")
    page.wait_for_url(re.compile("zoom=pseudo_label"))
    page.wait_for_timeout(3000)  # the zoomed chart is sent whole with the next refresh
    assert curve.evaluate(ASCENDING) and agreement.evaluate(ASCENDING)
    growing.end()
    page.get_by_role("button", name="Stop").wait_for(state="hidden")
    wait_for(lambda: agreement.evaluate(LAST) == growing.step - 1, "the last point")
    page.wait_for_timeout(1000)
    assert curve.evaluate(ASCENDING) and agreement.evaluate(ASCENDING)
