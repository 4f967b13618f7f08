"""The forecast on the New run page: one line, its table, other cards, and a red note where the run cannot fit."""

import pytest

from corl_core.forecast import cards
from corl_core.forecast.cards import Gpu
from corl_core.forecast.memory import GIB

LARGE = """name: large
agents:
  - {name: a, model: Qwen/Qwen2.5-3B}
  - {name: b, model: meta-llama/Llama-3.2-3B}
grpo: {bf16: true}
"""


@pytest.fixture
def two_cards(monkeypatch):
    """A machine with two GPUs of 80 GiB."""
    from pages.components import forecast as component

    monkeypatch.setattr(cards, "gpus", lambda: [Gpu(str(index), "NVIDIA H100", 80 * GIB) for index in range(2)])
    component._device.clear()
    yield
    component._device.clear()


def headline(at) -> str:
    return next(one.label for one in at.expander if one.label.startswith("About")).replace("\\", "")


def load_large(at):
    """The page on a cohort that 80 GiB cannot hold."""
    from corl_core.config import RunConfig

    at.session_state["draft.values"] = RunConfig.from_yaml(LARGE).model_dump()
    at.session_state["draft.revision"] = 99
    return at.run()


def test_the_demo_is_forecast_on_this_cpu(app, empty_store):
    at = app(empty_store, "new_run")
    assert not at.exception and "of memory" in headline(at) and "on this CPU" in headline(at)
    assert not at.error and not at.button(key="launch").disabled


def test_another_card_is_forecast_without_a_red_note(app, empty_store):
    at = app(empty_store, "new_run")
    at.selectbox(key="forecast_for").select("H200").run()
    assert "a GPU" in headline(at) and "on H200" in headline(at)
    assert not at.exception and not at.error


def test_what_cannot_fit_is_red_and_says_what_would(app, empty_store, two_cards, said):
    at = load_large(app(empty_store, "new_run"))
    assert not at.exception
    words = " ".join(error.value for error in at.error).replace("\\", "")
    assert "'a' needs" in words and "which has 80.0 GiB" in words
    assert "What would fit" in said(at)
    assert at.button(key="launch").disabled and at.button(key="add_to_queue").disabled
    assert not any("--anyway" in code.value for code in at.code)
    assert "it cannot fit this machine" in said(at).replace("\\", "")
    at.checkbox(key="anyway").check().run()
    assert not at.button(key="launch").disabled and not at.button(key="add_to_queue").disabled and at.error
    assert any(" --anyway" in code.value for code in at.code)  # the command does what the button does


def test_a_model_that_is_not_known_is_a_sentence(app, empty_store, said):
    at = load_large(app(empty_store, "new_run"))
    at.session_state["draft.values"]["agents"][0]["model"] = "org/unheard-of"
    at.run()
    assert not at.exception
    assert "No forecast" in said(at) and "not on this machine" in said(at).replace("\\", "")
