"""The processes of one agent, started by a test."""

import multiprocessing
import os
import socket


def as_rank(rank: int, size: int, port: int) -> None:
    """What a launcher puts into the environment of rank `rank`."""
    if size > 1:
        os.environ |= {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(size), "OMP_NUM_THREADS": "1"}
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}


def context():
    """Processes whose parent has imported the training code once."""
    made = multiprocessing.get_context("forkserver")
    made.set_forkserver_preload(["corl_core.training.process"])
    return made


def start_ranks(size: int, target, *arguments) -> None:
    """`target(rank, port, *arguments)` in as many processes, to their end."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    ranks = [context().Process(target=target, args=(rank, port, *arguments)) for rank in range(size)]
    for process in ranks:
        process.start()
    for process in ranks:
        process.join(240)
        assert process.exitcode == 0
