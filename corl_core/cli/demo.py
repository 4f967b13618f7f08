"""`app`: the dashboard. `demo`: the demo cohort, trained for real, and the dashboard on it."""

import argparse
import errno
import os
import signal
import socket
import subprocess
import sys
import time
import webbrowser
from pathlib import Path
from urllib.parse import urlsplit

import psutil

from corl_core import security
from corl_core.cli.progress import follow
from corl_core.cli.runs import add_overrides
from corl_core.config import load_config
from corl_core.runs import launch
from corl_core.runs.folder import Run, all_runs
from corl_core.runs.results import results

HOST = "127.0.0.1"
FAMILIES = (socket.AF_INET, socket.AF_INET6)
APP = launch.PROJECT / "app.py"


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    app = verbs.add_parser("app", parents=[common], help="open the dashboard")
    app.set_defaults(run=_app)
    demo = verbs.add_parser("demo", parents=[common], help="train the demo cohort and open the dashboard on it")
    demo.set_defaults(run=_demo, config="demo")
    add_overrides(demo)
    for verb in (app, demo):
        verb.add_argument("--port", type=_port, default=8501, help="the dashboard's port (default: 8501)")
        verb.add_argument("--address", default=HOST, help="where the dashboard listens (default: this machine alone)")
        text = "a name or address that people type to reach it, beside --address and this machine's own; may be given again"
        verb.add_argument("--host", action="append", default=[], metavar="NAME", help=text)
        text = "listen on an --address that other machines reach, without a login: anybody there can start programs here"
        verb.add_argument(security.ALLOW_OPTION, action="store_true", dest="allow_anyone", help=text)
        verb.add_argument("--no-browser", action="store_true", help="print the address only")


def _port(text: str) -> int:
    if not text.isdigit() or not 1 <= int(text) <= 65_535:
        raise argparse.ArgumentTypeError(f"'{text}' is not a port; give a number from 1 to 65535")
    return int(text)


def _interrupt(*_: object) -> None:
    """A SIGTERM ends the dashboard as Ctrl-C does."""
    raise KeyboardInterrupt


def _app(arguments: argparse.Namespace) -> int:
    dashboard = _start_dashboard(arguments)
    try:
        _open(arguments, "")
        return dashboard.wait()
    except KeyboardInterrupt:
        return 0
    finally:
        _end(dashboard)


def _demo(arguments: argparse.Namespace) -> int:
    config = load_config("demo", arguments.overrides)
    dashboard = _start_dashboard(arguments)
    try:
        run = _live_demo(arguments.runs) or launch.launch(config, arguments.runs)
        print(f"Run {run.id}: three tiny models learn arithmetic from each other's votes (Ctrl-C stops).", flush=True)
        _open(arguments, f"run?run={run.id}")
        status = follow(run)
        if status.state != "finished":
            print(f"The run {status.state}. {status.reason}", file=sys.stderr)
            return 1
        _report(run)
        print(f"The dashboard stays at {_site(arguments)}/run?run={run.id} until Ctrl-C.", flush=True)
        dashboard.wait()
        return 0
    except KeyboardInterrupt:
        return 0
    finally:
        _end(dashboard)


def _live_demo(runs_dir: Path) -> Run | None:
    """A demo that is still running, so that asking twice does not train twice."""
    demos = [run for run in all_runs(runs_dir) if not run.problem and run.config.preset == "demo"]
    return next((run for run in demos if not run.status().final), None)


def _start_dashboard(arguments: argparse.Namespace) -> subprocess.Popen:
    """Streamlit on the address asked for, ended with this process. Raises LaunchError for an address that would let anybody in,
    and when the port is taken."""
    said = {security.ALLOW_ANYONE: "1"} if arguments.allow_anyone else {}
    environment = os.environ | {"CORL_RUNS": str(arguments.runs)} | said
    login = security.read_login(security.secrets_files(launch.PROJECT))
    if why := security.refusal(arguments.address, login, environment):
        raise launch.LaunchError(f"the dashboard does not start: {why}")
    signal.signal(signal.SIGTERM, _interrupt)
    with socket.socket(_family(arguments.address)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((arguments.address, arguments.port))
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                what = f"cannot listen on {arguments.address}: {error.strerror or error}"
                raise launch.LaunchError(f"{what}; give an address of this machine") from error
            other = f"make {arguments.verb} PORT={arguments.port + 1}"
            raise launch.LaunchError(f"port {arguments.port} is in use: close what uses it, or run: {other}") from error
    arguments.runs.mkdir(parents=True, exist_ok=True)
    log = (arguments.runs / "dashboard.log").open("ab")
    options = ["--server.address", arguments.address, "--server.port", str(arguments.port), "--server.headless", "true"]
    for host in allowed_hosts(arguments.address, arguments.host):
        options += ["--server.allowedHosts", host]
    command = [sys.executable, "-m", "pages.components.serve", "run", str(APP), *options]  # streamlit's, warmed up
    return subprocess.Popen(
        command, cwd=launch.PROJECT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        env=environment,
    )  # fmt: skip


def allowed_hosts(address: str, more: list[str]) -> list[str]:
    """The names under which browsers may come, so that no foreign name can be pointed at the dashboard (DNS rebinding)."""
    names = ["localhost", HOST, "::1", address, *more]
    if not security.is_loopback(address):
        own = [one.address.partition("%")[0] for each in psutil.net_if_addrs().values() for one in each if one.family in FAMILIES]
        names += [socket.gethostname(), socket.getfqdn(), *own]
    return list(dict.fromkeys(name.lower() for name in names if name and name not in ("0.0.0.0", "::")))


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def _site(arguments: argparse.Namespace) -> str:
    """How a browser on this machine reaches it."""
    host = HOST if arguments.address in ("0.0.0.0", "::", "localhost") else arguments.address
    return f"http://{f'[{host}]' if ':' in host else host}:{arguments.port}"


def _open(arguments: argparse.Namespace, page: str) -> None:
    url = f"{_site(arguments)}/{page}"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        host = urlsplit(url).hostname or HOST
        with socket.socket(_family(host)) as probe:
            if probe.connect_ex((host, arguments.port)) == 0:
                break
        time.sleep(0.1)
    print(f"Dashboard: {url}", flush=True)
    if not arguments.no_browser:
        webbrowser.open(url)


def _end(dashboard: subprocess.Popen) -> None:
    dashboard.terminate()
    try:
        dashboard.wait(10)
    except subprocess.TimeoutExpired:
        dashboard.kill()


def _report(run: Run) -> None:
    for name, ends in results(run)["agents"].items():
        first, last = (ends[end].get("eval/accuracy") for end in ("first", "last"))
        if first is not None:
            print(f"  {name:<10} held-out accuracy {first:.2f} → {last:.2f}")
