"""A dispatcher process whose runs are small scripts: they say what a supervisor says, and write down when they began and ended.

    python -m tests.fake_queue RUNS_DIR     dispatches with scripts instead of supervisors
    python -m tests.fake_queue --run RUN_DIR    is one of those scripts: it lives for as many tenths of a second as its config has
                                                steps, and fails when its name is 'fails'
"""

import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil

from corl_core.config import load_config
from corl_core.runs import queue
from corl_core.runs.folder import Run, read_status, start_of, write_status
from corl_core.runs.queue_dispatch import dispatch


def start(run: Run) -> None:
    """As `launch.start`."""
    log = (run.path / "supervisor.log").open("ab")
    command = [sys.executable, "-m", "tests.fake_queue", "--run", str(run.path)]
    script = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
    began = start_of(psutil.Process(script.pid))
    write_status(run.path, replace(read_status(run.path), state="starting", pid=script.pid, pid_created=began))


def run_one(run: Run) -> None:
    me, config = psutil.Process(), run.config
    claim = replace(read_status(run.path), state="running", pid=me.pid, pid_created=start_of(me), heartbeat=time.time())
    write_status(run.path, claim)
    note(run, "begin")
    time.sleep(config.grpo.max_steps / 10)
    note(run, "end")
    state, reason = ("failed", "it was made to") if config.name == "fails" else ("finished", "")
    write_status(run.path, replace(claim, state=state, reason=reason, ended=time.time()))


def note(run: Run, what: str) -> None:
    """One line for all runs together, whole even when several write."""
    file = os.open(run.path.parent / "told.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, f"{what} {run.config.name}\n".encode())
    os.close(file)


def config(name: str = "run", *overrides: str):
    """A cohort of two on the CPU that a fake runs for 0.3 s."""
    return load_config("demo-pair", [f"name={name}", "device=cpu", "grpo.max_steps=3", *overrides])


def add(runs_dir: Path, *names: str, priority: int = 0) -> list[Run]:
    return queue.enqueue_checked([config(name) for name in names], runs_dir, priority)


if __name__ == "__main__":
    if sys.argv[1] == "--run":
        run_one(Run(Path(sys.argv[2])))
    else:
        sys.exit(0 if dispatch(Path(sys.argv[1]), start, poll_s=0.1) else 3)
