"""Recorded runs of the demo, as small as alarms need them: `python -m tests.alarm_records RUN_FOLDER…` writes them.

A record is JSON: every agent's steps as columns, its evaluations, and the cohort's agreement. Votes and questions are left
out but for their number. `lines` makes journal lines of it again, in the order in which a cohort that goes together writes
them. Evaluating more often changes no rollout, so a second folder of the same seed, named right after the first as FOLDER+FOLDER,
adds the evaluations that the first lacks.
"""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "data" / "alarms"
AGENT = ("vote_share", "reward", "frac_reward_zero_std", "entropy", "parse_rate", "completions/mean_length",
         "completions/clipped_ratio")  # fmt: skip
HELD_OUT = ("eval/accuracy", "eval/majority_accuracy")


def lines(record: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(agent or '' for the cohort, line); an evaluation at step s comes after s steps."""
    names, num_steps, votes = list(record["agents"]), record["num_steps"], ["?"] * record["num_questions"]
    for step in range(num_steps + 1):
        for name in names:
            own = record["agents"][name]
            if str(step) in own["evaluations"]:
                yield name, _line("eval", step, own["evaluations"][str(step)])
        if step == num_steps:
            return
        for name in names:
            columns = record["agents"][name]["steps"]
            yield name, _line("step", step, {metric: column[step] for metric, column in columns.items()}) | {"votes": votes}
        yield "", _line("step", step, {metric: column[step] for metric, column in record["cohort"].items()})


def read(name: str) -> dict[str, Any]:
    return json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))


def _line(event: str, step: int, metrics: dict[str, float | None]) -> dict[str, Any]:
    return {"event": event, "step": step, "metrics": {name: value for name, value in metrics.items() if value is not None}}


def record(path: Path) -> dict[str, Any]:
    """What a run's journals say, from its folder."""
    from corl_core.runs.folder import Run
    from corl_core.runs.journal import Tail

    run = Run(path)
    journals = {name: Tail(journal).read() for name, journal in run.journal_paths().items()}
    steps = {name: [line for line in written if line["event"] == "step"] for name, written in journals.items()}
    made: dict[str, Any] = {"name": f"{run.config.preset}-{run.config.seed}", "num_votes": run.config.num_votes}
    made |= {"num_steps": len(steps[""]), "num_questions": len(next(iter(steps.values()))[0].get("votes", [])) or 8}
    made["agents"] = {
        name: {
            "steps": {metric: [_short(line["metrics"].get(metric)) for line in steps[name]] for metric in AGENT},
            "evaluations": {
                str(line["step"]): {metric: line["metrics"][metric] for metric in HELD_OUT}
                for line in journals[name] if line["event"] == "eval"
            },
        }
        for name in journals if name
    }  # fmt: skip
    pairs = sorted({metric for line in steps[""] for metric in line["metrics"] if metric.startswith("agreement/")})
    made["cohort"] = {metric: [_short(line["metrics"].get(metric)) for line in steps[""]] for metric in pairs}
    return made


def _short(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for argument in sys.argv[1:]:
        made, *others = map(record, map(Path, argument.split("+")))
        for name, agent in made["agents"].items():
            for other in others:
                more = other["agents"][name]
                assert all(column == agent["steps"][metric][: len(column)] for metric, column in more["steps"].items()), name
                agent["evaluations"] = more["evaluations"] | agent["evaluations"]
        text = json.dumps(made, separators=(",", ":")).encode()
        (FOLDER / f"{made['name']}.json.gz").write_bytes(gzip.compress(text, 9, mtime=0))
        print(made["name"], (FOLDER / f"{made['name']}.json.gz").stat().st_size, "bytes")
