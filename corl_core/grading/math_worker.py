"""The main program of a worker: `python -m corl_core.grading.math_worker`, formulas in, canonical spellings out.

It imports sympy once and forks a calculating process, which reads {"latex": …} and writes {"key": …, "outcome": …}, a JSON
line each. When that process is killed, another is forked from the loaded one; it announces itself by {"ready": pid}.
Both end when their input does. Memory and processor time are limited, also for when nobody is left to kill it.
"""

import json
import os
import resource
import sys
from typing import Any

MEMORY_BYTES = 2 * 2**30
CPU_LIMIT_S = 5  # of one formula; the caller's own limit comes first


def main() -> None:
    parent = os.getppid()
    from corl_core.grading import algebra

    algebra.canonical(r"\frac{\sqrt{2}x}{2}")  # loads what is loaded at first use
    while os.getppid() == parent:
        child = os.fork()
        if child == 0:
            _serve(algebra)
            os._exit(0)
        if os.waitpid(child, 0)[1] == 0:
            return


def _serve(algebra: Any) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        _write({"ready": os.getpid()})
        while line := sys.stdin.buffer.readline():
            usage = resource.getrusage(resource.RUSAGE_SELF)
            spent_s = int(usage.ru_utime + usage.ru_stime) + CPU_LIMIT_S
            resource.setrlimit(resource.RLIMIT_CPU, (spent_s, resource.getrlimit(resource.RLIMIT_CPU)[1]))
            _write(_answer(algebra, json.loads(line)["latex"]))
    except BrokenPipeError:
        pass  # nobody listens any more


def _answer(algebra: Any, latex: str) -> dict[str, str | None]:
    try:
        return {"key": algebra.canonical(latex), "outcome": "parsed"}
    except Exception:  # whatever the libraries raise, or no memory: counted, and the answer is compared as text
        return {"key": None, "outcome": "error"}


def _write(line: dict[str, Any]) -> None:
    os.write(1, json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
