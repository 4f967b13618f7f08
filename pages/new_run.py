"""New run: which cohort, which method, which data; the exact YAML and command; launch."""

import streamlit as st

from corl_core.config import load_config, preset_names
from pages.components import actions, answer_check, cohort, draft, forecast, frame, live, questions, queue_add, signals
from pages.components.fields import field, grid, problem

MAIN = [
    "grpo.max_steps",
    "grpo.questions_per_step",
    "grpo.num_generations",
    "grpo.max_completion_length",
    "grpo.learning_rate",
    "grpo.temperature",
    "eval.every_steps",
    "eval.num_questions",
    "eval.num_samples",
]
MORE = [
    "grpo.lr_scheduler_type",
    "grpo.min_lr_rate",
    "grpo.warmup_steps",
    "grpo.weight_decay",
    "grpo.adam_beta2",
    "grpo.max_grad_norm",
    "grpo.beta",
    "grpo.epsilon",
    "grpo.loss_type",
    "grpo.scale_rewards",
    "grpo.num_iterations",
    "grpo.gradient_accumulation_steps",
    "grpo.bf16",
    "grpo.gradient_checkpointing",
    "grpo.checkpointed_layers",
    "grpo.torch_compile",
    "eval.checkpoint",
    "checkpoints.every_steps",
    "alarms.action",
    "device",
    "threads_per_agent",
]


frame.require()
if template := st.query_params.pop("from", None):
    draft.load(live.one(template).config)
elif not draft.loaded():
    draft.load(load_config("demo"))

st.title("New run")
st.selectbox(
    "Start from a preset",
    preset_names(),
    None,
    key="preset",
    placeholder="Choose one to fill in the form",
    on_change=draft.fill,
    width=300,
)

now = draft.checked()
form, summary = st.columns([3, 2], gap="large")
with form:
    st.subheader("Run")
    grid(["name", "method", "seed"], now.problems)
    st.subheader("Cohort")
    cohort.agents_editor(now.problems)
    st.subheader("Questions")
    refusal = questions.editor(now.problems)
    st.subheader("Training")
    grid(MAIN, now.problems)
    st.subheader("Reward")
    signals.editor(now.problems)
    with st.expander("More settings", icon=":material/tune:"):
        exchange = ["exchange.timeout_s"] if "corl" in signals.chosen() else []
        grid(MORE + exchange, now.problems)
        field("notes", now.problems)
    answer_check.show()

with summary:
    st.subheader("Who rewards whom")
    cohort.ring_drawing(now.config)
    problem("", now.problems)
    problem("ring", now.problems)
    if now.config is None:
        st.error("Some fields need another value: see the notes in red.", icon=":material/error:")
    else:
        st.caption(draft.cost(now.config))
        refusal = forecast.show(now.config) or refusal
    with st.container(horizontal=True):
        actions.launch_button("Launch", now.config, "launch", refusal)
        queue_add.button(now.config, refusal)
    if now.config is not None:
        st.markdown("**Command**")
        anyway = " --anyway" if st.session_state.get(forecast.ANYWAY) else ""
        st.code(draft.command(now.config) + anyway, language="bash", wrap_lines=True)
        st.markdown("**run.yaml**")
        st.code(now.config.to_yaml(), language="yaml", wrap_lines=True)
        st.download_button(
            "Download run.yaml",
            now.config.to_yaml(),
            "run.yaml",
            "application/yaml",
            icon=":material/download:",
            on_click="ignore",
        )
