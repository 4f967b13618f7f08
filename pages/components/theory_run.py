"""Theory against run: a run's questions as paths over the field, and what was predicted beside what was measured."""

import numpy as np
import pandas as pd
import streamlit as st

from corl_core.figures import theory as drawing
from corl_core.figures import theory_run as paths
from corl_core.rollouts.ballots import Ballots, run_stamps
from corl_core.theory import against_run
from corl_core.theory.against_run import Followed, Stream
from pages.components import data, link, votes
from pages.components.chart import chart
from pages.components.data import Known
from pages.components.text import plain
from pages.components.theory import NO_GENERALISATION

NUM_PATHS = (25, 50, 100, 250, 1000)
HEIGHT = 520
DOC = {
    "rule": "Share of questions whose first visit is on the side that ends right, right and wrong answers only: p > ½ for own "
    "votes, p_A + p_B > 1 for a pair, the flow for longer rings. One on the edge counts one half.",
    "chance": "Expected accuracy once all is settled, with the wrong answers told apart and averaged over what the few answers "
    "of a first visit leave open.",
    "end": "Mean accuracy of sampled answers at the last visit of the same questions.",
    "start": "Mean accuracy of sampled answers at the first visit.",
    "kept": "Share of questions and agents that are on the predicted side of one half at the last visit.",
}
LABELS = {"start": "At the start", "rule": "On the right side", "chance": "Predicted in the end", "end": "Measured in the end"}
FEW = 30


def show() -> None:
    """The view: which run, the numbers, the plane, the calibration."""
    runs, _ = data.runs()
    if not runs:
        st.info("There is no run yet. The theory can be held against one as soon as it has trained.", icon=":material/info:")
        st.page_link("pages/new_run.py", label="Set up a run", icon=":material/add:")
        return
    known = votes.choose_run(runs)
    link.show()
    supervision = against_run.supervision_of([signal.labels_from for signal in known.config.signals.values()])
    if supervision is None:
        st.info(
            "The theory speaks of labels from own votes, from a peer's votes, and from true answers. This run's rewards come "
            "from somewhere else, so there is nothing to hold against it.", icon=":material/info:",
        )  # fmt: skip
        return
    ballots = votes.opened(known)
    if not known.status.final:
        words = "The run goes on and saves its rollouts in blocks of 25 steps."
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(words)
            st.button("Look again", icon=":material/refresh:", type="tertiary")
    if not (ballots.known & ballots.present.all(axis=0)).any():
        st.info(_nothing(known, ballots), icon=":material/info:")
        return
    followed = _followed(known, supervision, ballots)
    if len(followed.first) < FEW:
        _whole(against_run.stream(ballots, supervision, known.config.peers()), followed)
    if len(followed.first):
        _numbers(followed)
        _pictures(followed)
    st.caption(NO_GENERALISATION)


def _nothing(known: Known, ballots: Ballots) -> str:
    if ballots.num_draws and not ballots.known.any():
        return "This run's questions have no true answers, so accuracies are unknown."
    waiting = " It shows here once every agent has saved some." if not known.status.final else ""
    return "No rollouts of all agents are saved." + waiting


def _followed(known: Known, supervision: str, ballots: Ballots) -> Followed:
    stamps = run_stamps(known.run.path, ballots.agents)
    return _cached(str(known.run.path), stamps, supervision, tuple(known.config.peers().items()), ballots)


@st.cache_resource(max_entries=8, show_spinner="Following the run's questions …")
def _cached(path: str, stamps: object, supervision: str, peers: tuple[tuple[str, str], ...], _ballots: Ballots) -> Followed:
    """`path` and `stamps` name the entry: a run whose shards have grown is followed anew."""
    found = against_run.follow(_ballots, supervision, dict(peers))
    _ = found.rule, found.chance  # worked out once, here
    return found


def _whole(found: Stream, followed: Followed) -> None:
    st.subheader("The run as a whole")
    st.caption(
        f"Only {len(followed.first):,} questions came up in more than one step. So other questions are compared: what the theory "
        f"makes of those up to step {found.until}, beside the accuracy on those from step {found.since}. To follow single "
        "questions, train on fewer of them for longer (data.num_questions)."
    )
    columns = {
        "Agent": list(followed.agents), "Early accuracy": found.start, "Right side": found.right_side,
        "Predicted": found.predicted, "Late accuracy": found.end,
    }  # fmt: skip
    _table(pd.DataFrame(columns))


def _numbers(found: Followed) -> None:
    st.subheader("Questions that came up again")
    st.caption(
        f"{len(found.first):,} questions were asked in two steps or more; each is followed from its first visit to its last. "
        f"Accuracies are estimated from {found.num_generations} answers a visit."
    )
    measures = {"start": found.start, "rule": found.rule, "chance": found.chance, "end": found.end}
    with st.container(horizontal=True):
        for name, values in measures.items():
            with st.container(width=205):
                st.metric(LABELS[name], f"{values.mean():.3f}", border=True, help=DOC[name])
        with st.container(width=205):
            st.metric("As predicted", f"{found.kept:.1%}", border=True, help=DOC["kept"])
    if len(found.agents) > 1:
        columns = {LABELS[name]: values.mean(axis=0) for name, values in measures.items()}
        _table(pd.DataFrame({"Agent": list(found.agents)} | columns))


def _table(frame: pd.DataFrame) -> None:
    shown = {name: st.column_config.NumberColumn(format="%.3f") for name in frame.columns[1:]}
    st.dataframe(frame, hide_index=True, column_config=shown, alt="Start, prediction and measurement of each agent")


def _pictures(found: Followed) -> None:
    pairs = _pairs(found)
    a, b = pairs[0]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if len(pairs) > 1:
            words = [f"{found.agents[i]} and {found.agents[j]}" for i, j in pairs]
            chosen = st.selectbox("Agents in the plane", words, key="pair", bind="query-params", width=300)
            a, b = pairs[words.index(chosen)] if chosen in words else pairs[0]
        num = st.select_slider("Questions drawn", NUM_PATHS, NUM_PATHS[2], key="paths", bind="query-params", width=300)
    left, right = st.columns([3, 2])
    with left, st.container(border=True):
        _plane(found, a, b, num)
    with right, st.container(border=True):
        st.markdown("**Was the prediction kept?**", help="Every agent's prediction on every followed question, in ten bins.")
        rows = found.calibration(range(len(found.agents)))
        chart(paths.calibration(rows), "theory.calibration", _calibration_words(rows), 330)
        st.caption(
            "On the dashed line, questions end right as often as predicted. Flatter than the line: training had not finished. "
            "Above it throughout: what was learned on one question helped on others, which the theory leaves out."
        )


def _pairs(found: Followed) -> list[tuple[int, int]]:
    """Whom to show together: an agent and the one it rewards; any two where nobody rewards another."""
    made = [(a, b) for cycle in found.cycles if len(cycle) > 1 for a, b in zip(cycle, (*cycle[1:], cycle[0]), strict=True)]
    if not made:
        made = [(i, j) for i in range(len(found.agents)) for j in range(i + 1, len(found.agents))] or [(0, 0)]
    return [pair for place, pair in enumerate(made) if pair[::-1] not in made[:place]]


def _plane(found: Followed, a: int, b: int, num: int) -> None:
    chosen = np.linspace(0, len(found.first) - 1, min(num, len(found.first))).round().astype(int)
    names = found.agents[a], found.agents[b]
    cycle = next(cycle for cycle in found.cycles if a in cycle)
    longer = found.supervision == "ring" and len(cycle) > 2
    others = [float(found.start[:, place].mean()) for place in _after(cycle, b)] if longer else []
    traces = [] if longer else drawing.basins(found.supervision, names)
    traces += [drawing.field(found.supervision, found.num_generations, others)]
    points = found.accuracy[:, [a, b]]
    texts = [found.texts[i] for i in chosen]
    traces += paths.question_paths(found.first[chosen], found.last[chosen], points, found.step, texts)
    st.markdown("**Each question's path**", help="Small rings are first visits, filled marks last ones. Arrows: the theory.")
    ends = paths.outcome(found.end[:, [a, b]])
    said = ", ".join(f"{(ends == place).sum()} {words}" for place, words in enumerate(paths.OUTCOMES))
    plot = drawing.plane(traces, f"Accuracy of {names[0]}", f"Accuracy of {names[1]}")
    chart(plot, "theory.paths", f"Paths of questions: {said}", HEIGHT)
    notes = [f"{len(chosen):,} of {len(found.first):,} questions" if len(chosen) < len(found.first) else "All questions"]
    notes.append("moved a little apart, since accuracies are counts")
    if longer:
        notes.append("arrows with the other agents held at their mean start; a longer ring has no separatrix in this plane")
    st.caption(plain("; ".join(notes) + "."))


def _after(cycle: tuple[int, ...], b: int) -> list[int]:
    """The agents that stand after b on the ring, back to the one before a."""
    place = cycle.index(b)
    return [cycle[(place + step) % len(cycle)] for step in range(1, len(cycle) - 1)]


def _calibration_words(rows: list[dict[str, float]]) -> str:
    said = [f"predicted {row['chance']:.2f}, measured {row['right']:.2f}" for row in rows]
    return "Calibration: " + "; ".join(said)
