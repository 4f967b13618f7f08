"""Votes: a whole run over its steps: agreement held against the truth, and the labels that another rule would have given."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from corl_core.figures.rollouts import agreement_area, case_words, replay_curves
from corl_core.rollouts import agreement, whatif
from corl_core.rollouts.ballots import Ballots
from pages.components.chart import chart, chart_card
from pages.components.data import Known

NO_TRUTH = "This needs ground truth, which the questions of this run do not have."
CASES_DOC = (
    "Every question whose truth is known falls into one of five cases. A vote that was not cast is wrong and agrees with nobody."
)
REPLAY_DOC = (
    "What another rule would have labelled, from the votes that this run has saved. The rollouts stay as they are: with other "
    "labels the models would have learned something else, so this says how good the labels are, not where they lead."
)
RULES_DOC = (
    "vote: one agent's vote; for itself that is self-voting. pooled: the most common answer of all agents' rollouts in one pot. "
    "weighted: each agent's vote counts with its vote share. received: the labels of the run as it was."
)
ACCURACY_DOC = "Share of the labels that are right, among labelled questions whose truth is known."
COVERAGE_DOC = "Share of the questions that get a label: the vote is cast, and its share is not below the threshold."


def show_agreement(known: Known, ballots: Ballots) -> None:
    """The five cases of a chosen pair as areas stacked over steps."""
    agents = list(ballots.agents)
    if len(agents) < 2:
        st.info("This compares two agents, and the cohort has one.", icon=":material/info:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom"):
        a = st.selectbox("Agent A", agents, 0, key="a", bind="query-params", width=200)
        b = st.selectbox("Agent B", [name for name in agents if name != a], 0, key="b", bind="query-params", width=200)
        block = _choose_block(ballots)
    shares = agreement.decomposed(ballots, a, b, block)
    if shares.empty:
        st.info(NO_TRUTH, icon=":material/info:")
        return
    st.markdown("**Agreement, held against the truth**", help=CASES_DOC)
    with st.container(border=True):
        ends = shares.iloc[-1]
        words = "; ".join(f"{name} {ends[case]:.0%}" for case, name in case_words(a, b).items())
        chart(agreement_area(shares, a, b), "votes.agreement", f"Shares of questions over steps; at the end {words}",
              height=330, revision=f"{known.id}.{a}.{b}")  # fmt: skip
    with st.expander("The numbers as a table", icon=":material/table:"):
        st.dataframe(shares.rename(columns={"num_draws": "questions"} | case_words(a, b)), hide_index=True,
                     alt="Share of each case by block of steps")  # fmt: skip


def show_replay(known: Known, ballots: Ballots) -> None:
    """Pseudo-label accuracy and coverage under other rules, as curves and as a table."""
    if not ballots.known.any():
        st.info(NO_TRUTH, icon=":material/info:")
        return
    st.caption(REPLAY_DOC)
    most, usual_share = ballots.codes.shape[2], known.config.vote.min_share
    with st.container(horizontal=True, vertical_alignment="bottom"):
        num_votes = st.number_input("Rollouts that vote", 1, value=None, step=1, key="votes", bind="query-params", width=150,
                                    placeholder=f"all {most}", help="The first so many of each group: a fair draw.")  # fmt: skip
        share = st.number_input("Smallest vote share", 0.0, 1.0, None, 0.05, key="share", bind="query-params", width=160,
                                placeholder=f"{usual_share:g}", help="A vote below this share labels nothing.")  # fmt: skip
        block = _choose_block(ballots)
    rules = labels(ballots.agents)
    usual = [word for (rule, _), word in rules.items() if rule != "received"]
    words = st.multiselect("Curves", list(rules.values()), usual, key="rules", bind="query-params", help=RULES_DOC)
    shown = {rule: word for rule, word in rules.items() if word in words}
    counts = whatif.replay(ballots, num_votes and int(num_votes), usual_share if share is None else float(share))
    points = whatif.rates(counts, block)
    cards = [("accuracy", ACCURACY_DOC), ("coverage", COVERAGE_DOC)]
    for column, (measure, doc) in zip(st.columns(2), cards, strict=True):
        with column:
            figure = replay_curves(points, measure, ballots.agents, shown)
            chart_card(figure, f"votes.whatif.{measure}", doc, "Choose at least one curve.", known.id)
    st.dataframe(replay_table(counts, rules, known.config.peers()), hide_index=True, column_config=COLUMNS,
                 alt="Accuracy and coverage of each rule over the whole run")  # fmt: skip


COLUMNS = {
    "Accuracy": st.column_config.NumberColumn(format="%.3f", help=ACCURACY_DOC),
    "First fifth": st.column_config.NumberColumn(format="%.3f", help="Accuracy over the first fifth of the steps."),
    "Last fifth": st.column_config.NumberColumn(format="%.3f", help="Accuracy over the last fifth of the steps."),
    "Coverage": st.column_config.NumberColumn(format="%.3f", help=COVERAGE_DOC),
}


def _choose_block(ballots: Ballots) -> int:
    about = "Each point is the mean over so many steps; few questions make a ragged line."
    usual = agreement.usual_block(ballots)
    chosen = st.number_input("Steps a point", 1, value=None, step=1, key="block", bind="query-params", width=130,
                             placeholder=f"{usual}", help=about)  # fmt: skip
    return int(chosen or usual)


def labels(agents: Sequence[str]) -> dict[tuple[str, str], str]:
    """(rule, agent) → its name on the page, in the order of drawing."""
    votes = {("vote", agent): f"vote of {agent}" for agent in agents}
    received = {("received", agent): f"received by {agent}" for agent in agents}
    return votes | {("pooled", ""): "pooled vote", ("weighted", ""): "weighted vote"} | received


def replay_table(counts: pd.DataFrame, shown: dict[tuple[str, str], str], peers: dict[str, str]) -> pd.DataFrame:
    """A row a rule: what it is in this run, accuracy at first, at last and in all, and coverage."""
    whole = whatif.rates(counts).set_index(["rule", "agent"])
    num_steps = counts["step"].nunique()
    fifths = whatif.rates(counts, -(-num_steps // 5)).groupby(["rule", "agent"], sort=False)["accuracy"].agg(["first", "last"])
    rows = []
    for rule, label in shown.items():
        own = whole.loc[rule]
        row = {"Rule": label, "In this run": _part(rule, peers), "Accuracy": own["accuracy"]}
        row |= {"First fifth": fifths.loc[rule, "first"], "Last fifth": fifths.loc[rule, "last"], "Coverage": own["coverage"]}
        rows.append(row | {"Labelled": int(own["labelled"]), "Questions": int(own["questions"])})
    return pd.DataFrame(rows)


def _part(rule: tuple[str, str], peers: dict[str, str]) -> str:
    kind, agent = rule
    if kind == "received":
        return f"from {peers[agent]}" if agent in peers else ""
    if kind != "vote":
        return ""
    takers = [taker for taker, giver in peers.items() if giver == agent]
    return "rewards " + ", ".join("itself" if taker == agent else taker for taker in takers) if takers else ""
