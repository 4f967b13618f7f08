"""Times, durations, states and names, as text for people."""

import re
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import streamlit as st

from corl_core.config import RunConfig
from corl_core.runs.folder import Status

STATE_COLORS = {
    "queued": "gray",
    "starting": "blue",
    "running": "blue",
    "stalled": "orange",
    "stopping": "orange",
    "finished": "green",
    "stopped": "gray",
    "failed": "red",
    "unreadable": "red",
}
STATE_ICONS = {
    "queued": ":material/schedule:",
    "starting": ":material/hourglass_top:",
    "running": ":material/play_arrow:",
    "stalled": ":material/pause_circle:",
    "stopping": ":material/hourglass_bottom:",
    "finished": ":material/check:",
    "stopped": ":material/stop:",
    "failed": ":material/error:",
    "unreadable": ":material/error:",
}
_MARKDOWN = re.compile(r"([\\`*_{}\[\]()#+\-.!|~$:<>&^=])")


def plain(text: str) -> str:
    """Text that Markdown shows as it is."""
    return _MARKDOWN.sub(r"\\\1", text)


def zone() -> tzinfo:
    """The reader's time zone where the browser tells it, else this machine's."""
    name = st.context.timezone
    return ZoneInfo(name) if name else datetime.now().astimezone().tzinfo or UTC


def moment(unix_s: float) -> str:
    """A time with its zone, as in 2026-11-30 09:14 CET."""
    return datetime.fromtimestamp(unix_s, zone()).strftime("%Y-%m-%d %H:%M %Z")


def first_start(status: Status) -> float | None:
    """When the run's first step began, whatever was resumed since; None when it is not known or there was none."""
    return status.first_started or (None if status.attempt_step else status.started)


def since(status: Status) -> str:
    """When a run started, or when it was created while it hasn't; when it was last resumed; and where its agents are."""
    first = first_start(status)
    words = f"Created {moment(status.created)}" if first is None else f"Started {moment(first)}"
    if status.attempt > 1 and status.started not in (None, first):
        words += f". Resumed at step {status.attempt_step:,}, {moment(status.started)}"
    if status.placement:
        words += f". {plain(status.placement)}"
    return words


def short_moment(unix_s: float) -> str:
    """A time to the second without its year, as in Nov 30 09:14:05."""
    return datetime.fromtimestamp(unix_s, zone()).strftime("%b %d %H:%M:%S")


def duration(seconds: float | None) -> str:
    """A duration in its two largest units, as in 45 s, 3 min 20 s or 2 h 05 min."""
    if seconds is None:
        return "unknown"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02d} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02d} min"


def size_words(size: float) -> str:
    """Bytes in their largest unit, as in 340 B, 21 kB or 1.4 GB."""
    for unit in ("B", "kB", "MB"):
        if size < 999.5:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:,.1f} GB"


def short_model(model: str) -> str:
    """A model without where it comes from: llama of tiny:llama, Qwen3-1.7B of Qwen/Qwen3-1.7B."""
    return model.removeprefix("tiny:").rstrip("/").rsplit("/", 1)[-1]


def cohort(config: RunConfig) -> str:
    """The families of a cohort in order: "llama × qwen2"."""
    return " × ".join(short_model(agent.model) for agent in config.agents)


def state_badge(state: str) -> None:
    """The state as a coloured badge with its word."""
    st.badge(state.capitalize(), icon=STATE_ICONS.get(state), color=STATE_COLORS.get(state, "gray"))
