"""Who listens: this user's dashboards with their addresses, and whether the usual port is free."""

import os
from dataclasses import dataclass
from pathlib import Path

import psutil

from corl_core.doctor.record import Finding
from corl_core.security import is_loopback

SERVERS = ("streamlit", "pages.components.serve")
PORT = 8501  # where `app` and `demo` listen unless told otherwise


@dataclass(frozen=True)
class Listener:
    pid: int
    address: str
    port: int
    is_dashboard: bool


def check(runs_dir: Path) -> list[Finding]:
    return report(listeners())


def report(found: list[Listener]) -> list[Finding]:
    lines = [_dashboard(listener) for listener in found if listener.is_dashboard]
    taken = [listener for listener in found if listener.port == PORT and not listener.is_dashboard]
    if taken:
        words = f"used by process {taken[0].pid}, which is no dashboard of ours"
        lines.append(Finding(f"port {PORT}", "note", words, f"python -m corl_core app --port {PORT + 1}"))
    elif not any(listener.port == PORT for listener in found):
        lines.append(Finding(f"port {PORT}", "ok", "free"))
    return lines


def _dashboard(listener: Listener) -> Finding:
    words = f"a dashboard, process {listener.pid}, on {listener.address}"
    if is_loopback(listener.address):
        return Finding(f"port {listener.port}", "ok", words)
    remedy = "meant to be reached from other machines? If not: python -m corl_core app, without --address"
    return Finding(f"port {listener.port}", "note", words, remedy)


def listeners() -> list[Listener]:
    """Of this user's processes alone: others' cannot be read everywhere."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.uids().real != os.getuid():
                continue
            command = process.cmdline()
            server = any(name in " ".join(command[:4]) for name in SERVERS)
            ours = server and any(part.endswith("app.py") for part in command)
            for one in process.net_connections("inet"):
                if one.status == psutil.CONN_LISTEN:
                    found.append(Listener(process.pid, one.laddr.ip, one.laddr.port, ours))
        except (psutil.Error, OSError):
            continue
    return sorted(set(found), key=lambda listener: (listener.port, listener.pid))
