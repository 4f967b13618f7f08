"""NaN or infinity in what an agent measured: from here on its weights, or its curves, mean nothing."""

from math import isfinite

from corl_core.alarms.seen import Found, Past


def non_finite(past: Past) -> Found | None:
    """Any metric of the newest line is NaN or infinite: loss, gradient norm, log-probability, reward. At once, for no window can
    bring weights back that took a step along NaN."""
    line = past.newest
    bad = {name: value for name, value in (line or {}).get("metrics", {}).items() if not isfinite(value)}
    if not bad:
        return None
    named = ", ".join(f"{name} is {value}" for name, value in list(bad.items())[:3])
    more = f", and {len(bad) - 3} more metrics" if len(bad) > 3 else ""
    return Found({name: str(value) for name, value in list(bad.items())[:3]}, f"Of {past.agent}, {named}{more}.")
