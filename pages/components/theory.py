"""Theory: what a person sets, the examples that set it in one click, and what it all means. The settings live in the URL."""

from dataclasses import dataclass

import streamlit as st

from pages.components import curves
from pages.components.boundary import told
from pages.components.text import plain

NO_GENERALISATION = (
    "Every question is on its own in this model: nothing learned on one helps another, and an answer that is never given is "
    "never found. Real training generalises, so it can do better, or worse, than this."
)
SUPERVISIONS = {"self": "Own votes (TTRL)", "ema": "A slow copy's votes", "ground_truth": "True answers"}
STEPS = (50, 100, 200, 500)


@dataclass(frozen=True)
class Example:
    """Settings under one button."""

    label: str
    about: str
    p_a: float
    p_b: float
    agents: int = 2
    others: float = 0.5
    mirror: bool = False


EXAMPLES = (
    Example("Complementary strengths", "The paper's: each agent is strong on half of the questions.", 0.9, 0.2, mirror=True),
    Example("Just over the edge", "One agent alone would lock a mistake in; together they are just above one half.", 0.6, 0.45),
    Example("Just under the edge", "The same with a slightly weaker peer: both end wrong.", 0.2, 0.79),
    Example("Co-RL hurts", "A good agent with a confidently wrong peer: own votes would have kept it right.", 0.9, 0.05),
    Example("Weak peer in a ring", "Two strong agents and a weak one, mean .60: all end wrong.", 0.886, 0.021, 3, 0.898),
)


@dataclass(frozen=True)
class Setting:
    """What a person set. `others` is the start of the agents beyond A and B."""

    p_a: float
    p_b: float
    others: float
    agents: int
    size: int  # K
    eta: float
    steps: int
    mirror: bool
    noisy: bool
    seed: int

    @property
    def starts(self) -> list[list[float]]:
        """One start (N accuracies) for each question that is followed."""
        rest = [self.others] * (self.agents - 2)
        first = [self.p_a, self.p_b, *rest]
        return [first, [self.p_b, self.p_a, *rest]] if self.mirror else [first]


def examples() -> None:
    """One button an example."""
    with st.container(horizontal=True):
        for example in EXAMPLES:
            st.button(example.label, help=example.about, key=f"theory.{example.label}", on_click=_take, args=(example,))


@told
def _take(example: Example) -> None:
    st.session_state["pa"], st.session_state["pb"] = example.p_a, example.p_b
    st.session_state["n"], st.session_state["rest"] = example.agents, example.others
    st.session_state["mirror"] = example.mirror


def controls() -> Setting:
    """The sliders."""
    first, second, third, fourth = st.columns(4)
    with first:
        p_a = _accuracy("Accuracy of A", "pa", 0.9, "How often one sampled answer of A is right on this question, at the start.")
        p_b = _accuracy("Accuracy of B", "pb", 0.2, "The same for B.")
    with second:
        agents = st.slider("Agents on the ring (N)", 2, 6, 2, key="n", bind="query-params",
                           help="2: A and B reward each other. More: A rewards B, B the next, and the last one A.")  # fmt: skip
        others = 0.5
        if agents > 2:
            others = _accuracy("Accuracy of the others", "rest", 0.5, "The start of every agent but A and B.")
    with third:
        size = st.slider("Answers in a group (K)", 2, 64, 8, key="k", bind="query-params",
                         help="How many answers vote. The basins of a pair do not depend on it; the speed does.")  # fmt: skip
        eta = st.select_slider("Step size (η)", [0.02, 0.05, 0.1, 0.2, 0.5, 1.0], 0.2, key="eta", bind="query-params",
                               help="Log-odds that a step moves when the pull is 1.")  # fmt: skip
    with fourth:
        steps = st.select_slider("Steps", STEPS, 200, key="steps", bind="query-params")
        mirror = st.toggle("Mirror question too", key="mirror", bind="query-params", help="A second question, A and B swapped.")
        noisy = st.toggle("Sampled run", key="noisy", bind="query-params",
                          help="GRPO with K answers drawn at each step, beside its mean.")  # fmt: skip
        seed = 0
        if noisy:
            seed = int(st.number_input("Seed", 0, 999, 0, key="seed", bind="query-params"))
    return Setting(p_a, p_b, others, agents, size, eta, steps, mirror, noisy, seed)


def choose_other() -> str:
    """What Co-RL is compared with."""
    return curves.choose("Beside Co-RL", SUPERVISIONS, "self", "beside", "Where the other chart's labels come from.")


def _accuracy(label: str, key: str, value: float, about: str) -> float:
    return st.slider(label, 0.005, 0.995, value, 0.005, format="%.3f", key=key, bind="query-params", help=about)


def about() -> None:
    """The theory for a person who has read the abstract only."""
    with st.expander("What is this?", icon=":material/help:"):
        st.markdown(ABOUT)


ABOUT = f"""
**The question.** Nobody tells the models the right answers. Each question's *pseudo-label* is the most common of K sampled
answers: a model's own (own votes, TTRL), or its peer's (Co-RL). When does that lead to the truth, and when does it lock a
mistake in?

**The plane.** Take one question. Agent A gives the right answer with probability p_A, agent B with p_B: a point in the square.
Training moves the point. With own votes each agent looks at itself alone: above one half it climbs to 1, below it falls to 0,
because a majority of wrong answers rewards wrong answers. With Co-RL each agent follows its *peer's* majority. Then only the sum
matters: **above p_A + p_B = 1 both end right, below it both end wrong.** The dashed line between the two is the *separatrix*;
the two areas are the *basins*.

**Why diversity helps.** If A is good where B is bad and the other way round (.9 and .2; .2 and .9), own votes keep each
agent's mistakes and both stay at one half. The pair's sum is 1.1 on every question, so Co-RL gets all of them right.

**Why it can hurt.** The pair amplifies its *mean*. Where the mean is below one half, a good agent is dragged down: .9 with .05
ends wrong, though A alone would have been right. Over many questions on which their accuracies are unrelated, Co-RL gains when
the mean accuracy is above one half and loses when it is below.

**Several answers.** Real questions have many wrong answers. What then counts is whether the agents make the *same* mistake. Two
models that are both more often wrong than right still find the truth together when their favourite mistakes differ, for the
truth is the only answer they share.

**Longer rings.** With three or more agents the ring still agrees in the end, but the sum no longer tells on what.

**What is left out.** {NO_GENERALISATION} Clipping, the KL term and the optimiser are left out too, so time is in steps of a
made-up size η. The formulas are those of the Co-RL paper (arXiv 2608.17253, section 5 and appendix B); the version with
several answers extends them.

**Against a run.** The other view takes a run whose questions have true answers. Each question that came up more than once is a
path in the same plane, from its first visit to its last, and the theory's forecast from the first visit is held against what
happened.
"""


def mean_words(ends: dict[str, float]) -> str:
    """How agents ended on the average of several questions."""
    return plain("Over both questions " + ", ".join(f"{name} ends at {p:.2f}" for name, p in ends.items()) + ".")


def outcome_words(ends: dict[str, float]) -> str:
    """How agents ended, as in "A ends right (0.99), B ends wrong (0.01)"."""
    if all(value > 0.9 for value in ends.values()):
        return "All end right."
    if all(value < 0.1 for value in ends.values()):
        return "All end wrong."
    kinds = {name: "ends right" if p > 0.9 else "ends wrong" if p < 0.1 else "is undecided" for name, p in ends.items()}
    said = [f"{name} {kinds[name]} ({p:.2f})" for name, p in ends.items()]
    return plain(", ".join(said) + ".")
