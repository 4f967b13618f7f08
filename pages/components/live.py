"""The parts of a page that refresh themselves while something runs, and stop when it ends."""

from collections.abc import Callable

import streamlit as st

from corl_core.runs.folder import default_runs_dir, find_run
from corl_core.runs.speed import STEPS, run_speed
from corl_core.security import masked
from pages.components import data
from pages.components.boundary import guard
from pages.components.data import Known
from pages.components.text import duration, plain, state_badge

EVERY_S = 2
MAX_CARDS = 6
LOG_LINES, MORE_LOG_LINES = 14, 200
LOG_BYTES = 65_536


def refreshing(body: Callable[[], None], active: bool) -> None:
    """Draws `body` as a fragment, again every two seconds while `active`."""

    @st.fragment(run_every=EVERY_S if active else None)
    def part() -> None:
        with guard():
            body()

    part()


def one(run_id: str) -> Known:
    """The run as it is now. Raises RunNotFound."""
    run = find_run(default_runs_dir(), run_id)
    return Known(run, data.config_of(run), run.status())


def progress(known: Known) -> None:
    """The progress bar, with step and time left."""
    status = known.status
    total = max(status.max_steps, 1)
    words = f"Step {status.step:,} of {status.max_steps:,}"
    if status.phase and not status.step:
        words = status.phase[:1].upper() + status.phase[1:]
    elif not status.final:
        words += f", {duration(status.seconds_left)} left" if status.seconds_left else ""
    elif status.started and status.ended:
        part = f", the last {status.step - status.attempt_step:,} since it was resumed" if status.attempt_step else ""
        words += f"{part} in {duration(status.ended - status.started)}"
    st.progress(min(1.0, status.step / total), text=plain(words))


def running_cards(run_ids: list[str]) -> None:
    """A card for each run that is not over; the page is drawn anew when one ends."""

    def cards() -> None:
        now = [one(run_id) for run_id in run_ids]
        if any(run.status.final for run in now):
            st.rerun()
        for place in range(0, len(now[:MAX_CARDS]), 3):
            for column, run in zip(st.columns(3), now[place : place + 3], strict=False):
                with column, st.container(border=True):
                    _card(run)
        if len(now) > MAX_CARDS:
            st.caption(f"and {len(now) - MAX_CARDS} more in the table")

    refreshing(cards, active=True)


def _card(run: Known) -> None:
    with st.container(horizontal=True, horizontal_alignment="distribute"):
        st.page_link(
            "pages/run.py",
            label=plain(f"{run.name}, seed {run.config.seed}"),
            query_params={"run": run.id},
            icon=":material/show_chart:",
        )
        state_badge(run.status.state)
    progress(run)


def headline(known: Known) -> None:
    """State with its reason, progress, and where each agent stands."""
    status = known.status
    with st.container(horizontal=True, vertical_alignment="center"):
        state_badge(status.state)
        if status.reason:
            st.markdown(plain(masked(status.reason[:1].upper() + status.reason[1:])))
    progress(known)
    if pace := speed_words(known):
        st.caption(pace)


def speed_words(known: Known) -> str:
    """The pace of the cohort: now while it runs, over the whole run once it has ended; empty when it is not known."""
    status = known.status
    if status.final:
        took = (status.ended or 0.0) - (status.started or status.ended or 0.0)
        done = status.step - status.attempt_step  # times are of the last attempt
        return f"{_rate(done / took)} on average, evaluations included" if done > 0 and took > 0 else ""
    now = run_speed(known.run) if status.state == "running" else None
    if now is None:
        return ""
    tokens = f" and {now.tokens_per_s:,.0f} tokens/s of all agents together" if now.tokens_per_s else ""
    return f"{_rate(now.steps_per_s)}{tokens}, over the last {STEPS} steps"


def _rate(steps_per_s: float) -> str:
    """Steps a second, or seconds a step where that reads better."""
    if steps_per_s < 0.5:
        return f"{duration(1 / steps_per_s)} a step"
    return f"{steps_per_s:.3g} step{'' if f'{steps_per_s:.3g}' == '1' else 's'}/s"


def logs(known: Known, agents: list[str]) -> None:
    """The end of each agent's log, and of the supervisor's, as high as its lines: the newest is never below a fold."""
    st.subheader("Logs")
    more = st.toggle(f"Last {MORE_LOG_LINES} lines", key="log_more", help=f"Off: the last {LOG_LINES}.")
    for tab, agent in zip(st.tabs([*map(plain, agents), "supervisor"]), [*agents, None], strict=True):
        with tab:
            tail = whole_lines(masked(known.run.log_tail(agent, LOG_BYTES)), MORE_LOG_LINES if more else LOG_LINES)
            st.code(tail or "Nothing logged yet.", language=None, wrap_lines=True)


def whole_lines(tail: str, num: int) -> str:
    """The last `num` lines of a log's tail; a tail of LOG_BYTES may open inside a line, which is left out."""
    lines = tail.splitlines()
    torn = len(tail.encode()) >= LOG_BYTES and len(lines) > 1
    return "\n".join(lines[torn:][-num:])
