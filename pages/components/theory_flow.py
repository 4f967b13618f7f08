"""Theory: the charts of what should happen. The maths is in corl_core/theory, the drawing in corl_core/figures/theory.py."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from corl_core.figures import theory as drawing
from corl_core.figures.palette import COLORS
from corl_core.theory import meanfield, phase, replicator
from corl_core.theory.simulate import simulate
from pages.components import curves, link, theory
from pages.components.boundary import guard
from pages.components.chart import chart
from pages.components.text import plain
from pages.components.theory import Setting

HEIGHT = 430
NUM_POINTS = 121
MAP_HORIZON = 100.0  # steps at η = 1; long rings that still turn then are shown as undecided
MAP_SIDE = np.linspace(0.04, 0.96, 12)
TITLES = theory.SUPERVISIONS | {"ring": "Co-RL"}
SHAPES = ((3.0, 2.0), (2.0, 2.0), (1.0, 1.0), (2.0, 3.0))


@dataclass(frozen=True)
class Case:
    """Two agents' probabilities of three answers, the truth first."""

    label: str
    a: tuple[float, float, float]
    b: tuple[float, float, float]


CASES = {
    "differ": Case("Both favour a wrong answer, not the same", (0.40, 0.50, 0.10), (0.40, 0.10, 0.50)),
    "same": Case("Both favour the same wrong answer", (0.40, 0.50, 0.10), (0.40, 0.50, 0.10)),
    "one": Case("One of them favours a wrong answer", (0.35, 0.45, 0.20), (0.50, 0.20, 0.30)),
    "strong": Case("A peer that is mostly wrong, elsewhere", (0.40, 0.45, 0.15), (0.36, 0.10, 0.54)),
}


def explore(notices: DeltaGenerator) -> None:
    """The settings and the charts that follow them, drawn anew by themselves when a setting changes."""

    @st.fragment
    def part() -> None:
        with guard():
            theory.examples()
            setting = theory.controls()
            other = theory.choose_other()
            planes(setting, other)
            several_answers(setting)
            with notices:
                link.show()

    part()


def planes(setting: Setting, other: str) -> None:
    """The comparison and Co-RL side by side, and the same paths over time."""
    names = [chr(ord("A") + place) for place in range(setting.agents)]
    steps = times(setting.steps)
    runs = {kind: paths(setting, kind) for kind in (other, "ring")}
    for column, (kind, points) in zip(st.columns(2), runs.items(), strict=True):
        with column, st.container(border=True, height="stretch"):
            st.markdown(f"**{TITLES[kind]}**")
            chart(_plane(setting, kind, points, steps), f"theory.{kind}", _alt(kind, points), HEIGHT, canvas=True)
            ends = dict(zip(names, points[-1].mean(axis=0).tolist(), strict=True))  # over the questions followed
            words = theory.mean_words(ends) if setting.mirror else theory.outcome_words(ends)
            st.markdown(f"{words} Mean accuracy {points[0].mean():.2f} → **{points[-1].mean():.2f}**.")
    lines = {}
    for kind, points in runs.items():
        for place, name in enumerate(names[:2]):
            dash = "solid" if kind == "ring" else "dash"
            lines[f"{name}, {TITLES[kind]}"] = (points[:, 0, place], COLORS[place], dash)
    with st.container(border=True):
        st.markdown("**Accuracy over training**", help="Of the first question. A step is one GRPO update of every agent.")
        chart(drawing.probabilities(steps, lines), "theory.over_time", "Accuracy of A and B over steps", 220, canvas=True)


def times(num_steps: int) -> np.ndarray:
    """The steps at which paths are drawn: (T,)."""
    return np.linspace(0, num_steps, NUM_POINTS)


@lru_cache(maxsize=64)
def paths(setting: Setting, kind: str) -> np.ndarray:
    """The mean paths of all questions that are followed: (T, S, N)."""
    return meanfield.trajectory(np.array(setting.starts), kind, setting.size, times(setting.steps), setting.eta, tolerance=1e-6)


def _plane(setting: Setting, kind: str, points: np.ndarray, steps: np.ndarray) -> dict:
    ring = kind == "ring" and setting.agents > 2
    rest = (setting.others,) * (setting.agents - 2) if ring else ()
    own = "self" if kind == "ema" else kind
    traces = drawing.outcome_map(MAP_SIDE, _ends(setting.size, rest)) if ring else drawing.basins(own)
    traces += [drawing.field(kind, setting.size, rest)]
    if setting.noisy:
        sampled = [drawing.walk(walked, "sampled") for walked in walks(setting, kind)]
        traces += [sampled[0], *(trace | {"showlegend": False} for trace in sampled[1:])]
    for place in range(points.shape[1]):
        name = ("question 1", "question 2, mirrored")[place] if setting.mirror else "mean"
        legend = setting.mirror or setting.noisy
        traces += drawing.path(points[:, place, :2], steps, name, ("solid", "dot")[place], legend=legend)
    return drawing.plane(traces, "Accuracy of A", "Accuracy of B")


@lru_cache(maxsize=64)
def walks(setting: Setting, kind: str) -> list[np.ndarray]:
    """A sampled path for each question that is followed: (steps + 1, 2). Two logits part at twice the rate of one log-odds."""
    p = np.array(setting.starts)
    found = simulate(np.stack([p, 1 - p], axis=-1), kind, setting.size, setting.steps, setting.eta / 2, setting.seed)
    return list(found.accuracy.transpose(1, 0, 2)[..., :2])


@lru_cache(maxsize=64)
def _ends(size: int, rest: tuple[float, ...]) -> np.ndarray:
    """How a ring ends from each start of A and B (MAP_SIDE squared), the others at `rest`."""
    a, b = (part.ravel() for part in np.meshgrid(MAP_SIDE, MAP_SIDE))
    starts = np.column_stack([a, b, np.tile(rest, (a.size, 1))])
    return phase.consensus(starts, size, MAP_HORIZON, tolerance=1e-3).reshape(MAP_SIDE.size, -1)


def _alt(kind: str, points: np.ndarray) -> str:
    both = zip(points[0, :, :2], points[-1, :, :2], strict=True)
    said = [f"from ({a:.2f}, {b:.2f}) to ({c:.2f}, {d:.2f})" for (a, b), (c, d) in both]
    return f"The plane of A's and B's accuracies under {TITLES[kind]}: paths {'; '.join(said)}"


def several_answers(setting: Setting) -> None:
    """The cases in which the wrong answers are told apart."""
    st.subheader("Several answers", help="Three answers to one question, the truth first. Own votes lock on the favourite.")
    labels = {name: case.label for name, case in CASES.items()}
    case = CASES[curves.choose("Case", labels, "differ", "case", "What A and B answer at the start.")]
    st.caption(plain(f"Truth, wrong 1, wrong 2: A answers {_shares(case.a)}, B answers {_shares(case.b)}. K = {setting.size}."))
    for column, kind in zip(st.columns(2), ("self", "ring"), strict=True):
        path = answer_paths(case, kind, setting.size, setting.steps, setting.eta)
        lines = {
            f"{name}: {answer}": (path[:, agent, place], COLORS[agent], ("solid", "dash", "dot")[place])
            for agent, name in enumerate("AB")
            for place, answer in enumerate(("truth", "wrong 1", "wrong 2"))
        }
        with column, st.container(border=True):
            st.markdown(f"**{TITLES[kind]}**")
            told = f"Answers of A and B under {TITLES[kind]}"
            chart(drawing.probabilities(times(setting.steps), lines), f"theory.answers.{kind}", told, 240, canvas=True)
            st.markdown(theory.outcome_words({"A": float(path[-1, 0, 0]), "B": float(path[-1, 1, 0])}))


@lru_cache(maxsize=64)
def answer_paths(case: Case, kind: str, size: int, steps: int, eta: float) -> np.ndarray:
    """The paths of A's and B's answers: (T, 2, 3). Most settings leave them as they are."""
    return replicator.evolve(np.array([case.a, case.b]), kind, size, times(steps), eta, tolerance=1e-4)


def _shares(p: tuple[float, ...]) -> str:
    return ", ".join(f"{value:.0%}" for value in p)


def where_it_hurts() -> None:
    """Populations of questions: the pair amplifies its mean."""
    st.subheader("Over many questions", help="A's and B's accuracies on a question are drawn independently from Beta(a, b).")
    rows = []
    for a, b in SHAPES:
        own, pair = phase.population(a, b)
        verdict = "Co-RL helps" if pair > own + 1e-3 else "Co-RL hurts" if pair < own - 1e-3 else "no difference"
        rows.append([f"Beta({a:g}, {b:g})", a / (a + b), own, pair, verdict])
    names = ["Accuracies at the start", "Mean at the start", "After own votes", "After Co-RL", "So"]
    shown = {name: st.column_config.NumberColumn(format="%.3f") for name in names[1:4]}
    st.dataframe(pd.DataFrame(rows, columns=names), hide_index=True, column_config=shown, alt="Final accuracy over populations")
    st.markdown(
        "A pair amplifies its mean. **Co-RL hurts** where two agents are right less than half of the time on average, as with "
        "Beta(2, 3); where one agent is confidently wrong (.9 with .05: own votes would have kept A right); and where a weak "
        "agent stands on a ring with two strong ones (.886, .021, .898: the mean is .60, and all end wrong)."
    )
