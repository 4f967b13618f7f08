"""Guide: its words, the worked example, and every measure of a pair by the definition that the code computes."""

import pandas as pd
import streamlit as st

from corl_core.diversity.answers import Answers, Builder
from corl_core.diversity.measures import MEASURES
from corl_core.diversity.pairs import pairs
from pages.components.text import plain

WORDS = """
Nobody tells the models the right answers. For each question a model samples K answers, a *group*; the most common one is its
*vote*. In a *cohort* the models stand in a *ring*, and a model's vote becomes the *pseudo-label* of the next one, whose
answers are rewarded where they equal it. A ring of two: each labels for the other. A ring of one labels for itself (TTRL).

Everything here follows from one question: **when a pseudo-label is wrong, does the model that is trained on it make the same
mistake already?** If it does, the mistake is rewarded and grows. If it does not, the label finds nothing to reward, and the
truth, which both know, wins.
"""

PAIR = """
So good partners are right on *different* questions, and where both are wrong, wrong in *different* ways. Both can be counted
before any training, from answers to the same questions. Two models and six questions:
"""

TRUTH = {"Truth": ("7", "12", "9", "15", "20", "3")}
EXAMPLE = {"A": ("7", "12", "9", "15", "21", "4"), "B": ("7", "12", "8", "14", "20", "4")}

MEASURES_WORDS = """
Each model has a mistake that the other has not, which is what a pair learns from. On the last question both say 4: that label
is wrong and will be rewarded. The page shows each measure for all pairs as a matrix, with an interval that holds 95% of a
bootstrap over questions. Click a cell to see the questions behind it.
"""

PREDICTED = """
**Without true answers** only agreement can be counted. It says consensus, not correctness: two models that always agree may be
wrong together.

**With true answers and several samples a question** the page goes further. For every directed edge it counts how often the
peer's vote would be right, beside the model's own vote; *rights* is the share of the model's wrong votes that the peer's label
would mend, *misleads* the share of its right votes that it would spoil. And it predicts, by the theory below, how accurate each
model is after training in each pair and ring of three, beside training alone, and ranks them. A warning says when the mean
accuracy is under one half, when a model is wrong in most of its answers, and when one would end below where it began or below
what it would reach alone.
"""

RUN = """
**Theory, against a run.** Take a run whose questions have true answers. A question that came up more than once is a path: each
visit is a point (accuracy of A, accuracy of B), from the saved rollouts. The path is drawn over the predicted field and coloured
by how it ended. Three numbers stand beside it: the share of questions that began on the right side of the separatrix, the final
accuracy that this predicts, and the one measured. The calibration plot asks whether questions that were given a chance of 70%
ended right in 70% of the cases: on the diagonal the forecast was honest, above it more ended right than was foreseen.

**Votes, what if.** The saved rollouts also tell, without a GPU, how accurate the pseudo-labels would have been at each step had
each model used its own vote, another peer, all votes pooled or weighted by confidence, fewer rollouts, or a threshold. That is
about the labels of the run that happened: with other labels the models would have become others.
"""

LIMITS = """
- Both take questions one by one. A model that learns a rule on one question uses it on others: good rules spread, and so do wrong
  ones. On the demo's models this is why cohorts with a mostly wrong model ended lower than predicted.
- Both look at answers, never at reasoning. Two models may reach one right answer by luck.
- Mean accuracy alone ranks cohorts of the demo about as well as the theory. What the theory adds is how far each cohort gets,
  which model pays for it, and that models with the same mistakes gain nothing from each other.
- A sample of questions is a sample: look at the intervals before you prefer one pair to another. What is said here of the demo's
  models was measured by `python -m corl_core bench pairs`; its table is in the README.
"""


def answers() -> Answers:
    """The example as the picker would read it."""
    builder = Builder()
    for number, truth in enumerate(*TRUTH.values()):
        builder.truth(builder.question(f"q{number + 1}"), builder.code(truth, truth))
    for model, given in EXAMPLE.items():
        for number, answer in enumerate(given):
            builder.add(model, number, builder.code(answer, answer))
    return builder.answers()


def example() -> None:
    """The six questions: a right answer is marked."""
    (truths,) = TRUTH.values()
    marked = {
        model: [f"{answer} ✓" if answer == truth else answer for answer, truth in zip(given, truths, strict=True)]
        for model, given in (TRUTH | EXAMPLE).items()
    }
    marked["Truth"] = list(truths)
    st.table(pd.DataFrame(marked, index=pd.Index([f"q{number + 1}" for number in range(len(truths))])).T)


def measures() -> None:
    """Every measure of a pair: its definition, and its value in the example."""
    (pair,) = pairs(answers())
    rows = "\n".join(f"| {measure.label} | {_value(pair[name])} | {plain(measure.doc)} |" for name, measure in MEASURES.items())
    st.markdown(f"| measure | here | definition |\n| --- | ---: | --- |\n{rows}")


def _value(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}".replace("-", "−")
