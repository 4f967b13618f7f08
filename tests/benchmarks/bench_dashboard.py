"""How long a person waits: Compare beside MLflow's own chart view, of the same runs in the same store, in the same browser.

    python -m tests.benchmarks.bench_dashboard RUNS_DIR [--repeats 3] [--overview RUNS_DIR_OF_300] [--remote]
    python -m tests.benchmarks.bench_dashboard RUNS_DIR --redraws    # Compare's redraws alone, without MLflow
    python -m tests.benchmarks.bench_dashboard RUNS_DIR --theory     # the Theory page alone; the folder may be empty

RUNS_DIR is made when it is missing (big_store.py: 100 runs × 20 metrics × 1,000 steps). Both views show 50 runs × 4 metrics.
Each repeat opens MLflow, then Compare, in a fresh window with a filled cache; the clock runs from the address to four charts
that hold 50 lines each. Then Compare's smoothing and x axis are changed (page_clock.py). A busy machine slows both: read the
ratios. With --remote, a dashboard on the same store through MLflow's server (HTTP) is opened too, first with nothing kept, then
again.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.benchmarks.bench_theory import theory
from tests.benchmarks.big_store import SHOWN, START, make
from tests.benchmarks.page_clock import START as START_CLOCK
from tests.benchmarks.page_clock import Redraw, busy, redraw, table

PROJECT = Path(__file__).resolve().parents[2]
RUNS, CHARTS = 50, 4
WINDOW = {"width": 1600, "height": 1100}
LABELS = ("Agreement", "Pseudo-label accuracy", "Reward std", "Token entropy")
CHANGES = (("Strong", "smoothing"), ("None", "no smoothing"), ("Questions", "x: questions"), ("Wall time", "x: wall time"))
OURS_DONE = """(old) => {
  const drawn = [...document.querySelectorAll(".corl-chart")].map((host) => host.dataset.drawn);
  return drawn.length === 4 && drawn.every((stamp, place) => stamp && stamp !== old?.[place]) && drawn;
}"""
MLFLOW_DONE = """([charts, runs]) => {
  const full = (plot) => (plot.data ?? []).filter((trace) => trace.x?.length > 1).length >= runs;
  return [...document.querySelectorAll(".js-plotly-plot")].filter(full).length >= charts;
}"""


@contextmanager
def served(command: list[str], url: str, **env: str) -> Iterator[psutil.Process]:
    """A server on the loopback address while the block lasts."""
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
    process = subprocess.Popen(command, cwd=PROJECT, env=os.environ | env, start_new_session=True, **silent)
    try:
        while not _answers(url):
            if process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
            time.sleep(0.5)
        yield psutil.Process(process.pid)
    finally:
        for child in psutil.Process(process.pid).children(recursive=True):
            child.terminate()
        process.terminate()
        process.wait(20)


def dashboard(runs_dir: Path, port: int, **env: str):
    """A dashboard on these runs."""
    command = [sys.executable, "-m", "pages.components.serve", "run", "app.py", "--server.headless", "true"]
    command += ["--server.port", str(port)]
    return served(command, f"http://127.0.0.1:{port}/_stcore/health", CORL_RUNS=str(runs_dir.resolve()), **env)


def mlflow_server(runs_dir: Path, port: int):
    """MLflow's own server and pages on the same store; its job runner, six idle processes, is off."""
    store = f"sqlite:///{runs_dir.resolve() / 'mlflow.db'}"
    command = [sys.executable, "-m", "mlflow", "server", "--backend-store-uri", store, "--host", "127.0.0.1"]
    command += ["--port", str(port), "--workers", "1"]
    return served(command, f"http://127.0.0.1:{port}/health", MLFLOW_SERVER_ENABLE_JOB_EXECUTION="false")


def mlflow_url(port: int) -> str:
    before = (START + 60 * RUNS) * 1000  # the first 50 runs
    where = f"attributes.start_time%20%3C%20{before}"
    return f"http://127.0.0.1:{port}/#/experiments/1/runs?compareRunsMode=CHART&searchFilter={where}"


def compare_url(port: int, runs_dir: Path) -> str:
    ids = sorted(path.parent.name for path in runs_dir.glob("*/run.yaml"))[:RUNS]
    metrics = "&".join(f"metrics={label.replace(' ', '+')}" for label in LABELS)
    return f"http://127.0.0.1:{port}/compare?runs={','.join(ids)}&group=Each+run&{metrics}"


def show_all_in_mlflow(page: Any, url: str) -> None:
    """What a person sets once: every run visible, the assistant closed, the four metrics picked. The browser keeps it."""
    page.goto(url)
    page.locator(".js-plotly-plot").first.wait_for()
    page.get_by_role("button", name="Close").last.click()
    page.get_by_role("button", name="Toggle visibility of runs").click()
    page.get_by_text("Show all runs").click()
    page.get_by_placeholder("Search metric charts").fill("|".join(f"^{name}$" for name in SHOWN))
    page.wait_for_function(MLFLOW_DONE, arg=[CHARTS, RUNS])


def timed(action: Callable[[], Any]) -> tuple[float, Any]:
    begun = time.perf_counter()
    found = action()
    return time.perf_counter() - begun, found


def opened(page: Any, url: str, condition: str, arg: Any) -> float:
    page.goto("about:blank")

    def go() -> None:
        page.goto(url)
        page.wait_for_function(condition, arg=arg, polling=50)

    return timed(go)[0]


def redraws(page: Any, server: psutil.Process, repeats: int) -> str:
    """Compare's smoothing and x axis changed in turn: the table."""
    found: dict[str, list[Redraw]] = {}
    for _ in range(repeats):
        for word, name in CHANGES:
            click = page.get_by_text(word, exact=True).first.click
            found.setdefault(name, []).append(redraw(page, server, click, CHARTS))
    return table(f"Compare, {RUNS} runs × {CHARTS} metrics, change", found)


def idle(page: Any, server: psutil.Process, seconds: float = 10.0) -> tuple[float, float]:
    """CPU of page and server, as a share of one core, while nobody does anything."""
    before = busy(server)
    page.wait_for_timeout(1000 * seconds)
    after = busy(server)
    return (after[0] - before[0]) / seconds, (after[1] - before[1]) / seconds


def measure(given: argparse.Namespace) -> None:
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    ours, theirs, port = [], [], given.port
    with sync_playwright() as started, mlflow_server(given.runs_dir, port) as _, dashboard(given.runs_dir, port + 1) as server:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        pages = [browser.new_context(viewport=WINDOW).new_page() for _ in range(2)]
        for page in pages:
            page.set_default_timeout(240_000)
            page.add_init_script(START_CLOCK)
        show_all_in_mlflow(pages[0], mlflow_url(port))
        url = compare_url(port + 1, given.runs_dir)
        first = opened(pages[1], url, OURS_DONE, None)
        print(f"Compare, the first time (nothing read, empty browser cache): {first:.1f} s", flush=True)
        for _ in range(given.repeats):
            pages[1].goto("about:blank")
            theirs.append(opened(pages[0], mlflow_url(port), MLFLOW_DONE, [CHARTS, RUNS]))
            pages[0].goto("about:blank")
            ours.append(opened(pages[1], url, OURS_DONE, None))
            print(f"MLflow {theirs[-1]:6.1f} s   Compare {ours[-1]:6.1f} s   ratio {theirs[-1] / ours[-1]:.1f}", flush=True)
        print(f"median ratio {statistics.median(t / o for t, o in zip(theirs, ours, strict=True)):.1f}", flush=True)
        print(redraws(pages[1], server, given.repeats), flush=True)
        pages[0].close()  # MLflow's page asks its server again and again
        in_page, in_server = idle(pages[1], server)
        print(f"idle: page {100 * in_page:.1f} %, server {100 * in_server:.1f} % of a core", flush=True)
        if given.remote:
            with dashboard(given.runs_dir, port + 2, MLFLOW_TRACKING_URI=f"http://127.0.0.1:{port}"):
                remote = compare_url(port + 2, given.runs_dir)
                times = [opened(pages[1], remote, OURS_DONE, None) for _ in range(2)]
                print(f"Compare over HTTP: {times[0]:.1f} s with nothing kept, then {times[1]:.1f} s", flush=True)
        browser.close()


def overview(given: argparse.Namespace) -> None:
    """First open of Overview: a new dashboard, a new window."""
    with _window(given.overview, given.port + 3) as (page, _, address):
        browser = page.context.browser
        for words in ("first", "second"):
            page = browser.new_context(viewport=WINDOW).new_page()
            done = "() => document.querySelector('[data-testid=stDataFrame] canvas')"
            print(f"Overview, 300 runs, {words} open: {opened(page, address, done, None):.2f} s", flush=True)


def compare_redraws(given: argparse.Namespace) -> None:
    """The redraws of Compare alone."""
    with _window(given.runs_dir, given.port + 1) as (page, server, _):
        opened(page, compare_url(given.port + 1, given.runs_dir), OURS_DONE, None)
        print(redraws(page, server, given.repeats), flush=True)


def theory_page(given: argparse.Namespace) -> None:
    """The Theory page alone."""
    given.runs_dir.mkdir(parents=True, exist_ok=True)
    with _window(given.runs_dir, given.port + 1) as (page, server, address):
        print(theory(page, server, address, given.repeats), flush=True)


@contextmanager
def _window(runs_dir: Path, port: int) -> Iterator[tuple[Any, psutil.Process, str]]:
    """A window with a clock, and a new dashboard: its server and its address."""
    from playwright.sync_api import sync_playwright

    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))))
    with sync_playwright() as started, dashboard(runs_dir, port) as server:
        browser = started.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(viewport=WINDOW).new_page()
        page.set_default_timeout(120_000)
        page.add_init_script(START_CLOCK)
        yield page, server, f"http://127.0.0.1:{port}"
        browser.close()


def _answers(url: str) -> bool:
    try:
        return urllib.request.urlopen(url, timeout=2).status == 200
    except OSError:
        return False


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs_dir", type=Path)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--port", type=int, default=8630)
    parser.add_argument("--overview", type=Path, help="a folder for 300 runs; leaves Overview out when not given")
    parser.add_argument("--remote", action="store_true", help="also through MLflow's server")
    parser.add_argument("--redraws", action="store_true", help="Compare's redraws alone")
    parser.add_argument("--theory", action="store_true", help="the Theory page alone")
    arguments = parser.parse_args()
    if arguments.theory:
        theory_page(arguments)
        sys.exit()
    make(arguments.runs_dir)
    (compare_redraws if arguments.redraws else measure)(arguments)
    if arguments.overview:
        make(arguments.overview, num_runs=300, num_steps=20)
        overview(arguments)
