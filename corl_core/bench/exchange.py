"""`bench exchange`: what a round of votes costs between N agents, by bytes and by time.

N processes sit on a ring and swap votes on Q questions through a store that this process hosts, as the supervisor does. Nothing
is trained, so a round takes what the exchange alone takes. An answer is a number of four digits.
"""

import json
import multiprocessing
import os
import statistics
import time
from dataclasses import asdict, dataclass
from typing import Any

AGENTS, QUESTIONS, ROUNDS, SKIP = (2, 4, 8), (8, 128, 1024), 40, 5
ANSWER = "1234"


@dataclass(frozen=True)
class Row:
    """Medians and the 95th percentile over rounds and agents. Bytes: of one message, and through the store in one round."""

    agents: int
    questions: int
    message_bytes: int
    round_bytes: int
    round_ms: float
    slow_ms: float


def measure(agents: tuple[int, ...] = AGENTS, questions: tuple[int, ...] = QUESTIONS, rounds: int = ROUNDS) -> list[Row]:
    return [_row(number, size, rounds) for number in agents for size in questions]


def _row(num_agents: int, num_questions: int, rounds: int) -> Row:
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")  # a wait that goes on is a warning for torch
    from corl_core.training.exchange import digest, host_store

    store = host_store()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["corl_core.training.exchange"])  # torch once, not once an agent
    times: Any = context.Queue()
    shared = (num_agents, num_questions, rounds, store.port, times)
    processes = [context.Process(target=_agent, args=(index, *shared)) for index in range(num_agents)]
    for process in processes:
        process.start()
    measured = [value for _ in processes for value in times.get(timeout=600)]
    for process in processes:
        process.join()
    message = {"digest": digest(["q"]), "votes": [ANSWER] * num_questions, "stop_step": None}
    size = len(json.dumps(message))
    measured.sort()
    return Row(
        num_agents, num_questions, size, 2 * num_agents * size,
        1000 * statistics.median(measured), 1000 * measured[int(0.95 * (len(measured) - 1))],
    )  # fmt: skip


def _agent(index: int, num_agents: int, num_questions: int, rounds: int, port: int, times: Any) -> None:
    """Seconds of every round but the first ones, which pay for connections."""
    from corl_core.training.exchange import Exchange

    exchange = Exchange(str(index), str((index - 1) % num_agents), port, 600)
    exchange.ready()
    ids, votes = [f"q{number}" for number in range(num_questions)], [ANSWER] * num_questions
    taken = []
    for number in range(rounds):
        begin = time.perf_counter()
        exchange.swap(number, ids, votes)
        taken.append(time.perf_counter() - begin)
    times.put(taken[SKIP:])


def table(rows: list[Row]) -> str:
    """Markdown."""
    lines = ["| agents | questions | bytes a message | bytes a round, in and out of the store | ms a round | 95th percentile |"]
    lines.append("| ---: " * 6 + "|")
    for row in rows:
        sizes = f"{row.agents} | {row.questions:,} | {row.message_bytes:,} | {row.round_bytes:,}"
        lines.append(f"| {sizes} | {row.round_ms:.2f} | {row.slow_ms:.2f} |")
    return "\n".join(lines)


def as_json(rows: list[Row]) -> str:
    return json.dumps([asdict(row) for row in rows])
