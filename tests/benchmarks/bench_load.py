"""Under load: 300 runs in the store, 8 agents that write, 5 browsers that watch.

    python -m tests.benchmarks.bench_load [--minutes 30] [--runs 300] [--agents 8] [--browsers 5]
                                          [--only memory|sessions|slowdown]

memory     a cohort (load_writers.py) writes journals, rollouts and MLflow while five pages refresh themselves, and are opened
           anew every five minutes; the dashboard's memory and CPU are noted every ten seconds. The curve (memory.csv, memory.png)
           counts as flat when a straight line through it, from five minutes after all pages were open on, grows less than FLAT_MB
           in half an hour.
sessions   the Run page is opened and closed, 50 times and again 50 times: what the first fifty leave may be caches, what the
           second add is a leak.
slowdown   real training of demo-pair on one core while dashboard, browsers and that cohort have another (load_slowdown.py).

Tables go to stdout, files to --out. The store is made once, in --store.
"""

import argparse
import csv
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from corl_core.config import load_config
from corl_core.runs import queue
from corl_core.runs.folder import Run, all_runs
from tests.benchmarks.bench_dashboard import dashboard
from tests.benchmarks.big_store import make
from tests.benchmarks.load_pages import Watcher, chromium, views, watchers

MB = 2**20
EVERY_S, WARM_S, AGAIN_S, ACT_S = 10.0, 300.0, 300.0, 15.0
FLAT_MB = 40.0  # of some 500, in half an hour; what the cohort writes in that time is 8 MB in the reader, and is meant to be kept
VISITS, KEPT_S = 50, 150.0  # Streamlit keeps a session whose browser has gone for two minutes
COLUMNS = ("time_s", "rss_mb", "pss_mb", "uss_mb", "cpu_percent", "threads")
PROJECT = Path(__file__).resolve().parents[2]


class Sampler(threading.Thread):
    """Notes memory and CPU of a process every ten seconds, into a file as it goes."""

    def __init__(self, process: psutil.Process, path: Path):
        super().__init__(daemon=True)
        self._process, self._path, self._over = process, path, threading.Event()
        self.rows: list[tuple[float, ...]] = []

    def run(self) -> None:
        begun, cpu = time.monotonic(), sum(self._process.cpu_times()[:2])
        with self._path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow(COLUMNS)
            last = begun
            while not self._over.wait(EVERY_S) and self._process.is_running():
                memory, used, now = self._process.memory_full_info(), sum(self._process.cpu_times()[:2]), time.monotonic()
                sizes = (memory.rss / MB, memory.pss / MB, memory.uss / MB)
                row = (now - begun, *sizes, 100 * (used - cpu) / (now - last), self._process.num_threads())
                cpu, last = used, now
                self.rows.append(row)
                out.writerow(f"{value:.1f}" for value in row)
                file.flush()

    def end(self) -> np.ndarray:
        self._over.set()
        self.join()
        return np.array(self.rows)


@contextmanager
def writers(runs_dir: Path, num_agents: int, every_s: float) -> Iterator[Run]:
    """The cohort that writes; its run, once Votes has something to show."""
    before = {run.id for run in all_runs(runs_dir)}
    command = [sys.executable, "-m", "tests.benchmarks.load_writers", str(runs_dir), "--agents", str(num_agents)]
    process = subprocess.Popen([*command, "--every", str(every_s)], cwd=PROJECT, stdin=subprocess.DEVNULL)
    try:
        while not (new := [run for run in all_runs(runs_dir) if run.id not in before and any(run.path.rglob("*.parquet"))]):
            if process.poll() is not None:
                raise SystemExit(f"the writers ended with {process.returncode}")
            time.sleep(1)
        yield new[0]
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


@contextmanager
def loaded(given: argparse.Namespace) -> Iterator[tuple[Run, psutil.Process, Any]]:
    """The cohort that writes, a dashboard on it, and a browser."""
    cohort, server = writers(given.store, given.agents, given.every), dashboard(given.store, given.port)
    with cohort as run, server as process, chromium() as browser:
        yield run, process, browser


def fill_queue(runs_dir: Path) -> None:
    """Three runs that wait and are held, so that nothing is started."""
    if not any(run.status().state == "queued" for run in all_runs(runs_dir)):
        held = [load_config("demo-pair", [f"name=waits {number}", "device=cpu"]) for number in range(3)]
        for run in queue.enqueue_checked(held, runs_dir):
            queue.hold(run)


def finished(runs_dir: Path, num: int) -> list[str]:
    return [run.id for run in reversed(all_runs(runs_dir)) if "-study-" in run.id][:num]


@dataclass
class Watch:
    """What came of pages that were open for a while."""

    people: list[Watcher]
    first_s: float = 0.0  # until all had been opened once
    behind_s: list[float] = field(default_factory=list)  # how far the Run page was behind the run, each time it was looked at


def watch(given: argparse.Namespace, site: str, run: Run, browser: Any, seconds: float) -> Watch:
    """Pages open for so long; every five minutes all are opened anew."""
    people = watchers(browser, views(run.id, finished(given.store, 20))[: given.browsers])
    found, begun, opened, turn = Watch(people), time.monotonic(), -AGAIN_S, 0
    while time.monotonic() - begun < seconds:
        if time.monotonic() - begun - opened >= AGAIN_S:
            opened = time.monotonic() - begun
            took = [f"{one.view.name} {one.open(site):.1f} s" for one in people]
            found.first_s = found.first_s or time.monotonic() - begun
            print(f"{opened / 60:5.1f} min  opened in {', '.join(took)}", flush=True)
        for one in people:
            one.act(turn)
            if one.view.name == "Run" and (shown := one.step()) is not None:
                found.behind_s.append(max(0, run.status().step - shown) * given.every)
        turn += 1
        time.sleep(ACT_S)
    return found


def memory(given: argparse.Namespace) -> bool:
    """The curve over the minutes that were asked for; whether it is flat, and no page showed an error."""
    with loaded(given) as (run, server, browser):
        sampler = Sampler(server, given.out / "memory.csv")
        sampler.start()
        found = watch(given, f"http://127.0.0.1:{given.port}", run, browser, 60 * given.minutes)
        rows, steps = sampler.end(), run.status().step
    return report(given, rows, found, steps)


def report(given: argparse.Namespace, rows: np.ndarray, found: Watch, steps: int) -> bool:
    people, behind = found.people, found.behind_s
    late = rows[rows[:, 0] >= min(found.first_s + WARM_S, rows[-1, 0] / 2)]
    minutes = late[:, 0] / 60
    slopes = {name: float(np.polyfit(minutes, late[:, place], 1)[0]) for place, name in enumerate(COLUMNS) if "mb" in name}
    plot(given.out / "memory.png", rows, slopes)
    print(f"\n{given.runs} runs, {given.agents} agents, a step every {given.every:g} s ({steps} steps), {len(people)} browsers, "
          f"{rows[-1, 0] / 60:.0f} minutes\n")  # fmt: skip
    print("| page | first | again, median | again, slowest |\n| --- | --- | --- | --- |")
    for one in people:
        again = one.opened_s[1:] or [float("nan")]
        print(f"| {one.view.name} | {one.opened_s[0]:.1f} s | {statistics.median(again):.1f} s | {max(again):.1f} s |")
    print("\n| memory | 5 minutes after all were open | at the end | growth a minute | in 30 minutes |")
    print("| --- | --- | --- | --- | --- |")
    for name, slope in slopes.items():
        column = COLUMNS.index(name)
        print(f"| {name[:3].upper()} | {late[:6, column].mean():.0f} MB | {late[-6:, column].mean():.0f} MB | "
              f"{slope:.2f} MB | {30 * slope:.0f} MB |")  # fmt: skip
    errors = [error for one in people for error in one.errors]
    flat = 30 * slopes["pss_mb"] < FLAT_MB
    print(f"\nCPU of the dashboard: {late[:, 4].mean():.0f}% of a core, threads {late[:, 5].max():.0f} at most")
    if behind:
        print(f"Run page behind the run: {statistics.median(behind):.1f} s, {max(behind):.1f} s at most")
    print(f"errors on pages: {errors or 'none'}")
    print(f"memory is {'flat' if flat else 'NOT flat'} (bound: {FLAT_MB:g} MB in 30 minutes)")
    return flat and not errors


def plot(path: Path, rows: np.ndarray, slopes: dict[str, float]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 3), layout="constrained")
    for name in ("rss_mb", "pss_mb"):
        axes.plot(rows[:, 0] / 60, rows[:, COLUMNS.index(name)], label=f"{name[:3].upper()}, {slopes[name]:+.2f} MB a minute")
    axes.set(xlabel="minutes", ylabel="memory of the dashboard, MB", ylim=(0, None))
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)


def sessions(given: argparse.Namespace) -> bool:
    """Opens and closes a page 50 times, twice."""
    with loaded(given) as (run, server, browser):
        view, site = views(run.id, [])[1], f"http://127.0.0.1:{given.port}"
        sizes, left = [_settled(server, 0)], []
        for _ in range(2):
            for visit in range(VISITS):
                (one,) = watchers(browser, [view])
                one.open(site)
                one.page.context.close()
                if visit % 10 == 9:
                    size = server.memory_full_info().pss / MB
                    print(f"after {visit + 1} visits {size:.0f} MB, {server.num_threads()} threads", flush=True)
            sizes.append(_settled(server, KEPT_S))
            left.append(_active_sessions(site))
    print("\n| before | after 50 visits and a rest | after 100 visits and a rest |\n| --- | --- | --- |")
    print(f"| {' | '.join(f'{size:.0f} MB' for size in sizes)} |")
    print(f"\nsessions left, by Streamlit's own count: {left}")
    return sizes[2] - sizes[1] < FLAT_MB and not any(left)


def _active_sessions(site: str) -> int:
    """How many sessions the dashboard keeps."""
    with urllib.request.urlopen(f"{site}/_stcore/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return int(float(next(line.split()[-1] for line in lines if line.startswith("active_sessions"))))


def _settled(server: psutil.Process, rest_s: float) -> float:
    time.sleep(rest_s)
    return server.memory_full_info().pss / MB


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--agents", type=int, default=8)
    parser.add_argument("--browsers", type=int, default=5)
    parser.add_argument("--every", type=float, default=2.0, help="seconds between two steps of the cohort that writes")
    parser.add_argument("--pairs", type=int, default=60, help="slowdown: how often watched and unwatched are compared")
    parser.add_argument("--segment", type=float, default=8, help="slowdown: seconds of each")
    parser.add_argument("--only", choices=("memory", "sessions", "slowdown"))
    parser.add_argument("--port", type=int, default=8670)
    parser.add_argument("--store", type=Path, help="made when it is missing; by default a new folder")
    parser.add_argument("--out", type=Path, default=Path("."))
    given = parser.parse_args()
    given.store = (given.store or Path(tempfile.mkdtemp())).resolve()
    given.store.mkdir(parents=True, exist_ok=True)
    given.out.mkdir(parents=True, exist_ok=True)
    os.environ.pop("MLFLOW_TRACKING_URI", None)
    make(given.store, given.runs, 200)
    fill_queue(given.store)
    from tests.benchmarks.load_slowdown import slowdown

    parts = {"memory": memory, "sessions": sessions, "slowdown": slowdown}
    sys.exit(0 if all([parts[name](given) for name in parts if given.only in (None, name)]) else 1)


if __name__ == "__main__":
    main()
