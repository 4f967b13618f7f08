"""New run: how one answer is read, and whether two are the same."""

import streamlit as st

from corl_core.answers import Reading, read, read_answer

OUTCOMES = {
    "parsed": "read",
    "no_box": "no box: no answer",
    "unclosed": "the last box never closes: no answer",
    "empty": "nothing in it: no answer",
    "timeout": "its mathematics took too long: compared as text",
    "error": "its mathematics failed: compared as text",
}
LONGEST = 4_000  # characters


def show() -> None:
    """The expander with the two fields; text stays text, whatever is in it."""
    with st.expander("Check how an answer is read", icon=":material/spellcheck:"):
        st.caption("A whole completion with its box, or an answer alone. Votes count keys; equal keys are one answer.")
        fields = {"answer_a": "Answer", "answer_b": "Another answer"}
        texts = [st.text_input(label, key=key, max_chars=LONGEST) for key, label in fields.items()]
        readings = [_read(text) for text in texts if text.strip()]
        for reading in readings:
            st.code(_words(reading), language=None, wrap_lines=True)
        if len(readings) == 2:
            st.markdown(f"**{_compared(*readings)}**")


def _compared(first: Reading, second: Reading) -> str:
    if first.answer is None or second.answer is None:
        return "No answer equals nothing"
    return "One answer" if first.answer.key == second.answer.key else "Two different answers"


def _read(text: str) -> Reading:
    """As a completion where it has a box, else as an answer alone."""
    reading = read(text)
    return read_answer(text) if reading.outcome == "no_box" else reading


def _words(reading: Reading) -> str:
    outcome = f"outcome  {reading.outcome} ({OUTCOMES[reading.outcome]})"
    if reading.answer is None:
        return outcome
    return f"answer   {reading.answer.shown}\nkey      {reading.answer.key}\n{outcome}"
