"""Plotly's script for the browser, copied out of the installed wheel into static/.

The name carries the version, so that a browser's cache never serves an older one.
"""

import os
import shutil
import tempfile
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import streamlit as st

STATIC = Path(__file__).resolve().parents[2] / "static"


@cache
def file_name() -> str:
    """plotly-VERSION.min.js"""
    return f"plotly-{metadata.version('plotly')}.min.js"


def ensure() -> None:
    """Copies the script unless it is there. Does nothing on later calls."""
    target = STATIC / file_name()
    if target.exists():
        return
    STATIC.mkdir(exist_ok=True)
    package = Path(find_spec("plotly").submodule_search_locations[0])
    handle, name = tempfile.mkstemp(dir=STATIC)
    os.close(handle)
    shutil.copyfile(package / "package_data" / "plotly.min.js", name)
    os.chmod(name, 0o644)
    os.replace(name, target)


def url() -> str:
    """Where the browser finds it."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"{'/' + base if base else ''}/app/static/{file_name()}"
