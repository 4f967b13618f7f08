"""Cohort picker: a measure of every pair as a heat map, and the questions behind the cell that was clicked."""

from collections.abc import Callable
from functools import partial

import pandas as pd
import streamlit as st

from corl_core.diversity.cells import OUTCOMES, questions
from corl_core.diversity.measures import LABEL_FREE, MEASURES
from corl_core.diversity.pairs import Pair
from corl_core.diversity.report import Report
from corl_core.figures.export import to_csv
from pages.components.boundary import told
from pages.components.text import plain

FIRST_SHOWN = ["kappa", "exactly_one_right", "same_wrong", "agreement"]
LABEL_FREE_WORDS = (
    "No true answer is known, so only what needs none is shown: agreement, the share of questions on which two models give the "
    "same answer. It says consensus, not correctness: models that agree may be wrong together."
)
READING_WORDS = "Darker is higher. Good partners: low kappa, high c, low w."
INTERVAL_WORDS = "Intervals hold 95% of a bootstrap over questions; a share of exactly 0 or 1 has one without width."
LOW, HIGH, INK = (255, 255, 255), (86, 162, 186), "#1C2329"


def matrices(made: Report) -> None:
    """The heat maps of the measures picked, two beside each other."""
    options = [name for name in made.measures if name != "a_wrong_if_b_wrong"]
    start = [name for name in FIRST_SHOWN if name in options]
    picked = start
    if len(options) > 1:
        picked = st.pills(
            "Measures",
            options,
            selection_mode="multi",
            default=start,
            format_func=lambda name: MEASURES[name].label,
            key="measures",
            bind="query-params",
        )
    for place in range(0, len(picked), 2):
        for column, name in zip(st.columns(2), picked[place : place + 2], strict=False):
            with column:
                _matrix(made, name)


def _matrix(made: Report, name: str) -> None:
    measure = MEASURES[name]
    st.markdown(f"**{measure.label}**", help=measure.doc)
    frame = values(made, name)
    cells = frame.stack()
    low, high = (cells.min(), cells.max()) if len(cells) else (0.0, 1.0)
    styled = frame.style.map(lambda value: _colour(value, low, high)).format("{:z.3f}", na_rep="–")
    st.dataframe(
        styled,
        key=_key(name, made),
        height="content",
        on_select=_take_cell(name, made),
        selection_mode="single-cell",
        placeholder="–",
        alt=f"{measure.label} of each pair of models",
    )


def values(made: Report, name: str) -> pd.DataFrame:
    """Models by models: the row is a, the column b. A model beside itself is its first two samples, where there are two."""
    models = list(made.answers.models)
    frame = pd.DataFrame(index=models, columns=models, dtype=float)
    mirrored = "a_wrong_if_b_wrong" if name == "b_wrong_if_a_wrong" else name
    for pair in [*made.pairs, *made.selves]:
        frame.loc[pair.b, pair.a] = pair[mirrored]
        frame.loc[pair.a, pair.b] = pair[name]
    return frame


def _colour(value: float, low: float, high: float) -> str:
    if pd.isna(value):
        return ""
    share = (value - low) / (high - low) if high > low else 0.0
    mixed = [round(a + share * (b - a)) for a, b in zip(LOW, HIGH, strict=True)]
    return f"background-color: #{''.join(f'{part:02x}' for part in mixed)}; color: {INK}"


def _key(name: str, made: Report) -> str:
    return ".".join(["matrix", name, *made.answers.models])


def _take_cell(name: str, made: Report) -> Callable[[], None]:
    """The callback of one heat map: its cell becomes the pair below."""

    @told
    def take() -> None:
        cells = st.session_state[_key(name, made)].selection.cells
        models = made.answers.models
        if cells and cells[0][1] in models:
            st.session_state["pair_a"], st.session_state["pair_b"] = models[cells[0][0]], cells[0][1]

    return take


def pair_choice(made: Report) -> tuple[str, str]:
    """The two models whose questions are shown, also as boxes; in the URL."""
    models = list(made.answers.models)
    with st.container(horizontal=True):
        first = st.selectbox("Model a", models, 0, key="pair_a", bind="query-params", width=280)
        second = st.selectbox("Model b", models, 1, key="pair_b", bind="query-params", width=280)
    return first, second


def pair_details(made: Report, a: str, b: str) -> None:
    """The pair's measures with intervals, and its questions."""
    pair = _find(made, a, b)
    if pair is None:
        st.caption("A model stands beside itself by two of its samples. Here there is one sample, or votes are compared.")
        return
    table, listed = st.columns([2, 3], gap="medium")
    with table:
        st.markdown(f"**{plain(a)} × {plain(b)}**")
        st.dataframe(_measures(made, pair, a), hide_index=True, alt=f"Measures of {a} and {b}", column_config=_WIDE)
        for name, reason in pair.reasons.items():
            if name in made.measures:
                st.caption(plain(f"{MEASURES[name].label} is not defined: {reason}."))
    with listed:
        _questions(made, a, b)


_WIDE = {"Measure": st.column_config.TextColumn("Measure", width=190), "Value": st.column_config.TextColumn("Value", width=60)}


def _find(made: Report, a: str, b: str) -> Pair | None:
    return next((pair for pair in [*made.pairs, *made.selves] if (pair.a, pair.b) in ((a, b), (b, a))), None)


def _measures(made: Report, pair: Pair, a: str) -> pd.DataFrame:
    turned = {"a_wrong_if_b_wrong": "b_wrong_if_a_wrong", "b_wrong_if_a_wrong": "a_wrong_if_b_wrong"} if pair.a != a else {}
    rows = []
    for name in made.measures:
        value, interval = pair[turned.get(name, name)], pair.intervals[turned.get(name, name)]
        text = "not defined" if value is None else f"{value:z.3f}"
        rows.append({"Measure": MEASURES[name].label, "Value": text, "95% interval": _between(interval)})
    return pd.DataFrame(rows)


def _between(interval: tuple[float, float] | None) -> str:
    return f"{interval[0]:z.3f} to {interval[1]:z.3f}" if interval else ""


def _questions(made: Report, a: str, b: str) -> None:
    frame = questions(made.answers, a, b, made.basis)
    counts = frame["outcome"].value_counts()
    present = [outcome for outcome in OUTCOMES if outcome in counts]
    names = {outcome: OUTCOMES[outcome].format(a=a, b=b) for outcome in OUTCOMES}
    picked = st.pills(
        "Questions",
        present,
        default=None,
        format_func=lambda outcome: f"{plain(names[outcome])}: {counts[outcome]:,}",
        key=".".join(["outcome", a, b, *present]),
        help="None picked: all questions.",
        wrap=True,
    )
    shown = frame[frame["outcome"] == picked] if picked else frame
    titles = {"question": "Question", "truth": "Truth", "answer_a": a, "answer_b": b if b != a else f"{b}, again"}
    if made.answers.num_samples > 1:
        titles |= {"samples_a": f"{a}, all samples", "samples_b": f"{b}, all samples"}
    if a == b:
        titles.pop("samples_b", None)
    table = pd.DataFrame({"Who is right": shown["outcome"].map(names)} | {title: shown[name] for name, title in titles.items()})
    widths = {"Question": 220, "Who is right": 190, "Truth": 70}
    columns = {name: st.column_config.TextColumn(name, width=widths.get(name, 110)) for name in table.columns}
    st.dataframe(
        table.dropna(axis="columns", how="all"), column_config=columns, hide_index=True, height=420,
        alt=f"What {a} and {b} answered",
    )  # fmt: skip
    st.caption(f"{len(shown):,} of {len(frame):,} questions that both were asked; an empty answer could not be read.")
    st.download_button(
        "Questions (CSV)", partial(questions_csv, shown, a, b), "questions.csv", "text/csv", icon=":material/download:",
        key="picker.questions", on_click="ignore",
    )  # fmt: skip


def questions_csv(shown: pd.DataFrame, a: str, b: str) -> bytes:
    """The questions of a pair as a file that a spreadsheet can open: no cell is a formula. Models are cells, not columns."""
    named = shown.assign(model_a=a, model_b=b)
    return to_csv(named[["model_a", "model_b", *shown.columns]].dropna(axis="columns", how="all"))


assert set(FIRST_SHOWN) <= set(MEASURES) and set(LABEL_FREE) <= set(MEASURES)
