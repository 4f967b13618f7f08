"""Those who watch: five pages, when each can be used, and what somebody does on it who has it open."""

import re
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from tests.benchmarks.bench_dashboard import LABELS
from tests.conftest import CHROMIUM_FLAGS, CHROMIUM_NAMES

WINDOW = {"width": 1400, "height": 1000}
ERROR = "[data-testid=stException], [data-testid=stAlertContentError]"
PATIENCE_MS = 300_000
STEP = re.compile(r"Step ([\d,]+) of")
USABLE = "([what, least]) => document.querySelectorAll(what).length >= least"


@dataclass(frozen=True)
class View:
    """A page, and what of it must be there before it can be used."""

    name: str
    path: str
    what: str
    least: int = 1


def views(run_id: str, others: list[str]) -> list[View]:
    """The pages that are watched: all runs, the one that goes on, that one beside others, its votes, and the queue."""
    compared = f"runs={','.join([run_id, *others])}&group=Each+run"
    compared += "".join(f"&metrics={label.replace(' ', '+')}" for label in LABELS)
    return [
        View("Overview", "/", "[data-testid=stDataFrame] canvas"),
        View("Run", f"/run?run={run_id}", ".corl-chart[data-drawn]", 3),
        View("Compare", f"/compare?{compared}", ".corl-chart[data-drawn]", 4),
        View("Votes", f"/votes?run={run_id}", "[data-testid=stDataFrame] canvas"),
        View("Queue", "/queue", "[data-testid=stExpander], .stButton"),
    ]


@dataclass
class Watcher:
    """One person with one page open in a window of their own. `opened_s`: what each opening took."""

    view: View
    page: Any
    opened_s: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def open(self, site: str) -> float:
        """From the address to a page that can be used, in seconds."""
        self.page.goto("about:blank")
        begun = time.perf_counter()
        self.page.goto(site + self.view.path)
        try:
            self.page.wait_for_function(USABLE, arg=[self.view.what, self.view.least], polling=50, timeout=PATIENCE_MS)
        except Exception as error:  # Playwright's own, which does not say which page
            shown = self.page.locator("body").inner_text()[:1000]
            raise SystemExit(f"{self.view.name} cannot be used after {PATIENCE_MS / 1000:g} s; it shows: {shown}") from error
        self.opened_s.append(time.perf_counter() - begun)
        return self.opened_s[-1]

    def act(self, turn: int) -> None:
        """What a page that does not renew itself is asked for now and then; and what must never be on a page is looked for."""
        with suppress(Exception):  # a page that is being redrawn takes the button away: next time
            if self.view.name == "Compare":
                self.page.get_by_text(("Strong", "None")[turn % 2], exact=True).first.click(timeout=2_000)
            if self.view.name == "Votes":
                self.page.get_by_role("button", name="Look again").click(timeout=2_000)
        self.errors += self.page.locator(ERROR).all_inner_texts()

    def step(self) -> int | None:
        """The step that the Run page tells."""
        found = STEP.search(self.page.locator("[data-testid=stProgress]").first.inner_text())
        return int(found[1].replace(",", "")) if found else None

    def leave(self) -> None:
        """The page is closed, and with it the session; the window stays."""
        self.page.goto("about:blank")


@contextmanager
def chromium() -> Iterator[Any]:
    """This machine's own Chromium, headless."""
    from playwright.sync_api import sync_playwright

    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        raise SystemExit(f"no Chromium on this machine (looked for {', '.join(CHROMIUM_NAMES)})")
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield browser
        browser.close()


def watchers(browser: Any, wanted: list[View]) -> list[Watcher]:
    """Each in a window of its own, as people are."""
    return [Watcher(view, browser.new_context(viewport=WINDOW).new_page()) for view in wanted]
