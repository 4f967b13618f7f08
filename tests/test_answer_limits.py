"""Nothing that a model writes hangs, kills or slows what reads it."""

import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from corl_core.answers import Answer, answer, forget, read, read_answer
from corl_core.grading import bounded, workers
from corl_core.grading.numbers import value

LIMIT_S = 2.0
HUGE = [
    "2003^{2002^{2001}}",
    "\\dfrac{5^{\\left(5^{\\left(5^{\\left(5^5\\right)}\\right)} - 4\\right)} - 5}{16}",
    "9^9^9^9",
    "10^{10^{10}}",
    "x^{10^{10^{10}}}",
    "(x+1)^{100000}",
    "(x+y+z)^{200}",
    "\\sin^{1000} x",
    "e^{e^{e^{e^{e}}}}",
    "\\exp(\\exp(\\exp(\\exp(10))))",
    "100000!",
    "((10!)!)!",
    "\\binom{10^9}{5\\cdot 10^8}",
    "\\sum_{k=1}^{10^{12}} \\frac{1}{k^2}",
    "\\int_0^\\infty e^{-x^2} dx",
    "\\prod_{k=1}^{10^9} k",
    "1e1000000000",
    "0." + "3" * 100_000,
    "7" * 5_000,
    "{" * 5_000 + "1" + "}" * 5_000,
    "(" * 900 + "1" + ")" * 900,
    "-" * 1_900 + "1",
    "2^" * 900 + "2",
    "x_" * 900 + "x",
    "\\frac{" * 200 + "1" + "}{2}" * 200,
    "1\\frac{" * 60 + "1" + "}{x}" * 60,
    "\\sqrt{" * 60 + "2" + "}" * 60,
    "(" + ")(".join(f"x+{i}" for i in range(60)) + ")",
    "\\frac{1}{" + "+".join(f"\\sqrt{{{p}}}" for p in (2, 3, 5, 7, 11, 13)) + "}",
    "\\cos(\\pi/65537)+1",
    "\\lfloor \\pi\\cdot 10^{300} \\rfloor",
    ",".join(f"\\sqrt{{{i}+x}}+\\sqrt{{{i}}}" for i in range(2, 60)),
    "$" * 3_000,
    "\\text{" * 2_000,
    "a and " * 300,
    "=x" * 500,
    "\\pm 1" * 100,
    "\\begin{pmatrix}" * 100,
]


@pytest.fixture(scope="module", autouse=True)
def _a_worker_that_runs():
    read_answer("x+\\sqrt{2}")
    yield
    workers.close()


@pytest.mark.parametrize("text", HUGE, ids=lambda text: text[:30])
def test_what_cannot_be_evaluated_returns_and_equals_itself(text):
    start = time.monotonic()
    reading = read_answer(text)
    assert time.monotonic() - start < LIMIT_S
    assert reading.outcome in ("parsed", "timeout", "error", "empty")
    assert reading.answer is None or read_answer(text) == reading


def test_no_number_is_computed_beyond_its_bound():
    assert value("2^{4095}") == 2**4095
    for text in ("2^{4097}", "401!", "10^{1300}", "x^{1001}"):
        with pytest.raises(bounded.TooBig):
            value(text)


def test_a_formula_out_of_time_is_a_timeout_and_compared_as_text(monkeypatch):
    monkeypatch.setattr(workers, "LIMIT_S", 0.0)
    forget()
    assert read("\\boxed{ u + \\sqrt{3} }").outcome == "timeout"
    assert answer("u + \\sqrt{3}") == Answer("u + \\sqrt{3}", "u+\\sqrt{3}")
    assert read_answer("7").outcome == "parsed"
    forget()


def test_a_calculation_that_is_killed_costs_its_time_and_the_next_one_works():
    worker = workers._Worker()
    worker.start()
    slow = "\\frac{(x+y+z+w)^{29}}{(x-y)^{28}}"
    start = time.monotonic()
    assert worker.ask(slow, 0.2) == (None, "timeout")
    assert time.monotonic() - start < 1.0
    assert worker.ask("b+a", 5.0) == ("a+b", "parsed")
    worker.close()


def test_a_worker_that_dies_is_an_error_and_is_replaced():
    assert workers.canonical("c+b") == ("b+c", "parsed")
    workers._pool._idle[-1]._process.kill()
    outcomes = [workers.canonical("d+b") for _ in range(2)]
    assert outcomes[-1] == ("b+d", "parsed") and outcomes[0] in ((None, "error"), ("b+d", "parsed"))


def test_a_worker_that_cannot_start_is_an_error_and_training_goes_on(monkeypatch):
    workers.close()
    monkeypatch.setattr(workers, "_pool", workers._Pool())
    monkeypatch.setattr(sys, "executable", "/bin/false")
    forget()
    assert read_answer("v+\\sqrt{5}").outcome == "error"
    start = time.monotonic()
    assert read_answer("w+\\sqrt{5}").outcome == "error"  # not tried again at once
    assert time.monotonic() - start < 0.1
    forget()


def test_threads_share_the_workers_and_get_their_own_answers():
    forget()
    got: dict[int, list[str]] = {}

    def work(number: int) -> None:
        got[number] = [answer(f"{number}\\sqrt{{{k}}}+y").key for k in (2, 3, 5)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(2, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert got == {n: [f"y+{n}*sqrt({k})" for k in (2, 3, 5)] for n in range(2, 10)}
    assert workers.num_idle() <= workers.MAX_WORKERS


def test_a_worker_ends_with_the_process_that_started_it(wait_for):
    psutil = pytest.importorskip("psutil")
    code = (
        "import os; from corl_core.answers import answer; from corl_core.grading import workers; answer('x+y'); "
        "worker = workers._pool._idle[0]; print(worker._process.pid, worker._calculator, flush=True); os._exit(1)"
    )
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120)
    pids = [int(pid) for pid in done.stdout.split()]
    assert len(pids) == 2
    wait_for(lambda: not any(psutil.pid_exists(pid) for pid in pids), "the worker's processes to end", 20)


@pytest.mark.parametrize("seed", range(3))
def test_arithmetic_however_garbled_starts_no_worker(seed):
    workers.close()
    rng = random.Random(seed)
    for _ in range(2_000):
        read("\\boxed{" + "".join(rng.choices("0123456789+-*=;?", k=rng.randint(1, 12))) + "}")
    assert workers.num_idle() == 0
