"""Which weights an agent leaves behind: the last ones, or those of its best evaluation by a rule that is written down.

`peer_agreement` needs no labels: the share of held-out questions on which the agent's vote is its peer's. It says consensus,
not correctness: a cohort that has collapsed into one wrong answer agrees perfectly. `ground_truth` uses true answers, as the
released Co-RL code does for its own results, and such a run is no longer label-free. Of equal values the latest is kept.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

from corl_core.runs.journal import Journal

VALUE = "value.json"
Save = Callable[[Path], None]


class Selection:
    """Keeps the best weights so far in `best/` beside the others; `finish` makes `model/`."""

    def __init__(self, rule: str, folder: Path, journal: Journal, save: Save):
        self.rule, self._folder, self._journal, self._save = rule, folder, journal, save
        self._best = self._kept()

    def consider(self, step: int, value: float | None) -> None:
        """An evaluation after `step` updates and what the rule measures there; None where it is undefined."""
        if self.rule == "last" or value is None or (self._best is not None and value < self._best[0]):
            return
        unfinished = self._folder / ".best"
        shutil.rmtree(unfinished, ignore_errors=True)
        self._save(unfinished)
        (unfinished / VALUE).write_text(json.dumps([value, step]))
        shutil.rmtree(self._folder / "best", ignore_errors=True)
        unfinished.rename(self._folder / "best")
        self._best = (value, step)

    def _kept(self) -> tuple[float, int] | None:
        """The best of an earlier attempt of this run."""
        path = self._folder / "best" / VALUE
        return tuple(json.loads(path.read_text())) if path.exists() else None

    def finish(self, step: int, may_go_on: bool) -> None:
        """Leaves the chosen weights in `model/`, and the rule, step and value in the journal. A run that may be resumed keeps
        its best so far to compare with."""
        value, chosen = self._best or (None, step)
        if self._best is None:
            self._save(self._folder / "model")
        else:
            shutil.rmtree(self._folder / "model", ignore_errors=True)
            shutil.copytree(self._folder / "best", self._folder / "model", ignore=shutil.ignore_patterns(VALUE))
            if not may_go_on:
                shutil.rmtree(self._folder / "best")
        rule = self.rule if self._best else "last"  # where no evaluation could say which is best
        self._journal.write("checkpoint", step=chosen, rule=rule, value=value, uses_truth=rule == "ground_truth")
