"""Starts the dashboard's server: `python -m pages.components.serve run app.py …`, with the words of `streamlit run app.py …`.

Streamlit runs app.py, and imports what that needs, when the first browser comes, which then waits a second longer than the
next. Here the large part is imported, and the configurations of the runs that the first page lists are read, before the server
listens; what declares components needs the server and is imported by a thread while the browser fetches its scripts. Two
threads must not import at once (Plotly looks at a pandas that is half there), so app.py waits for this one.
"""

import gc
import importlib
import pkgutil
import sys
import threading
import time
from contextlib import suppress

from pages.components.ending import end_for_certain
from pages.components.heap import be_thrifty

LARGE = (
    "pandas", "pyarrow", "pydantic", "scipy.special", "scipy.integrate", "tsdownsample",
    "corl_core.tracking.reader", "corl_core.figures.plotly", "pages.components.table",
)  # fmt: skip
NAME = "warm-up"  # of the thread
WAIT_S = 30.0


def warm_up() -> None:
    """Imports the pages' modules. What fails here fails again, and is told, where it is used."""
    if not _listening():
        return
    import pages.components as package

    for found in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        _import(found.name)
    gc.collect()
    gc.freeze()  # modules stay for good: a full collection need not look at them


def wait() -> None:
    """Until the thread is through, in a server that has one."""
    for thread in threading.enumerate():
        if thread.name == NAME:
            thread.join(WAIT_S)


def _listening() -> bool:
    """Waits for Streamlit's own start; before it, what declares components declares them for nobody."""
    from streamlit import runtime

    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if runtime.exists() and runtime.get_instance().state is not runtime.RuntimeState.INITIAL:
            return True
        time.sleep(0.02)
    return False


def _import(name: str) -> None:
    with suppress(ImportError):
        importlib.import_module(name)


def _read_configurations() -> None:
    from corl_core.config import ConfigError
    from corl_core.runs.folder import all_runs, default_runs_dir
    from pages.components import data

    for run in all_runs(default_runs_dir()):
        with suppress(ConfigError, OSError):
            data.config_of(run)


def main() -> None:
    """Streamlit's command line, with the thread beside it."""
    be_thrifty()
    from streamlit.web.cli import main as streamlit

    for name in LARGE:
        _import(name)
    _read_configurations()
    end_for_certain()
    threading.Thread(target=warm_up, name=NAME, daemon=True).start()
    sys.exit(streamlit(prog_name="streamlit"))


if __name__ == "__main__":
    main()
