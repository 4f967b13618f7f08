"""Runs page: a first visit, runs in every state, filters, and what can be done with a run."""


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
    assert at.dataframe[0].value.name.tolist() == ["demo-ttrl"]
    at.text_input(key="name").set_value("nothing is called this").run()
    assert "No run matches" in said(at) and not at.dataframe


def test_a_filter_in_the_link_is_applied(app, finished_store):
    at = app(finished_store, state="failed")
    assert len(at.dataframe[0].value) == 1


def test_metrics_that_cannot_be_read_leave_the_runs_listed(app, tmp_path, said, make_finished):
    make_finished(tmp_path, logged=False)
    at = app(tmp_path)
    assert len(at.dataframe[0].value) == 1 and "No metrics yet" in said(at)
    assert not at.exception
