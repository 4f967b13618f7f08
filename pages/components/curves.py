"""The curves of the Run page: what is asked of the store, and the cards in their grid."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st

from corl_core.figures.bands import alarm_bands
from corl_core.figures.curves import accuracy_curves, agent_curves, marked, pair_curves
from corl_core.figures.lines import agent_line
from corl_core.figures.spec import Figure
from corl_core.metrics import describe
from pages.components import data, link, zoom
from pages.components.boundary import unread
from pages.components.chart import chart_card
from pages.components.data import Known
from pages.components.text import plain

SMOOTHING = {"none": 0.0, "some": 0.8, "strong": 0.95}
MEASURES = {
    "kappa": "Kappa",
    "jaccard": "Jaccard",
    "same_wrong": "Same wrong",
    "both_wrong": "Both wrong",
}
UNREADABLE = "Not known: the metrics can't be read; the note above says why."
LONG_NAME = 20  # letters
WAITING = "No values yet. They show here as soon as the first step is done."
NO_TRUTH = "No values: this needs ground truth, which the questions may not have."
ONE_AGENT = "This compares two agents, and the cohort has one."


def choose_smoothing() -> float:
    """The weight of the past in the curves' average, chosen by the person and kept in the URL."""
    words = {name: name.capitalize() for name in SMOOTHING}
    about = "Debiased exponential average of the training curves; the raw line stays behind it."
    return SMOOTHING[choose("Smoothing", words, "some", "smooth", about)]


def choose_measure() -> str:
    """How the overlap of errors is measured, chosen by the person and kept in the URL."""
    about = "How the overlap of two agents' wrong votes is measured; each chart says what it is."
    return choose("Error overlap as", MEASURES, "kappa", "overlap", about)


def choose(
    label: str,
    words: Mapping[str, str],
    default: str,
    key: str,
    about: str,
    on_change: Callable[[], None] | None = None,
    wrap: bool = False,
) -> str:
    """One of the names in `words`, chosen by the person and kept in the URL as `key`; many names `wrap` on a narrow screen."""
    link.check(key, words.values(), label)
    control = partial(st.pills, wrap=True) if wrap else st.segmented_control
    chosen = control(
        label,
        list(words),
        default=default,
        required=True,
        key=key,
        bind="query-params",
        format_func=words.get,
        help=about,
        on_change=on_change,
    )
    return chosen if chosen in words else default  # a link may say anything


def show(known: Known, agents: list[str], smoothing: float, measure: str) -> None:
    """Accuracy over the full width, then the four headline metrics, two cards a row."""
    overlap = f"error_overlap/{measure}"
    keys = ["agreement", "agreement/*", "pseudo_label_accuracy", overlap, f"{overlap}/*"]
    keys += ["reward_std", "eval/accuracy", "eval/majority_accuracy"]
    metrics = data.history([known.id], keys, known.end)
    unread(metrics.notice)
    frame, label = metrics.frame, "pseudo_label_accuracy"
    _standing(frame, agents)
    _card(known, accuracy_curves(frame, agents), "accuracy", "eval/accuracy", bool(metrics.notice))
    cards = [
        (agent_curves(frame, label, agents, smoothing), "pseudo_label", label),
        (pair_curves(frame, "agreement", smoothing), "agreement", "agreement"),
        (pair_curves(frame, overlap, smoothing), "overlap", overlap),
        (agent_curves(frame, "reward_std", agents, smoothing), "reward_std", "reward_std"),
    ]
    for start in range(0, len(cards), 2):
        for column, card in zip(st.columns(2), cards[start : start + 2], strict=False):
            with column:
                _card(known, *card, bool(metrics.notice))


def _standing(history: pd.DataFrame, agents: list[str]) -> None:
    """Each agent's last held-out accuracy, and how far it has come."""
    about = describe("eval/accuracy").doc
    with st.container(horizontal=True):
        for agent in agents:
            line = agent_line(history, "eval/accuracy", agent)["value"].dropna()
            if len(line):
                gain = f"{line.iloc[-1] - line.iloc[0]:+.3f}" if len(line) > 1 else None
                words = "since the start" if gain else None
                with st.container(width=300 if len(agent) > LONG_NAME else 220, border=True):
                    st.caption(plain(agent))
                    st.metric("Accuracy", f"{line.iloc[-1]:.3f}", gain, help=about, delta_description=words)


def _card(known: Known, figure: Figure, key: str, metric: str, unreadable: bool) -> None:
    found = describe(metric)
    waiting = WAITING
    if known.status.final:
        waiting = NO_TRUTH if found.needs_truth else "No values were logged."
    if found.scope == "cohort" and len(known.config.agents) < 2:
        waiting = ONE_AGENT
    waiting = UNREADABLE if unreadable else waiting
    figure = marked(figure, known.status.attempt_step)
    last = max((int(line.x[-1]) for line in figure.series), default=0)
    figure = replace(figure, bands=alarm_bands(known.status.raised, max(last, known.status.step)))
    name = f"curve.{key}"
    box, follow = zoom.boxes().get(key), partial(zoom.follow, key, name)
    chart_card(figure, name, found.doc, waiting, known.id, box, follow, growing=not known.status.final)
