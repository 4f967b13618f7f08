"""How long a person waits for a change, told by the page itself: from the key or the click to the last chart painted anew.

The driver's own time (finding an element, asking whether it is done) does not count, as it would from outside.
"""

import statistics
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psutil

START = """
(() => {
  const clock = (window.corlClock = { begun: null, painted: [] });
  for (const kind of ["click", "keydown"]) addEventListener(kind, () => (clock.begun ??= performance.now()), true);
  const seen = () => requestAnimationFrame(() => setTimeout(() => clock.painted.push(performance.now())));
  const watch = { subtree: true, attributes: true, attributeFilter: ["data-drawn"] };
  document.addEventListener("DOMContentLoaded", () => new MutationObserver(seen).observe(document.documentElement, watch));
})();
"""
RESET = "() => Object.assign(window.corlClock, { begun: null, painted: [] })"
SETTLE_MS = 900  # without a chart painted, after which a change is over


@dataclass(frozen=True)
class Redraw:
    """A change: seconds until the last of its charts was painted, and CPU seconds until all was quiet."""

    seconds: float
    in_page: float
    in_server: float
    charts: int


def redraw(page: Any, server: psutil.Process, act: Callable[[], Any], at_least: int = 1) -> Redraw:
    """Does `act` and waits for at least so many charts; the page must have been opened with START."""
    page.wait_for_timeout(SETTLE_MS)
    page.evaluate(RESET)
    before = busy(server)
    act()
    page.wait_for_function(f"() => window.corlClock.painted.length >= {at_least}", polling=100)
    page.wait_for_timeout(SETTLE_MS)
    after, clock = busy(server), page.evaluate("() => window.corlClock")
    return Redraw(
        (clock["painted"][-1] - clock["begun"]) / 1000, after[0] - before[0], after[1] - before[1], len(clock["painted"])
    )


def busy(server: psutil.Process) -> tuple[float, float]:
    """CPU seconds so far of the browser's pages and of the server: unlike wall time, other work hardly adds to them."""
    in_pages = 0.0
    for child in psutil.Process().children(recursive=True):
        with suppress(psutil.Error):
            if "--type=renderer" in " ".join(child.cmdline()):
                in_pages += sum(child.cpu_times()[:2])
    return in_pages, sum(server.cpu_times()[:2])


def table(title: str, found: dict[str, list[Redraw]]) -> str:
    """A Markdown table: the best and the middle of the repeats, in milliseconds."""
    load = " ".join(f"{value:.1f}" for value in psutil.getloadavg())
    lines = [f"| {title} (load {load}) | best ms | median ms | page CPU ms | server CPU ms | charts |"]
    lines += ["|---|---|---|---|---|---|"]
    for name, repeats in found.items():
        best = min(repeats, key=lambda one: one.seconds)
        middle = statistics.median(one.seconds for one in repeats)
        numbers = (best.seconds, middle, best.in_page, best.in_server)
        lines.append(f"| {name} | {' | '.join(f'{1000 * value:.0f}' for value in numbers)} | {best.charts} |")
    return "\n".join(lines)
