"""The server ends when it is told to: a browser that reads no more (a laptop asleep) or a page in a long call must not hold it.

On a signal the server waits for its connections to close, without limit, and then Python for the threads that draw pages.
Nothing is lost with either: runs are processes of their own, and what a page writes is put in place whole.
"""

import functools
import os
import sys
import threading

END_S = 8.0
"""Longer than a page takes, shorter than the ten seconds after which containers and service managers kill."""


def end_for_certain() -> None:
    """To be called before the server is started."""
    from streamlit.web.server import Server

    Server.stop = _limited(Server.stop)


def _limited(stop):
    @functools.wraps(stop)
    def stop_in_time(server) -> None:
        timer = threading.Timer(END_S, _end)
        timer.daemon = True
        timer.start()
        stop(server)

    return stop_in_time


def _end() -> None:
    held = sorted(thread.name for thread in threading.enumerate() if not thread.daemon)
    print(f"Ended after {END_S:g} s, with connections open or threads at work: {', '.join(held)}", file=sys.stderr, flush=True)
    os._exit(0)
