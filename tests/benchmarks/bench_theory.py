"""Theory in a browser: every setting changed once a repeat, from the key or the click to the last chart painted anew.

Run by `python -m tests.benchmarks.bench_dashboard RUNS_DIR --theory`. The aim is 200 ms for each.
"""

from collections.abc import Callable
from typing import Any

import psutil

from tests.benchmarks.page_clock import Redraw, redraw, table

CHARTS = 5
SLIDERS = ("Accuracy of A", "Accuracy of B", "Agents on the ring (N)", "Answers in a group (K)", "Step size", "Steps")
TEXTS = ("Mirror question too", "Sampled run", "A slow copy's votes", "Both favour the same wrong answer")
EXAMPLES = ("Co-RL hurts", "Weak peer in a ring")
DRAWN = f"() => document.querySelectorAll('.corl-chart[data-drawn]').length >= {CHARTS}"


def changes(page: Any) -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Setting → what prepares the change, and the change."""
    found = {}
    for name in SLIDERS:
        slider = page.get_by_role("slider", name=name).first
        found[name] = (slider.focus, lambda: page.keyboard.press("ArrowRight"))
    for words in TEXTS:
        found[words] = (lambda: None, page.get_by_text(words).first.click)
    for words in EXAMPLES:
        found[f"Example: {words}"] = (lambda: None, page.get_by_role("button", name=words).first.click)
    return found


def theory(page: Any, server: psutil.Process, address: str, repeats: int) -> str:
    """The table; each repeat starts from the page as it opens."""
    found: dict[str, list[Redraw]] = {}
    for _ in range(repeats):
        page.goto("about:blank")
        page.goto(f"{address}/theory")
        page.wait_for_function(DRAWN)
        for name, (prepare, act) in changes(page).items():
            prepare()
            found.setdefault(name, []).append(redraw(page, server, act))
    return table("Theory, change", found)
