"""The scripts that the browser fetches once and keeps, copied into static/: Plotly's out of the installed wheel, and ours.

A name carries the version or a digest of the content, so that a browser's cache never serves an older one.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

import streamlit as st

STATIC = Path(__file__).resolve().parents[2] / "static"
CHART = ("chart_canvas.js", "chart.js")  # beside this file; one script for the browser


@cache
def file_name() -> str:
    """plotly-VERSION.min.js"""
    return f"plotly-{metadata.version('plotly')}.min.js"


@cache
def chart_name() -> str:
    """chart-DIGEST.js"""
    return f"chart-{hashlib.sha256(_chart().encode()).hexdigest()[:12]}.js"


def _chart() -> str:
    return "\n".join((Path(__file__).parent / name).read_text(encoding="utf-8") for name in CHART)


def ensure() -> None:
    """Copies the scripts unless they are there. Does nothing on later calls."""
    package = Path(find_spec("plotly").submodule_search_locations[0])
    _put(file_name(), lambda: (package / "package_data" / "plotly.min.js").read_text(encoding="utf-8"))
    _put(chart_name(), _chart)


def _put(name: str, content: Callable[[], str]) -> None:
    target = STATIC / name
    if target.exists():
        return
    STATIC.mkdir(exist_ok=True)
    handle, made = tempfile.mkstemp(dir=STATIC)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(content())
    os.chmod(made, 0o644)
    os.replace(made, target)


def url(name: str | None = None) -> str:
    """Where the browser finds a script: Plotly's unless another is named."""
    base = (st.get_option("server.baseUrlPath") or "").strip("/")
    return f"{'/' + base if base else ''}/app/static/{name or file_name()}"
