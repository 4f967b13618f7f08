"""Cohort picker: candidates sampled in the background, their progress, and the samplings that were kept."""

import secrets
import threading

import streamlit as st

from corl_core.config import ConfigError, RunConfig
from corl_core.data.sources import ARITHMETIC
from corl_core.diversity import jobs
from corl_core.diversity.jobs import Job
from corl_core.diversity.request import DEFAULT_QUESTIONS, DEFAULT_SAMPLES, MAX_CANDIDATES, request
from corl_core.runs.folder import default_runs_dir
from corl_core.security import masked
from corl_core.tiny_names import FAMILIES
from pages.components import live, picker
from pages.components.access import acts
from pages.components.actions import why_not_launch
from pages.components.boundary import visit
from pages.components.text import duration, plain, short_moment, state_badge

MODEL_HELP = (
    "Tiny models are made here in a minute or two. Or type a Hugging Face id, a local folder, or tiny:llama@careless for another "
    "school."
)
QUESTIONS_HELP = "'arithmetic' (built in), a file of questions, or a Hugging Face dataset; without true answers, only agreement."
SEEDS_HELP = "One candidate for each model and seed: another base model of a tiny family, other samples of any other model."
PARAPHRASE_HELP = "Each model also as a candidate that reads the paraphrases, where the questions have some."
_NEWEST = "picker.newest"
_SESSION = "picker.session"
_lock = threading.Lock()


@st.cache_resource
def _started() -> dict[str, Job]:
    """Token of a click to the sampling that it started."""
    return {}


def chosen() -> picker.Found | None:
    """The form, the samplings that were kept, and the one picked with its progress; None until it has answers."""
    known = jobs.all_jobs(default_runs_dir())
    with st.expander("Sample candidates", icon=":material/science:", expanded=not known):
        _form()
    if not known:
        st.caption("Nothing has been sampled yet.")
        return None
    names = {job.id: _label(job) for job in known}
    if newest := st.session_state.pop(_NEWEST, None):
        st.session_state["sampling"] = newest
    picked = st.selectbox("Sampling", list(names), format_func=names.get, key="sampling", bind="query-params", width=620)
    job = next(job for job in known if job.id == picked)
    _progress(job)
    if not job.status().final:
        st.caption("The analysis comes when the sampling has ended; what is done by then stays if you stop it.")
        return None
    if job.answers is None:
        return None
    return picker.opened(str(job.answers), job)


def _form() -> None:
    models = st.multiselect(
        "Candidates",
        [f"tiny:{family}" for family in FAMILIES],
        [f"tiny:{family}" for family in FAMILIES],
        accept_new_options=True,
        key="candidates",
        help=f"{MODEL_HELP} At most {MAX_CANDIDATES}.",
    )
    source, number, samples, seeds = st.columns([2, 1, 1, 1])
    questions = source.text_input("Questions", ARITHMETIC, key="candidate_questions", help=QUESTIONS_HELP)
    num = number.number_input("How many", 1, 100_000, DEFAULT_QUESTIONS, key="candidate_num")
    k = samples.number_input("Samples of each (K)", 1, 256, DEFAULT_SAMPLES, key="candidate_k")
    num_seeds = seeds.number_input("Seeds", 1, 5, 1, key="candidate_seeds", help=SEEDS_HELP)
    reworded = st.checkbox("Paraphrases too", key="candidate_paraphrases", help=PARAPHRASE_HELP)
    asked, problem = None, ""
    try:
        asked = request(models, questions.strip(), int(num), int(k), range(int(num_seeds)), reworded)
    except ConfigError as error:
        problem = str(error)
    refusal = why_not_launch() or problem
    st.button(
        "Sample", type="primary", icon=":material/play_arrow:", key="sample_start", disabled=bool(refusal), on_click=_start,
        args=(asked,),
    )  # fmt: skip
    if refusal:
        st.caption(f":material/block: {plain(refusal[:1].upper() + refusal[1:])}")
    elif asked:
        st.caption(f"{len(asked.agents)} candidates, {jobs.num_completions(asked):,} completions at most.")


@acts
def _start(asked: RunConfig) -> None:
    """The button's callback; two clicks on one button start one sampling."""
    session = st.session_state.setdefault(_SESSION, secrets.token_hex(8))
    token = f"{session}/{visit()}/{asked.to_yaml()}"
    with _lock:
        if token not in _started() or not _started()[token].path.exists():
            _started()[token] = jobs.launch(asked, default_runs_dir())
    st.session_state[_NEWEST] = _started()[token].id


def _label(job: Job) -> str:
    """When, whom and how much: tells samplings apart."""
    names = ", ".join(agent.name for agent in job.request.agents)
    return f"{short_moment(job.status().created)}: {names}; {job.request.eval.num_questions} × {job.request.eval.num_samples}"


def _progress(job: Job) -> None:
    """State and progress, drawn anew while it samples; buttons to stop and to delete."""
    final = job.status().final

    def part() -> None:
        status = job.status()
        if status.final and not final:
            st.rerun()
        with st.container(horizontal=True, vertical_alignment="center"):
            state_badge(status.state)
            st.markdown(plain(_words(job)))
        if not status.final:
            st.progress(min(1.0, status.step / max(1, status.max_steps)))
            st.button("Stop", icon=":material/stop:", key="sampling_stop", disabled=bool(why_not_launch()),
                      on_click=acts(jobs.stop), args=(job,))  # fmt: skip
        elif status.state == "failed" and (tail := job.log_tail()):
            with st.expander("Log", icon=":material/article:"):
                st.code(live.whole_lines(masked(tail), live.LOG_LINES), language=None, wrap_lines=True)

    live.refreshing(part, active=not final)
    if final:
        st.button("Delete this sampling", icon=":material/delete:", key="sampling_delete", type="tertiary",
                  on_click=acts(jobs.delete), disabled=bool(why_not_launch()), args=(job,))  # fmt: skip


def _words(job: Job) -> str:
    status = job.status()
    done = f"{status.step:,} of {status.max_steps:,} completions"
    if status.reason and status.state != "finished":
        return f"{status.reason[:1].upper()}{status.reason[1:]}; {done}"
    if status.final:
        took = duration(status.ended - status.started) if status.ended and status.started else "unknown"
        return f"{done} in {took}; kept in {job.path.parent.name}/{job.id}"
    left = f", {duration(status.seconds_left)} left" if status.seconds_left else ""
    return f"{status.phase[:1].upper()}{status.phase[1:] or 'Starting'}; {done}{left}"

