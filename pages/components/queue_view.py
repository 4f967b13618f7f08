"""Queue: the slots, the runs that take them, and those that wait, each with what can be done to it."""

from dataclasses import replace

import streamlit as st

from corl_core.runs import queue, queue_dispatch
from corl_core.runs.folder import QUEUED, Run, default_runs_dir, find_run
from corl_core.runs.queue import Waiting
from corl_core.runs.queue_slots import MAX_SLOTS, Free, need, visible_gpus
from pages.components import data, live
from pages.components.access import acts, may_act, why_not
from pages.components.data import Known
from pages.components.text import cohort, plain, state_badge

SHOWN = 25
CPU_HELP = "Cores that agents may take at a time. An agent takes one for each of its threads; a run that needs more runs alone."
GPU_HELP = "Processes of agents that share one GPU. The queue puts each agent on the GPU with the fewest."
MOVES = {"first": "To the front", "up": "One place up", "down": "One place down", "last": "To the end"}


def show() -> None:
    """Draws itself anew every two seconds, for other hands change the queue too."""
    if why := why_not():
        st.caption(f":material/lock: {plain(why)}")
    live.refreshing(_now, active=True)


def _now() -> None:
    known, _ = data.runs()
    by_path = {one.run.path: one for one in known}
    waiting = queue.in_order(one.run for one in known if one.status.state == QUEUED)
    living = [one for one in known if not one.status.final and one.status.state != QUEUED]
    free = queue_dispatch.free(default_runs_dir(), [one.run for one in living])
    _slots(free)
    for one in living[:SHOWN]:
        _living(one)
    if not waiting:
        st.info("Nothing waits. Add a run on the New run page, or a grid below.", icon=":material/info:")
        return
    held = sum(waits.entry.held for waits in waiting)
    st.markdown(f"**{len(waiting)} waiting**{f', {held} of them held' if held else ''}. A higher priority goes first.")
    for place, waits in enumerate(waiting[:SHOWN], 1):
        _waiting(place, waits, by_path[waits.run.path])
    if len(waiting) > SHOWN:
        st.caption(f"and {len(waiting) - SHOWN} more behind them")


def _slots(free: Free) -> None:
    used = [f"CPU slots: **{free.cores_used} of {free.slots.cpu}** in use"]
    used += [f"GPU {plain(gpu)}: **{agents} of {free.slots.gpu}** agents" for gpu, agents in free.agents_on.items()]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(". ".join(used), width="content")
        with st.popover("Change", icon=":material/tune:", disabled=not may_act()):
            for kind, label, about in (("cpu", "CPU slots", CPU_HELP), ("gpu", "Agents a GPU", GPU_HELP)):
                now = getattr(free.slots, kind)
                key = f"slots.{kind}.{now}"
                st.number_input(label, 1, MAX_SLOTS, now, key=key, help=about, on_change=_set_slots, args=(kind, key), width=180)


def _living(known: Known) -> None:
    with st.container(border=True, horizontal=True, vertical_alignment="center"):
        state_badge(known.status.state)
        _link(known)
        st.caption(f"{_needs(known)}. Step {known.status.step:,} of {known.status.max_steps:,}", width="content")


def _waiting(place: int, waits: Waiting, known: Known) -> None:
    entry, name, off = waits.entry, known.id, not may_act()
    with st.container(border=True, horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
        with st.container(horizontal=True, vertical_alignment="center", width="content"):
            if entry.held:
                st.badge("Held", icon=":material/pause:", color="orange")
            else:
                st.badge(f"{place}", icon=":material/schedule:", color="gray")
            _link(known)
            st.caption(f"{plain(cohort(known.config))}. {_needs(known)}", width="content")
        with st.container(horizontal=True, vertical_alignment="center", width="content", gap="small"):
            key = f"queue.priority.{name}.{entry.priority}"
            st.number_input(
                "Priority", -queue.MAX_PRIORITY, queue.MAX_PRIORITY, entry.priority, key=key, label_visibility="collapsed",
                icon=":material/low_priority:", width=120, on_change=_prioritise, args=(name, key), disabled=off,
            )  # fmt: skip
            for where, icon in (("up", "arrow_upward"), ("down", "arrow_downward")):
                st.button(
                    "", icon=f":material/{icon}:", key=f"queue.{where}.{name}", help=MOVES[where], on_click=_move,
                    args=(name, where), disabled=off,
                )  # fmt: skip
            _more(name, entry.held, off)


def _more(name: str, held: bool, off: bool) -> None:
    """The rarer things, in a menu."""
    options = {"release" if held else "hold": "Release" if held else "Hold", "first": MOVES["first"], "last": MOVES["last"],
               "cancel": "Cancel"}  # fmt: skip
    key = f"queue.more.{name}"
    st.menu_button(
        "", options, format_func=options.get, icon=":material/more_vert:", key=key, help="Hold, move, cancel", disabled=off,
        on_click=_do, args=(name, key),
    )  # fmt: skip


def _link(known: Known) -> None:
    label = plain(f"{known.name}, seed {known.config.seed}")
    st.page_link("pages/run.py", label=label, query_params={"run": known.id})


def _needs(known: Known) -> str:
    taken = need(known.config, visible_gpus(), known.run.places)
    if taken.on_gpu:
        chosen = ", ".join(map(plain, taken.gpus))
        return f"{taken.num_places} {'places' if taken.num_places > 1 else 'place'} on {f'GPU {chosen}' if chosen else 'any GPU'}"
    return f"{taken.cores} CPU slots" if taken.cores != 1 else "1 CPU slot"


def _run(name: str) -> Run:
    return find_run(default_runs_dir(), name)


@acts
def _do(name: str, key: str) -> None:
    match st.session_state[key]:
        case "hold":
            queue.hold(_run(name))
        case "release":
            queue_dispatch.release(_run(name))
        case "cancel":
            queue.cancel(_run(name))
        case "first" | "last" as where:
            queue.move(_run(name), where)


@acts
def _move(name: str, where: str) -> None:
    queue.move(_run(name), where)


@acts
def _prioritise(name: str, key: str) -> None:
    if (priority := st.session_state[key]) is not None:
        queue.prioritise(_run(name), int(priority))


@acts
def _set_slots(kind: str, key: str) -> None:
    if (number := st.session_state[key]) is not None:
        runs_dir = default_runs_dir()
        queue_dispatch.set_slots(runs_dir, replace(queue_dispatch.slots(runs_dir), **{kind: int(number)}))
