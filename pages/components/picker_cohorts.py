"""Cohort picker: the paper's pairs, the pseudo-labels on every edge, and the ranked cohorts."""

from typing import Literal

import pandas as pd
import streamlit as st

from corl_core.config import RunConfig, load_config
from corl_core.data.sources import ARITHMETIC
from corl_core.diversity.cohorts import Cohort, why_not
from corl_core.diversity.reference import PAPER_PAIRS, SOURCE
from corl_core.diversity.report import Report
from corl_core.tiny_names import is_tiny
from pages.components import draft, frame
from pages.components.boundary import told
from pages.components.picker import Found, predicted
from pages.components.text import plain

SHARE = st.column_config.NumberColumn(format="%.3f")
AUTOMATIC, MANY = 6, 12  # models; predicting the rings, or all pairs, of more takes a while, so it is asked for
SHOWN = {"kappa": "κ", "exactly_one_right": "c", "same_wrong": "w", "union": "u"}
SHOWN_DOC = "κ: Cohen's kappa of correctness; c: exactly one right; w: both wrong with the same answer; u: at least one right."
MOST_WARNINGS = 6


def reference() -> None:
    """The paper's own table, by itself."""
    with st.expander("The paper's pairs, for reference", icon=":material/menu_book:"):
        _paper()


def beside_reference(made: Report) -> None:
    """The reader's pairs and the paper's, side by side."""
    if made.label_free:
        st.caption("The paper's measures need true answers, so there is nothing to set beside them.")
        _paper()
        return
    own, paper = st.columns(2, gap="medium")
    with own:
        st.markdown("**Your pairs**")
        rows = [{"Pair": f"{pair.a} × {pair.b}"} | {label: pair[name] for name, label in SHOWN.items()} for pair in made.pairs]
        rows += [{"Pair": f"{pair.a}, seeds only"} | {label: pair[name] for name, label in SHOWN.items()} for pair in made.selves]
        _table(pd.DataFrame(rows).sort_values("κ", na_position="last"), "Your pairs")
        st.caption(SHOWN_DOC)
    with paper:
        _paper()


def _paper() -> None:
    st.markdown("**The paper's pairs**")
    rows = [{"Pair": pair.pair} | {label: getattr(pair, name) for name, label in SHOWN.items()} for pair in PAPER_PAIRS]
    _table(pd.DataFrame(rows).sort_values("κ"), "The paper's pairs", "content")
    st.caption(plain(SOURCE) + ". Other questions than yours: compare the order, not the digits.")


def edge_table(made: Report) -> None:
    """Every directed edge."""
    rows = [
        {
            "Peer → agent": f"{edge.peer} → {edge.agent}",
            "Label accuracy": edge.pseudo_label_accuracy,
            "95% interval": f"{edge.interval[0]:.3f} to {edge.interval[1]:.3f}" if edge.interval else "",
            "Agent's own vote": edge.own_vote_accuracy,
            "Gain": edge.gain,
            "Rights": edge.corrects,
            "Misleads": edge.misleads,
        }
        for edge in made.edges
    ]
    _table(pd.DataFrame(rows).sort_values("Gain", ascending=False, na_position="last"), "Pseudo-labels on every edge", 395)
    k = made.answers.num_samples
    votes = "one sample, so its vote is that sample" if k == 1 else f"the majority of its {k} samples"
    st.caption(
        f"The label is the peer's vote: {votes}. Gain: above the accuracy of the agent's own votes. Rights: share of the agent's "
        "wrong votes on which the label is right. Misleads: share of its right votes on which the label is wrong."
    )


def ranks(found: Found) -> None:
    """Pairs and rings by predicted accuracy, each against its models alone, with warnings."""
    if why := why_not(found.answers):
        st.info(plain(why[:1].upper() + why[1:] + "."), icon=":material/info:")
        return
    num = len(found.answers.models)
    if num > MANY and not st.toggle(f"Predict all {num * (num - 1) // 2:,} pairs", key="predict", bind="query-params"):
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        size = st.number_input("Group size K in training", 2, 64, 8, key="group_size", bind="query-params", width=190)
        rings = num > 2 and st.toggle("Rings of three", num <= AUTOMATIC, key="rings", bind="query-params")
    made = predicted(found, int(size), rings)
    cohorts = sorted([*made.pairs, *made.rings], key=lambda cohort: -cohort.mean_final)
    table = pd.DataFrame([_row(cohort) for cohort in cohorts])
    _table(table, "Cohorts by predicted accuracy", 395)
    st.caption("Each model: today → trained on its own votes | trained in this cohort. " + plain("; ".join(made.notes)) + ".")
    _choice(found, cohorts)


def _row(cohort: Cohort) -> dict:
    agents = ", ".join(
        f"{model} {start:.2f} → {alone:.2f} | {final:.2f}"
        for model, start, alone, final in zip(cohort.models, cohort.start, cohort.alone, cohort.final, strict=True)
    )
    return {
        "": "⚠" if cohort.warnings else "",
        "Cohort": title(cohort),
        "Predicted": cohort.mean_final,
        "95% interval": f"{cohort.interval[0]:.3f} to {cohort.interval[1]:.3f}" if cohort.interval else "",
        "Above alone": cohort.gain,
        "Each model: today → alone | here": agents,
    }


def title(cohort: Cohort) -> str:
    """'a × b', or 'a → b → c' for a ring, whose last one rewards the first."""
    return (" × " if len(cohort.models) == 2 else " → ").join(cohort.models)


def _choice(found: Found, cohorts: list[Cohort]) -> None:
    """One cohort with its warnings, and the way to train it."""
    names = {title(cohort): cohort for cohort in cohorts}
    picked = st.selectbox("Look at a cohort", list(names), key="cohort", bind="query-params", width=520)
    cohort = names[picked]
    for warning in cohort.warnings[:MOST_WARNINGS]:
        st.warning(plain(warning[:1].upper() + warning[1:] + "."), icon=":material/warning:")
    if not cohort.warnings:
        st.caption("No warning: no model is wrong in most of its answers, or predicted to lose.")
    if found.job is None:
        st.caption("Candidates that were sampled here can be set up with a click.")
        return
    config = training(found.job.request, cohort)
    st.button("Set up this cohort", icon=":material/add:", type="primary", key="set_up", on_click=_set_up, args=(config,))


def training(request: RunConfig, cohort: Cohort) -> RunConfig:
    """A Co-RL run of the cohort on the sampling's questions; tiny models on arithmetic keep the demo's settings."""
    agents = [request.agent(model) for model in cohort.models]
    demo = request.data.train == ARITHMETIC and all(is_tiny(agent.model) for agent in agents)
    values = load_config("demo-pair").model_dump() if demo else {"data": request.data.model_dump()}
    own = {"name": " × ".join(cohort.models)[:80], "preset": None, "method": "corl", "seed": request.seed}
    return RunConfig.model_validate(values | own | {"agents": [agent.model_dump() for agent in agents]})


@told
def _set_up(config: RunConfig) -> None:
    draft.load(config)
    frame.go("pages/new_run.py")


def _table(rows: pd.DataFrame, alt: str, height: int | Literal["auto", "content"] = "auto") -> None:
    numbers = {name: SHARE for name in rows.columns if pd.api.types.is_numeric_dtype(rows[name])}
    if isinstance(height, int) and len(rows) < 10:
        height = "content"
    st.dataframe(rows, column_config=numbers | _WIDTHS, hide_index=True, height=height, alt=alt)


_WIDTHS = {
    "": st.column_config.TextColumn("", width=30),
    "Pair": st.column_config.TextColumn("Pair", width=210),
    "Cohort": st.column_config.TextColumn("Cohort", width=200),
    "Peer → agent": st.column_config.TextColumn("Peer → agent", width=240),
    "Each model: today → alone | here": st.column_config.TextColumn("Each model: today → alone | here", width="large"),
}
