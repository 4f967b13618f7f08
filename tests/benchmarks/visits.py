"""Pages as a server draws them, through Streamlit's AppTest; every visit is a browser of its own."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]


@contextmanager
def timed(what: str) -> Iterator[None]:
    """Prints the wall and the CPU time of what is inside."""
    wall, cpu = time.perf_counter(), time.process_time()
    yield
    print(f"{time.perf_counter() - wall:7.2f} s  {time.process_time() - cpu:7.2f} s CPU   {what}", flush=True)


def visit(runs_dir: Path, page: str, what: str, **query: str) -> None:
    """Opens a page on a runs folder and prints how long that took; an error on the page ends the bench."""
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.testing.v1 import AppTest

    os.environ["CORL_RUNS"] = str(runs_dir)
    made = PagesManager.__init__

    def after_app_py_has_run(self, *args, **kwargs) -> None:
        PagesManager.uses_pages_directory = False  # as in a server, once st.navigation was called
        made(self, *args, **kwargs)

    PagesManager.__init__ = after_app_py_has_run
    try:
        at = AppTest.from_file(str(PROJECT / "app.py"), default_timeout=300)
        at.switch_page(f"pages/{page}.py")
        for name, value in query.items():
            at.query_params[name] = value
        with timed(f"page: {what}"):
            at.run()
    finally:
        PagesManager.__init__ = made
    assert not at.exception and not at.error, [error.value for error in [*at.exception, *at.error]]
