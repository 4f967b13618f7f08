"""Arrays of numbers in a Plotly trace, as a browser or a file takes them; NaN is a gap."""

import base64
from typing import Any

import numpy as np

from corl_core.figures.spec import Array

Json = dict[str, Any]
EXACT_IN_FLOAT32 = 2**24


def as_lists(trace: Json) -> Json:
    """JSON numbers with seven significant digits; a gap is null. For files, and for traces that are taken apart."""
    return {name: _numbers(value) if isinstance(value, np.ndarray) else value for name, value in trace.items()}


def as_bytes(trace: Json) -> Json:
    """Plotly's typed arrays: base64 of 32-bit floats, a fifth of the size, and no number to parse; larger x in 64 bits."""
    return {name: _packed(value) if isinstance(value, np.ndarray) else value for name, value in trace.items()}


def _packed(values: Array) -> Json:
    large = values.size and np.nanmax(np.abs(values), initial=0.0) > EXACT_IN_FLOAT32
    kind = "f8" if large else "f4"
    return {"dtype": kind, "bdata": base64.b64encode(values.astype(f"<{kind}").tobytes()).decode()}


def _numbers(values: Array) -> list[float | int | None]:
    if np.issubdtype(values.dtype, np.integer):
        return values.tolist()
    with np.errstate(divide="ignore", invalid="ignore"):
        size = np.nan_to_num(np.floor(np.log10(np.abs(values))), neginf=0.0, posinf=0.0)
        scale = 10.0 ** (6 - np.clip(size, -280, 280))
        rounded = np.round(values * scale) / scale
    return [value if np.isfinite(value) else None for value in rounded.tolist()]
