"""Votes: one question at one step, agent by agent, and the same question through training."""

import json
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import streamlit as st

from corl_core.answers import span
from corl_core.figures.rollouts import question_path
from corl_core.rollouts.agreement import through
from corl_core.rollouts.ballots import Ballots
from corl_core.rollouts.groups import Group, Rollout, read_groups
from pages.components.boundary import told
from pages.components.chart import chart
from pages.components.data import Known
from pages.components.text import plain
from pages.components.votes import Draw, draw_at, show_in_url

HERE = Path(__file__).parent
MAX_CHARS = 1_500_000  # of one agent's completions in the page; longer ones are cut at their beginning, and say so
STEP_KEY = "votes_step"
OUTCOMES = {
    "no_box": "no box",
    "unclosed": "the box never closes",
    "empty": "empty box",
    "timeout": "compared as text: took too long",
    "error": "compared as text: grading failed",
}

_answers = st.components.v2.component(
    "corl_answers",
    html='<div class="corl-answers" role="group"></div>',
    js=(HERE / "votes_rollouts.js").read_text(encoding="utf-8"),
    css=(HERE / "votes_rollouts.css").read_text(encoding="utf-8"),
)


def show(known: Known, ballots: Ballots, draw: Draw) -> None:
    """The question, who sent which label to whom, and every agent's rollouts."""
    groups, problems = read_groups(known.run, draw.step, draw.question_id, draw.group)
    for sentence in problems:
        if sentence not in ballots.problems:
            st.warning(plain(sentence), icon=":material/warning:")
    if not groups:
        st.warning("The rollouts of this question are not there any more.", icon=":material/warning:")
        return
    _heading(ballots, draw, groups)
    edges = edge_table(groups, known.config.peers())
    st.dataframe(edges, hide_index=True, alt="The pseudo-label that each agent received")
    for start in range(0, len(groups), 3):
        row = groups[start : start + 3]
        for column, group in zip(st.columns(max(len(row), min(len(groups), 3))), row, strict=False):
            with column, st.container(border=True, height="stretch"):
                _card(group)
    st.download_button("All completions (JSON)", data=lambda: as_json(groups), file_name=f"step-{draw.step}-rollouts.json",
                       mime="application/json", on_click="ignore", icon=":material/download:", type="tertiary")  # fmt: skip


def show_path(ballots: Ballots, draw: Draw) -> None:
    """The question through training: each agent's vote share every time it was asked."""
    st.subheader("This question through training")
    rows = through(ballots, draw.question_id)
    num = rows["draw"].nunique()
    if num < 2:
        st.caption("It was asked once so far.")
        return
    st.caption(f"Asked {num:,} times. A circle is a right vote, a cross a wrong one, an open circle one whose truth is unknown.")
    with st.container(border=True):
        words = f"Vote share of each agent on question {draw.question_id} over {num} draws"
        chart(question_path(rows, ballots.agents), "votes.path", words, revision=draw.question_id)
    with st.expander("The votes as a table", icon=":material/table:"):
        st.dataframe(rows.drop(columns=["draw", "question_id"]), hide_index=True, alt="Votes on this question")


def edge_table(groups: Sequence[Group], peers: dict[str, str]) -> pd.DataFrame:
    """Who sent which vote to whom, and what arrived as the pseudo-label; without peers, the label that was used."""
    by_name = {group.agent: group for group in groups}
    rows = []
    for group in groups:
        giver = by_name.get(peers.get(group.agent, ""))
        label = group.pseudo_label
        right = "" if group.truth is None or label is None else "right" if label == group.truth else "wrong"
        sent = _sent(giver) if giver else "no vote is sent"
        source = "itself" if giver is group else peers.get(group.agent, "no agent")
        row = {"From": source, "To": group.agent, "Vote": sent, "Pseudo-label": label or "none"}
        rows.append(row | ({"Label is": right} if group.truth is not None else {}))
    return pd.DataFrame(rows)


def answer_rows(group: Group) -> list[dict]:
    """What the page draws of a group: an entry a canonical answer, with its count, badges and rollouts."""
    allowed, rows = MAX_CHARS // max(1, len(group.rollouts)), []
    for key, rollouts in group.counted:
        facts = {
            "vote": group.vote.key is not None and key == group.vote.key,
            "right": group.truth is not None and key == group.truth,
            "wrong": group.truth is not None and key is not None and key != group.truth,
            "label received": key is not None and key == group.pseudo_label,
        }
        rows.append(
            {
                "shown": "no parsable answer" if key is None else key,
                "count": len(rollouts),
                "words": f"{len(rollouts)} of {len(group.rollouts)}",
                "badges": [word for word, holds in facts.items() if holds],
                "rollouts": [_rollout(rollout, allowed) for rollout in rollouts],
            }
        )
    return rows


def as_json(groups: Sequence[Group]) -> bytes:
    """Every rollout in full, for a person's own tools."""
    rows = [
        {"agent": group.agent, "question": group.question, "pseudo_label": group.pseudo_label, "truth": group.truth,
         "completion": one.completion, "key": one.answer.key if one.answer else None, "outcome": one.outcome,
         "reward": one.reward, "advantage": one.advantage, "trained": one.trained}
        for group in groups for one in group.rollouts
    ]  # fmt: skip
    return json.dumps(rows, ensure_ascii=False, indent=1).encode()


def _heading(ballots: Ballots, draw: Draw, groups: Sequence[Group]) -> None:
    again = np.flatnonzero((ballots.question == ballots.question[draw.place]) & (ballots.group == draw.group))
    steps = {int(ballots.step[place]): int(place) for place in again}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.subheader(f"Step {draw.step}")
        if len(steps) > 1:
            key = f"{STEP_KEY}.{draw.question_id}.{draw.step}"
            st.selectbox("Asked at step", list(steps), list(steps).index(draw.step), key=key, width=140,
                         on_change=_go, args=(ballots, steps, key))  # fmt: skip
    wordings = list(dict.fromkeys(group.question for group in groups))
    for wording in wordings:
        readers = [group.agent for group in groups if group.question == wording]
        if len(wordings) > 1:
            st.caption(f"As asked of {plain(', '.join(readers))}:")
        st.code(wording or "The question's text was not saved.", language=None, wrap_lines=True)
    truth = next((group.truth for group in groups if group.truth is not None), None)
    st.markdown(f"Question {plain(draw.question_id)}. Truth: {f'**{plain(truth)}**' if truth is not None else 'unknown'}.")


@told
def _go(ballots: Ballots, steps: dict[int, int], key: str) -> None:
    show_in_url(draw_at(ballots, steps[st.session_state[key]]))


def _card(group: Group) -> None:
    st.markdown(f"**{plain(group.agent)}**")
    st.caption(plain(f"{vote_words(group)} {len(group.rollouts)} rollouts, {group.vote.num_parsed} with an answer."))
    rows = answer_rows(group)
    alt = f"{group.agent}: " + "; ".join(f"{row['shown']} {row['words']}" for row in rows[:8])
    drawn = {"answers": rows, "total": len(group.rollouts), "alt": alt}
    _answers(data=drawn, key=f"votes.answers.{group.agent}", height="content")


def vote_words(group: Group) -> str:
    """The vote in words, as in 'Votes 42 with share 0.62, right.'"""
    cast = group.vote
    if cast.key is None:
        return "A tie, so no vote." if cast.tied else "No vote, for nothing parsed."
    tie = ", tied: the first sampled wins" if cast.tied else ""
    held = "" if group.truth is None else ", right" if cast.key == group.truth else ", wrong"
    low = "" if group.counts else ", below the share that a label needs"
    return f"Votes {short_key(cast.key)} with share {cast.share:.2f}{held}{tie}{low}."


def short_key(key: str) -> str:
    """An answer in a sentence; whole where it is short."""
    return key if len(key) <= 60 else key[:59] + "…"


def _sent(group: Group) -> str:
    if group.vote.key is None:
        return "no vote"
    held_back = "" if group.counts else ", held back"
    return f"{short_key(group.vote.key)} ({group.vote.count} of {group.vote.num_parsed}){held_back}"


def _rollout(rollout: Rollout, allowed: int) -> dict:
    """One rollout as the page draws it; a long text keeps its end, where the answer stands."""
    text, found = rollout.completion, span(rollout.completion) if rollout.answer else None
    cut = max(0, len(text) - allowed)
    if found and found[0] < cut:
        cut = max(0, found[0] - allowed // 2)
    shown = text[cut : cut + allowed]
    marked = [found[0] - cut, min(found[1] - cut, len(shown))] if found else None
    left = len(text) - len(shown)
    return {
        "text": shown,
        "before": f"{left:,} of {len(text):,} characters are left out here; the download has them all." if left else "",
        "span": marked,
        "facts": _facts(rollout),
    }


def _facts(rollout: Rollout) -> list[str]:
    facts = ["reward none" if rollout.reward is None else f"reward {rollout.reward:.4g}"]
    facts.append("voted only" if rollout.advantage is None else f"advantage {rollout.advantage:+.3f}")
    if rollout.answer and rollout.answer.text != rollout.answer.key:
        facts.append(f"written {rollout.answer.text[:80]}")
    if rollout.outcome not in ("", "parsed"):
        facts.append(OUTCOMES.get(rollout.outcome, rollout.outcome))
    return facts
