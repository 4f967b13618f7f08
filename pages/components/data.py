"""Cached queries: the runs on disk, their configs, and their metrics.

A run's state is read anew each time, for it must be honest; its config is parsed once.
Tables of metrics are kept for two seconds, so that several charts and several readers share a query; they are shared, so
nobody changes them. The readers keep what they read and ask the store for what is new (corl_core/tracking/reader.py).
"""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import pandas as pd
import streamlit as st

from corl_core.config import ConfigError, RunConfig
from corl_core.figures.palette import group_slots as group_slots_of
from corl_core.figures.palette import run_slots
from corl_core.runs import queue_dispatch
from corl_core.runs.folder import Run, Status, all_runs, default_runs_dir
from corl_core.runs.labels import labels
from corl_core.runs.settle import settle
from corl_core.tracking import reader
from corl_core.tracking.closing import close_later
from corl_core.tracking.store import tracking_uri
from pages.components.access import may_act
from pages.components.text import short_moment

FRESH_S = 2


@dataclass(frozen=True)
class Known:
    """A run on disk whose config can be read."""

    run: Run
    config: RunConfig
    status: Status

    @property
    def id(self) -> str:
        """The run's id."""
        return self.run.id

    @property
    def name(self) -> str:
        """What a person calls it: the name they gave it, else its configuration's."""
        return labels(self.run).name or self.config.name

    @property
    def end(self) -> tuple[float, bool] | None:
        """When the run ended, and whether MLflow is still to be told its last values; None while it goes on."""
        return (self.status.ended or 0.0, self.status.untold) if self.status.final else None

    @property
    def label(self) -> str:
        """Name, seed and time of start: tells apart two runs of one name."""
        return f"{self.name}, seed {self.config.seed}, {short_moment(self.status.created)}"


def runs() -> tuple[list[Known], list[str]]:
    """The readable runs, newest first, and a sentence for each that is not."""
    known, broken = [], []
    for run in all_runs(default_runs_dir()):
        try:
            known.append(Known(run, config_of(run), settle(run)))
        except (ConfigError, OSError) as error:
            broken.append(f"{run.id} can't be read: {error}")
    if may_act():  # a look by somebody who may only read starts nothing, not even what another person queued
        queue_dispatch.wake_for(default_runs_dir(), [one.status.state for one in known])
    close_later((one.run, one.status) for one in known)
    return known, broken


def newest() -> str | None:
    """The id of the newest run, None without any."""
    return next((run.id for run in all_runs(default_runs_dir())), None)


def config_of(run: Run) -> RunConfig:
    """A run's config, parsed once for each version of its file."""
    path = run.path / "run.yaml"
    return _config(str(path), path.stat().st_mtime_ns)


@lru_cache(maxsize=2000)
def _config(path: str, stamp_ns: int) -> RunConfig:
    return Run(Path(path).parent).config


def slots(run_ids: list[str]) -> dict[str, int]:
    """Each run's colour slot, the same on every page and for ever."""
    return run_slots(default_runs_dir(), run_ids)


def group_slots(oldest: dict[str, int]) -> dict[str, int]:
    """Each group's colour slot: that of its oldest run when it was first seen."""
    return group_slots_of(default_runs_dir(), oldest)


@dataclass(frozen=True)
class Metrics:
    """A table of metrics, or why it is empty."""

    frame: pd.DataFrame
    notice: str = ""


def history(run_ids: list[str], keys: list[str] | None = None, end: tuple[float, bool] | None = None) -> Metrics:
    """reader.history of the runs, at most two seconds old, and none older than `end`: what is known of how a run ended."""
    frame, notice = _read("history", tracking_uri(default_runs_dir()), tuple(run_ids), _frozen(keys), end)
    return Metrics(frame, notice)


def latest(run_ids: list[str], keys: list[str] | None = None) -> Metrics:
    """reader.latest of the runs, at most two seconds old."""
    frame, notice = _read("latest", tracking_uri(default_runs_dir()), tuple(run_ids), _frozen(keys))
    return Metrics(frame, notice)


def tags(run_ids: list[str]) -> dict[str, dict[str, str]]:
    """The tags of each run in MLflow; {} where the store can't be read."""
    return _tags(tracking_uri(default_runs_dir()), tuple(run_ids))


@st.cache_resource(ttl=FRESH_S, max_entries=20, show_spinner=False)
def _tags(uri: str, run_ids: tuple[str, ...]) -> dict[str, dict[str, str]]:
    try:
        return reader.tags(uri, list(run_ids))
    except reader.TrackingUnavailable:
        return {}  # the curves say why


def _frozen(keys: list[str] | None) -> tuple[str, ...] | None:
    return None if keys is None else tuple(keys)


@st.cache_resource(ttl=FRESH_S, max_entries=20, show_spinner=False)
def _read(
    what: str, uri: str, run_ids: tuple[str, ...], keys: tuple[str, ...] | None, end: tuple[float, bool] | None = None
) -> tuple[pd.DataFrame, str]:  # fmt: skip
    query = reader.history if what == "history" else reader.latest
    wanted = None if keys is None else list(keys)
    try:
        return query(uri, list(run_ids), wanted), ""
    except reader.TrackingUnavailable as error:
        return query(uri, [], wanted), str(error)
