"""Runs page: a first visit, runs in every state, filters, and what can be done with a run."""

import shutil
from dataclasses import replace

from corl_core.runs import labels
from corl_core.runs.folder import Run, Status, read_status, write_status
from pages.components.data import Known


def test_a_first_visit_offers_the_demo_and_one_click_starts_it_and_opens_it(app, empty_store, launches):
    at = app(empty_store)
    assert not at.exception and not at.error
    at.button(key="launch_demo").click().run()
    assert [config.preset for config in launches] == ["demo"]
    assert at.title[0].value == "demo" and not at.exception


def test_every_run_is_listed_with_its_state_and_last_values(app, finished_store):
    at = app(finished_store)
    table = at.dataframe[0].value.set_index("id")
    assert not at.exception and len(table) == 5
    failed = table[table.state.map(lambda state: list(state) == ["failed"])].iloc[0]
    assert "round 4" in failed.reason and failed.progress == 20  # 4 of 20 steps
    done = table[table.method == "TTRL"].iloc[0]
    assert done.progress == 100 and 0 < done.accuracy < 1 and 0 < done.agreement < 1
    assert list(table.cohort.unique()) == ["llama × qwen2 × gpt_neox"]
    assert table.started.str.match(r"\d{4}-\d\d-\d\d \d\d:\d\d \w+").all()


def test_runs_under_way_have_a_card_and_a_broken_folder_is_named(app, partial_store, said):
    at = app(partial_store)
    assert not at.exception and not at.error
    assert [bar.value for bar in at.progress] == [0, 40]  # the newest first; 8 of 20 steps
    assert "broken can't be read" in said(at).replace("\\", "")


def test_filters_narrow_the_table_and_say_when_nothing_is_left(app, finished_store, said):
    at = app(finished_store)
    at.multiselect(key="method").set_value(["ttrl"]).run()
    assert at.dataframe[0].value.name.tolist() == ["demo-ttrl"] and "1 of 5 runs. Tick" in said(at)
    at.text_input(key="name").set_value("nothing is called this").run()
    assert "No run matches" in said(at) and not at.dataframe


def test_one_run_is_counted_as_one(app, finished_store, said, tmp_path):
    run = next(path for path in finished_store.iterdir() if "ttrl" in path.name)
    shutil.copytree(run, tmp_path / run.name)
    assert "1 run. Tick" in said(app(tmp_path))


def test_names_and_tags_that_a_person_gave_are_shown_and_found(app, finished_store):
    run = Run(next(path for path in finished_store.iterdir() if "ttrl" in path.name))
    labels.rename(run, "the one that locked in")
    labels.change_tags(run, ["for the paper"], [])
    at = app(finished_store)
    row = at.dataframe[0].value.set_index("id").loc[run.id]
    assert row["name"] == "the one that locked in" and list(row["tags"]) == ["for the paper"]
    at.text_input(key="name").set_value("for the PAPER").run()
    assert at.dataframe[0].value["id"].tolist() == [run.id]


def test_alarms_are_marked_once_a_kind(app, finished_store):
    run = Run(next(path for path in finished_store.iterdir() if "ttrl" in path.name))
    alarm = {"kind": "label_lock_in", "agent": "llama", "step": 3, "evidence": {}, "text": "Locked in."}
    write_status(run.path, replace(read_status(run.path), alarms=[alarm, alarm | {"agent": "qwen2"}]))
    table = app(finished_store).dataframe[0].value.set_index("id")
    assert len(table.loc[run.id, "alarms"]) == 1 and sum(map(len, table["alarms"])) == 1


def test_who_may_only_read_is_offered_no_stop_and_no_delete(app, finished_store, monkeypatch):
    from pages.components import table

    monkeypatch.setenv("CORL_READ_ONLY", "1")
    assert not app(finished_store).exception
    offered: list[str] = []

    class Bar:
        def button(self, label, **_):
            offered.append(label)
            return False

    run = Known(Run(next(path for path in finished_store.iterdir() if "ttrl" in path.name)), None, Status("finished", 0.0))
    table.action_bar(Bar(), [run], 1, 1)
    assert offered == ["Open", "Compare"]


def test_a_filter_in_the_link_is_applied(app, finished_store):
    at = app(finished_store, state="failed")
    assert len(at.dataframe[0].value) == 1


def test_metrics_that_cannot_be_read_leave_the_runs_listed(app, tmp_path, said, make_finished):
    make_finished(tmp_path, logged=False)
    at = app(tmp_path)
    assert len(at.dataframe[0].value) == 1 and "No metrics yet" in said(at)
    assert not at.exception
