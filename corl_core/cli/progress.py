"""A run's progress in the terminal."""

import signal
import time
from collections.abc import Callable
from statistics import fmean

from tqdm import tqdm

from corl_core.runs import launch
from corl_core.runs.folder import Run, Status
from corl_core.runs.journal import Tail

POLL_S = 0.5


class _Headline:
    """The latest accuracy (mean over agents) and agreement, followed through the journals."""

    def __init__(self, run: Run):
        self._tails = {agent: Tail(path) for agent, path in run.journal_paths().items()}
        self._latest: dict[tuple[str, str], float] = {}

    def read(self) -> dict[str, str]:
        for agent, tail in self._tails.items():
            for line in tail.read():
                for name in ("eval/accuracy", "agreement"):
                    if name in line.get("metrics", {}):
                        self._latest[agent, name] = line["metrics"][name]
        accuracies = [value for (agent, name), value in self._latest.items() if name == "eval/accuracy"]
        shown = {"accuracy": f"{fmean(accuracies):.2f}"} if accuracies else {}
        if ("", "agreement") in self._latest:
            shown["agreement"] = f"{self._latest['', 'agreement']:.2f}"
        return shown


def follow(run: Run, quiet: bool = False, also: Callable[[], None] = lambda: None) -> Status:
    """Shows a run's progress until it ends; Ctrl-C, a closed terminal or SIGTERM stop the run first.

    `also` is called at every look. Returns the final status.
    """
    asked = {"stop": False}
    previous = {
        number: signal.signal(number, lambda *_: asked.update(stop=True))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        with tqdm(total=run.status().max_steps, unit="step", disable=quiet, dynamic_ncols=True) as bar:
            headline = _Headline(run)
            while True:
                status = run.status()
                _show(bar, status, headline.read())
                if status.final:
                    return status
                if asked["stop"]:
                    launch.stop(run)
                also()
                time.sleep(POLL_S)
    finally:
        for number, handler in previous.items():
            signal.signal(number, handler)


def _show(bar: tqdm, status: Status, headline: dict[str, str]) -> None:
    bar.set_description(f"{status.state}: {status.phase}" if status.phase else status.state, refresh=False)
    if status.step and not bar.n:
        bar.unpause()
    bar.n = status.step
    bar.set_postfix(headline, refresh=False)
    bar.refresh()
