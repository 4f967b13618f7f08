"""New run page: presets, agents, errors beside their fields, exact command, launch once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import psutil
import pytest
import yaml

from corl_core.config import RunConfig, load_config
from corl_core.runs.folder import all_runs


def field(at, path: str):
    """The widget of a config field, whatever the form's revision."""
    kinds = (at.text_input, at.number_input, at.selectbox, at.toggle, at.text_area)
    return next(
        widget for kind in kinds for widget in kind if widget.key and widget.key.endswith(f".{path}")
    )  # fmt: skip


def shown_yaml(at) -> dict:
    return yaml.safe_load(at.code[1].value)


def test_the_form_opens_on_the_demo_with_its_command_and_yaml(app, empty_store):
    at = app(empty_store, "new_run")
    assert not at.exception and not at.error
    assert at.code[0].value == "python -m corl_core launch demo"
    assert shown_yaml(at)["method"] == "corl"


def test_a_changed_field_is_in_the_command_and_the_yaml(app, empty_store):
    at = app(empty_store, "new_run")
    field(at, "grpo.max_steps").set_value(7).run()
    assert at.code[0].value == "python -m corl_core launch demo --set grpo.max_steps=7"
    assert shown_yaml(at)["grpo"]["max_steps"] == 7


def test_a_preset_fills_in_the_form(app, empty_store):
    at = app(empty_store, "new_run")
    at.selectbox(key="preset").select("demo-ttrl").run()
    assert field(at, "name").value == "demo-ttrl" and field(at, "method").value == "ttrl"
    assert at.code[0].value == "python -m corl_core launch demo-ttrl"


def test_agents_are_added_removed_and_moved_on_the_ring(app, empty_store, charts):
    at = app(empty_store, "new_run")
    at.button(key="add_agent").click().run()
    names = [agent["name"] for agent in shown_yaml(at)["agents"]]
    assert names == ["llama", "qwen2", "gpt_neox", "gpt_neox-2"]
    assert shown_yaml(at)["agents"][3]["seed"] == 1  # a second of its family
    assert len(charts(at)["ring"]["layout"]["annotations"]) == 4
    assert at.code[0].value.endswith("launch run.yaml")
    next(button for button in at.button if button.key.endswith("agents.1.earlier")).click().run()
    next(button for button in at.button if button.key.endswith("agents.3.remove")).click().run()
    assert [agent["name"] for agent in shown_yaml(at)["agents"]] == ["qwen2", "llama", "gpt_neox"]


def test_an_error_stands_beside_its_field_and_launch_is_off(app, empty_store, said):
    at = app(empty_store, "new_run")
    field(at, "agents.0.name").set_value("Not A Name").run()
    assert "Not A Name" in said(at) and at.button(key="launch").disabled
    assert not at.exception
    field(at, "agents.0.name").set_value("qwen2").run()
    assert "used twice" in said(at)


def test_bounds_and_units_come_from_the_config(app, empty_store):
    at = app(empty_store, "new_run")
    assert field(at, "grpo.num_generations").min == 2
    assert field(at, "vote.min_share").max == 1
    assert "tokens" in field(at, "grpo.max_completion_length").label


def test_a_switch_that_may_be_left_open_has_a_third_choice(app, empty_store):
    at = app(empty_store, "new_run")
    switch = field(at, "grpo.torch_compile")
    assert switch.options == ["Where it pays", "Yes", "No"] and switch.value is None
    for index, value in [(1, True), (2, False), (0, None)]:
        field(at, "grpo.torch_compile").select_index(index).run()
        assert at.code[0].value == "python -m corl_core launch demo" + f" --set grpo.torch_compile={value}" * (value is not None)
        assert shown_yaml(at)["grpo"].get("torch_compile") is value


def test_supervised_training_has_no_vote_fields_and_no_arrows(app, empty_store, charts):
    at = app(empty_store, "new_run")
    field(at, "method").select("ground_truth").run()
    assert not charts(at)["ring"]["layout"]["annotations"]
    assert not [widget for widget in at.number_input if widget.key.endswith("vote.min_share")]


def test_without_votes_the_ring_says_what_rewards_an_agent(app, empty_store, said):
    at = app(empty_store, "new_run")
    field(at, "method").select("rent").run()
    assert "No votes are exchanged: each agent is rewarded by low entropy of the agent's tokens." in said(at).replace("\\", "")


def test_launch_starts_one_run_of_exactly_this_config_and_opens_it(app, empty_store, launches):
    at = app(empty_store, "new_run")
    field(at, "grpo.max_steps").set_value(7).run()
    at.button(key="launch").click().run()
    assert [config.grpo.max_steps for config in launches] == [7]
    assert at.title[0].value == "demo" and not at.exception


def clicks_at_once(token: str, config: RunConfig) -> set[str]:
    """The ids that eight clicks on one form get, all let go in the same moment."""
    from pages.components import actions

    start = Barrier(8)

    def click(_) -> str:
        start.wait(20)
        return actions.launch_once(token, config)

    with ThreadPoolExecutor(8) as clicks:
        return set(clicks.map(click, range(8)))


def test_clicks_at_once_on_one_form_start_one_run(empty_store, launches, monkeypatch):
    monkeypatch.setenv("CORL_RUNS", str(empty_store))
    assert clicks_at_once("one form", load_config("demo")) == {run.id for run in all_runs(empty_store)}
    assert len(launches) == 1
    clicks_at_once("another form", load_config("demo"))
    assert len(launches) == 2


@pytest.mark.training
def test_clicks_at_once_really_start_one_process_and_one_run(tmp_path, small_run, monkeypatch, wait_for):
    monkeypatch.setenv("CORL_RUNS", str(tmp_path))
    ids = clicks_at_once("a real form", small_run("ground_truth", grpo__max_steps=1))
    (run,) = all_runs(tmp_path)
    try:
        assert ids == {run.id}
        children = [each for each in psutil.Process().children() if each.status() != psutil.STATUS_ZOMBIE]
        wait_for(lambda: all(each.cmdline() for each in children), "command lines, which a program has not at once")
        assert sum(str(tmp_path) in " ".join(each.cmdline()) for each in children) == 1
    finally:
        wait_for(lambda: run.status().final, "the run to end")
    assert run.status().state == "finished" and len(all_runs(tmp_path)) == 1


def test_a_launch_that_fails_says_why_on_the_page(app, empty_store, monkeypatch):
    from corl_core.runs import launch as launcher

    def full(*_):
        raise launcher.LaunchError("less than 200 MB free")

    monkeypatch.setattr(launcher, "launch", full)
    at = app(empty_store, "new_run")
    at.button(key="launch").click().run()
    assert at.error[0].value == "Less than 200 MB free" and not at.exception


def test_a_run_is_a_template_for_another(app, finished_store):
    run_id = next(path.name for path in finished_store.iterdir() if "ttrl" in path.name)
    at = app(finished_store, "new_run", **{"from": run_id})
    assert field(at, "name").value == "demo-ttrl" and field(at, "method").value == "ttrl"


def test_a_pasted_answer_shows_its_key_and_two_are_compared(app, empty_store, said):
    at = app(empty_store, "new_run")
    at.text_input(key="answer_a").set_value("so \\boxed{\\dfrac{1}{2}}").run()
    assert "answer   0.5\nkey      1/2\noutcome  parsed (read)" in said(at)
    at.text_input(key="answer_b").set_value("50/100").run()
    assert "One answer" in said(at) and not at.exception
    at.text_input(key="answer_b").set_value("\\boxed{").run()
    assert "outcome  unclosed" in said(at) and "No answer equals nothing" in said(at)


def test_a_pasted_answer_is_text_and_never_html(app, empty_store):
    at = app(empty_store, "new_run")
    at.text_input(key="answer_a").set_value("<img src=x onerror=alert(1)>").run()
    shown = [element.value for element in at.code if "<img" in element.value]
    assert len(shown) == 1 and not at.exception
    assert not any(element.proto.allow_html for element in at.markdown if "<img" in element.value)


@pytest.mark.parametrize(
    ("method", "own", "votes", "arrows", "loops"),
    [
        ("intuitor", (), False, 0, 0),
        ("rent", ("signal.no_answer_reward",), False, 0, 0),
        ("co_rewarding_2", ("signal.alpha_start", "signal.alpha_end"), True, 0, 3),
        ("random", ("signal.random_frac",), False, 0, 0),
        ("corl", (), True, 3, 0),
    ],
)
def test_a_method_shows_the_fields_that_it_uses_and_no_others(method, own, votes, arrows, loops, app, empty_store, charts):
    at = app(empty_store, "new_run")
    field(at, "method").select(method).run()
    widgets = [*at.number_input, *at.selectbox, *at.text_input]
    shown = {path for widget in widgets if widget.key and (path := widget.key.partition(".")[2]).startswith(("signal.", "vote."))}
    assert shown == {*own, *(("vote.tie", "vote.min_share", "vote.num_votes") if votes else ())}
    ring = charts(at)["ring"]["layout"]
    assert (len(ring["annotations"]), len(ring["shapes"])) == (arrows, loops)
    assert shown_yaml(at)["method"] == method and not at.exception


def test_a_weighted_sum_takes_signals_and_their_weights(app, empty_store):
    at = app(empty_store, "new_run")
    field(at, "method").select("weighted").run()
    assert shown_yaml(at)["signal"]["weights"] == {"corl": 1.0, "format": 0.1}
    field(at, "signal.weights.format").set_value(0.5).run()
    next(w for w in at.multiselect if w.key.endswith(".signals")).set_value(["corl", "format", "rent"]).run()
    assert shown_yaml(at)["signal"]["weights"] == {"corl": 1.0, "format": 0.5, "rent": 1.0}
    field(at, "method").select("ttrl").run()
    assert "signal" not in shown_yaml(at) and not at.button(key="launch").disabled


def test_what_only_the_old_method_had_is_forgotten(app, empty_store):
    at = app(empty_store, "new_run")
    field(at, "vote.num_votes").set_value(16).run()
    field(at, "eval.checkpoint").select("peer_agreement").run()
    assert shown_yaml(at)["vote"]["num_votes"] == 16
    field(at, "method").select("intuitor").run()
    assert "vote" not in shown_yaml(at) and "checkpoint" not in shown_yaml(at)["eval"]
    assert not at.button(key="launch").disabled


def test_an_agent_s_own_settings_are_behind_a_switch_and_reach_the_yaml(app, empty_store, said):
    at = app(empty_store, "new_run")
    assert not [widget for widget in at.number_input if widget.key.endswith("agents.1.temperature")]
    field(at, "agents.1.more").set_value(True).run()
    field(at, "agents.1.temperature").set_value(0.5).run()
    field(at, "agents.1.prompt_template").set_value("Q: {question}").run()
    field(at, "agents.1.chat_template").select("never").run()
    assert not at.exception
    own = shown_yaml(at)["agents"][1]
    assert (own["temperature"], own["prompt_template"], own["chat_template"]) == (0.5, "Q: {question}", "never")
    assert "temperature" not in shown_yaml(at)["agents"][0]
    field(at, "agents.1.prompt_template").set_value("no question").run()
    assert "has no" in said(at) and at.button(key="launch").disabled and not at.exception
    field(at, "agents.1.prompt_template").set_value("").run()
    assert "prompt_template" not in shown_yaml(at)["agents"][1]


def test_adapters_are_switched_on_with_their_defaults_and_an_added_agent_has_its_own(app, empty_store):
    at = app(empty_store, "new_run")
    field(at, "agents.2.more").set_value(True).run()
    field(at, "agents.2.lora").set_value(True).run()
    field(at, "agents.2.lora.r").set_value(4).run()
    field(at, "agents.2.lora.target_modules").set_value("q_proj, v_proj").run()
    assert shown_yaml(at)["agents"][2]["lora"] == {"r": 4, "target_modules": ["q_proj", "v_proj"]}
    at.button(key="add_agent").click().run()
    field(at, "agents.3.lora.r").set_value(8).run()
    assert [agent["lora"]["r"] for agent in shown_yaml(at)["agents"][2:]] == [4, 8]
    field(at, "agents.2.lora").set_value(False).run()
    assert "lora" not in shown_yaml(at)["agents"][2] and not at.exception


def test_a_preset_with_real_models_fills_in_the_form_and_downloads_nothing(app, empty_store):
    at = app(empty_store, "new_run")
    at.selectbox(key="preset").select("small-1.5b-pair-lora").run()
    assert not at.exception
    assert "python -m corl_core launch small-1.5b-pair-lora" in [code.value for code in at.code]
    assert field(at, "agents.0.lora.r").value == 16 and field(at, "agents.0.dtype").value == "bfloat16"


def test_a_name_used_twice_is_told_together_with_other_errors(app, empty_store, said):
    at = app(empty_store, "new_run")
    first = field(at, "agents.0.name").value
    field(at, "agents.1.name").set_value(first)
    field(at, "agents.2.name").set_value("Not A Name").run()
    assert "used twice" in said(at) and said(at).count(":material/error:") == 2  # and what a name may hold
    field(at, "agents.2.name").set_value("third").run()
    assert said(at).count("used twice") == 1 and at.button(key="launch").disabled
