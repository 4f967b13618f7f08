"""How much slower a run trains while it is watched: demo-pair on one core; dashboard, browsers and writing cohort on another.

Segments alternate in the order watched, unwatched, unwatched, watched, …, so that a drift of the training or of the machine
cancels; they are short, since a shared machine changes its pace by ten percent within a minute. While unwatched, the dashboard
and the browser are suspended with their pages open; the cohort goes on writing. A segment counts from a moment after its change
on. The learning rate is next to nothing, so that completions keep their length. Two figures of each pair of segments: the ratio
of the median times from one step to the next, over both agents, and the ratio of steps done in a second, in which rare long
steps count too; for both the median of the pairs, with a bootstrap 95% interval. Nothing else may use the first core.
"""

import argparse
import os
import signal
import statistics
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import pairwise

import psutil

from corl_core.config import load_config
from corl_core.runs import launch
from corl_core.runs.folder import Run
from corl_core.runs.journal import read
from tests.benchmarks.bench_dashboard import dashboard
from tests.benchmarks.load_pages import Watcher, chromium, views, watchers

OPEN_S, SETTLE_S = 20.0, 1.5
WARM_STEPS = 40
BOUND = 1.02
FIELDS = ("device=cpu", "grpo.max_steps=20000", "grpo.learning_rate=1e-12", "eval.num_questions=0", "checkpoints.every_steps=0")


@dataclass(frozen=True)
class Segment:
    """Seconds of training, from one moment to another by the clock that journals are written with."""

    watched: bool
    begun: float
    ended: float


def pin(process: psutil.Process, cores: Iterable[int]) -> None:
    """This process, all its threads and all that it has started."""
    for one in [process, *process.children(recursive=True)]:
        for thread in one.threads():
            try:
                os.sched_setaffinity(thread.id, cores)
            except ProcessLookupError:
                continue


@contextmanager
def trained(given: argparse.Namespace, core: int) -> Iterator[Run]:
    """Real training of demo-pair in the same folder, on one core, past its first steps."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})  # what is started now inherits it
    run = launch.launch(load_config("demo-pair", ["name=trained under load", *FIELDS]), given.store)
    os.sched_setaffinity(0, before)
    try:
        while run.status().step < WARM_STEPS:
            if run.status().final:
                raise SystemExit(f"{run.id}: {run.status().reason}")
            time.sleep(1)
        yield run
    finally:
        launch.stop(run)
        while not run.status().final:
            time.sleep(0.5)


def segments(given: argparse.Namespace, site: str, server: psutil.Process, people: list[Watcher]) -> Iterator[Segment]:
    for one in people:
        one.open(site)
    time.sleep(OPEN_S)
    started = psutil.Process().children(recursive=True)
    watching = [server, *server.children(recursive=True), *(one for one in started if "chrom" in one.name())]
    try:
        for number in range(2 * given.pairs):
            watched = number % 4 in (0, 3)
            _send(watching, signal.SIGCONT if watched else signal.SIGSTOP)
            time.sleep(SETTLE_S)
            begun, until = time.time(), time.monotonic() + given.segment
            if watched:
                people[number // 2 % len(people)].act(number // 2 // len(people))
            time.sleep(max(0.0, until - time.monotonic()))
            yield Segment(watched, begun, time.time())
    finally:
        _send(watching, signal.SIGCONT)
    if errors := [error for one in people for error in one.errors]:
        raise SystemExit(f"errors on pages: {errors}")


def _send(processes: Iterable[psutil.Process], number: int) -> None:
    for process in processes:
        with suppress(psutil.NoSuchProcess):  # a page's helper of the browser that has ended
            process.send_signal(number)


def step_ends(run: Run) -> list[list[float]]:
    """When each step of each agent ended. Read once: the journals are long by then."""
    paths = [path for agent, path in run.journal_paths().items() if agent]
    return [[line["time"] for line in read(path) if line["event"] == "step"] for path in paths]


def step_times(ends: list[list[float]], segment: Segment) -> tuple[float, float]:
    """The median seconds from one step to the next, and the steps a second, of all agents within the segment."""
    inside = [[moment for moment in times if segment.begun <= moment < segment.ended] for times in ends]
    gaps = [later - earlier for times in inside for earlier, later in pairwise(times)]
    return statistics.median(gaps), sum(map(len, inside)) / (segment.ended - segment.begun)


def slowdown(given: argparse.Namespace) -> bool:
    """Whether watched training is at most two percent slower, by the median of the pairs."""
    from tests.benchmarks.bench_load import finished, writers

    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SystemExit("the slow-down needs two cores")
    os.sched_setaffinity(0, set(cores[1:]))  # of this process, and so of the writers, the dashboard and the browser
    cohort, server = writers(given.store, given.agents, given.every), dashboard(given.store, given.port)
    with trained(given, cores[0]) as run, cohort as written, server as process, chromium() as browser:
        wanted = views(run.id, [written.id, *finished(given.store, 19)])
        votes = views(written.id, [])[3]
        people = watchers(browser, [votes if view.name == "Votes" else view for view in wanted][: given.browsers])
        pin(psutil.Process(), cores[1:])
        pin(psutil.Process(run.status().pid), cores[:1])
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        measured: list[Segment] = []
        with suppress(KeyboardInterrupt):  # what there is until then is reported
            measured.extend(segments(given, f"http://127.0.0.1:{given.port}", process, people))
        if len(measured) < 2:
            raise SystemExit("interrupted before the first pair of segments was over")
        whole = measured[: len(measured) // 2 * 2]
        ends = step_ends(run)
        return report([(one.watched, *step_times(ends, one)) for one in whole])


def report(measured: list[tuple[bool, float, float]]) -> bool:
    import numpy as np
    from scipy.stats import bootstrap

    pairs = [sorted(pair, reverse=True) for pair in zip(measured[::2], measured[1::2], strict=True)]  # the watched one first
    by_step = [watched[1] / unwatched[1] for watched, unwatched in pairs]
    by_rate = [unwatched[2] / watched[2] for watched, unwatched in pairs]
    print(f"{len(pairs)} pairs; a step takes {1000 * statistics.median(step_s for _, step_s, _ in measured):.1f} ms\n")
    print("| slow-down | median of the pairs | 95% interval | least | most |\n| --- | --- | --- | --- | --- |")
    for name, ratios in (("step time", by_step), ("steps a second", by_rate)):
        sure = bootstrap((ratios,), np.median, method="percentile", rng=0).confidence_interval
        shown = (statistics.median(ratios), sure.low, sure.high, min(ratios), max(ratios))
        middle, low, high, least, most = map(_percent, shown)
        print(f"| {name} | {middle} | {low} to {high} | {least} | {most} |")
    return statistics.median(by_step) <= BOUND


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f}%"
