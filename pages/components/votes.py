"""Votes: which run, its ballots, and which question at which step. The choice lives in the URL, so that a link is the view."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
import streamlit as st

from corl_core.rollouts import ballots as core
from corl_core.rollouts import filters
from corl_core.rollouts.ballots import Ballots
from corl_core.rollouts.tally import NONE, Array
from pages.components import link
from pages.components.boundary import told
from pages.components.data import Known
from pages.components.text import plain

RUN_KEY = "votes_run"
MAX_ROWS = 500  # of the table of matches; filters narrow it down
FILTERS = {
    "everything": "All questions",
    "same_wrong": "Both wrong, same answer",
    "minority_right": "Vote wrong, a minority right",
    "flipped": "Label flipped since step",
    "unparsed": "No parsable answer",
    "tied": "Tie",
}
_MARKS = {True: "✓", False: "✗"}


@dataclass(frozen=True)
class Draw:
    """One question at one step: the draw's place, and how the URL names it."""

    place: int
    step: int
    question_id: str
    group: int


def choose_run(runs: Sequence[Known]) -> Known:
    """The run to look at; the URL's `run`, or the newest. A link to a run that is gone says so."""
    by_id = {run.id: run for run in runs}
    asked = st.query_params.get("run", "")
    if asked and asked not in by_id:
        link.note(f"The link names a run that is not here any more: {asked}.")
    if st.session_state.get(RUN_KEY) not in by_id:
        st.session_state[RUN_KEY] = asked if asked in by_id else runs[0].id
    picked = st.selectbox("Run", list(by_id), format_func=lambda run_id: by_id[run_id].label, key=RUN_KEY, on_change=_to_url)
    return by_id[picked]


@told
def _to_url() -> None:
    for name in ("step", "question", "group"):
        st.query_params.pop(name, None)
    st.query_params["run"] = st.session_state[RUN_KEY]


def opened(known: Known) -> Ballots:
    """The run's ballots as its shards now are. Raises ShardError."""
    agents = tuple(agent.name for agent in known.config.agents)
    size, tie, now = known.config.num_votes, known.config.vote.tie, core.run_stamps(known.run.path, agents)
    kept = _kept(str(known.run.path), agents, size, tie)
    with kept.lock:
        if kept.ballots is None or kept.stamps != now:
            with st.spinner("Reading what is new of this run's rollouts …"):
                kept.ballots = core.run_ballots(known.run.path, agents, size, tie)
            kept.stamps = now
        return kept.ballots


@dataclass
class _Kept:
    """The newest ballots of a run, for every session: a live run has others every few seconds, and each may be of megabytes."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    stamps: tuple[tuple[str, ...], ...] = ()
    ballots: Ballots | None = None


@st.cache_resource(max_entries=3, show_spinner=False)
def _kept(path: str, agents: tuple[str, ...], size: int, tie: str) -> _Kept:
    return _Kept()


def filtered(ballots: Ballots) -> Array:
    """The places of the draws that pass the filters that a person set, in step order."""
    link.check("filter", FILTERS.values(), "Filter")
    link.show()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        words = st.selectbox("Filter", list(FILTERS.values()), key="filter", bind="query-params", width=240)
        agents = st.multiselect("Agents", list(ballots.agents), key="agents", bind="query-params", width=260,
                                placeholder="All", help="The filter looks at these agents only.")  # fmt: skip
        name = next((key for key, value in FILTERS.items() if value == words), "everything")
        since = 0
        if name == "flipped":
            since = st.number_input("Since step", 0, value=0, key="since", bind="query-params", width=110)
        text = st.text_input("Search", type="search", key="q", bind="query-params", width=240,
                             placeholder="Words of the question, or its id")  # fmt: skip
        from_step = _step("From step", "from", int(ballots.step[0]))
        to_step = _step("To step", "to", int(ballots.step[-1]))
    places = [ballots.place(agent) for agent in agents] or None
    if name == "same_wrong" and places and len(places) < 2:
        st.caption(":material/info: This filter compares agents: choose two or more, or none for all.")
    mask = filters.matching(ballots, name, places, int(since))
    if text.strip():
        mask = mask & filters.searched(ballots, text)
    return np.flatnonzero(mask & (ballots.step >= from_step) & (ballots.step <= to_step))


def _step(label: str, key: str, otherwise: int) -> int:
    """A step, chosen by the person; `otherwise` while the field is empty, so that a live run's new steps are let in."""
    chosen = st.number_input(label, 0, value=None, step=1, key=key, bind="query-params", width=110, placeholder=f"{otherwise}")
    return otherwise if chosen is None else int(chosen)


def pick(ballots: Ballots, found: Array) -> Draw | None:
    """The table of matches, and the draw to show: the URL's, else the first match; None where there is neither."""
    asked = _asked(ballots)
    shown = found[:MAX_ROWS]
    if len(found):
        words = f"{len(found):,}" + (f" of {ballots.num_draws:,}" if len(found) < ballots.num_draws else "") + " questions asked"
        more = f"; the first {MAX_ROWS:,} are listed, filters find the others" if len(found) > MAX_ROWS else ""
        st.caption(f"{words}{more}. Tick one to see its rollouts. ✓ right, ✗ wrong.")
        key = f"votes.matches.{hash(shown.tobytes())}"
        st.dataframe(matches(ballots, shown), hide_index=True, height=min(260, 38 + 35 * len(shown)), key=key,
                     on_select=lambda: _follow(ballots, shown, key), selection_mode="single-row",
                     alt="Questions that match the filters")  # fmt: skip
    else:
        st.info("No question matches these filters.", icon=":material/filter_alt_off:")
    if asked is not None:
        return asked
    return draw_at(ballots, int(found[0])) if len(found) else None


def matches(ballots: Ballots, draws: Array) -> pd.DataFrame:
    """Step, question, truth, and each agent's vote as in '42 · 5/8 ✓', a row a draw."""
    columns: dict[str, list] = {"Step": ballots.step[draws].tolist()}
    columns["Question"] = [_short(ballots.texts[place], ballots.question_ids[place]) for place in ballots.question[draws]]
    if ballots.known.any():
        columns["Truth"] = [ballots.text(code) for code in ballots.truth[draws]]
    for place, agent in enumerate(ballots.agents):
        columns[agent] = [_vote_words(ballots, place, draw) for draw in draws]
    return pd.DataFrame(columns)


def draw_at(ballots: Ballots, place: int) -> Draw:
    """The draw at a place, with its name."""
    return Draw(place, int(ballots.step[place]), str(ballots.question_ids[ballots.question[place]]), int(ballots.group[place]))


def show_in_url(draw: Draw) -> None:
    """Makes the URL name this draw."""
    st.query_params.update(step=str(draw.step), question=draw.question_id, group=str(draw.group))


def _asked(ballots: Ballots) -> Draw | None:
    """The draw that the URL names; a notice, and None, when the run has no such draw."""
    step, question = st.query_params.get("step", ""), st.query_params.get("question", "")
    if not step and not question:
        return None
    group = st.query_params.get("group", "0")
    if step.isdecimal() and group.isdecimal():
        same = np.isin(ballots.question, np.flatnonzero(ballots.question_ids == question))
        found = np.flatnonzero(same & (ballots.step == int(step)) & (ballots.group == int(group)))
        if len(found):
            return draw_at(ballots, int(found[0]))
    st.warning(f"The link names a question that this run did not ask: {plain(question)} at step {plain(step)}.",
               icon=":material/link_off:")  # fmt: skip
    return None


@told
def _follow(ballots: Ballots, shown: Array, key: str) -> None:
    rows = st.session_state[key].selection.rows
    if rows and rows[0] < len(shown):
        show_in_url(draw_at(ballots, int(shown[rows[0]])))


def _vote_words(ballots: Ballots, agent: int, draw: int) -> str:
    cast, size = ballots.tallies[agent], ballots.size[agent, draw]
    if not size:
        return ""
    if cast.vote[draw] == NONE:
        return f"tie · {cast.count[draw]}/{size}" if cast.tied[draw] else "no answer"
    mark = f" {_MARKS[bool(ballots.right[agent, draw])]}" if ballots.known[draw] else ""
    tie = " tie" if cast.tied[draw] else ""
    return f"{str(ballots.text(cast.vote[draw]))[:40]} · {cast.count[draw]}/{size}{tie}{mark}"


def _short(text: str, question_id: str) -> str:
    line = " ".join(text.split("\n")[0].split()) or question_id
    return line if len(line) <= 160 else line[:159] + "…"
