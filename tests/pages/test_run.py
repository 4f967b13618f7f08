"""Run page: curves, state with its reason, logs, and runs that are missing or just begun."""

HEADLINES = ["curve.pseudo_label", "curve.agreement", "curve.overlap", "curve.reward_std"]


def ids(store, name: str) -> list[str]:
    return sorted(path.name for path in store.iterdir() if name in path.name)


def test_no_run_yet_points_to_new_run(app, empty_store, said):
    at = app(empty_store, "run")
    assert "no run yet" in said(at) and at.page_link and not at.exception


def test_a_finished_run_has_accuracy_and_the_four_headline_curves(app, finished_store, charts):
    at = app(finished_store, "run", run=ids(finished_store, "demo-0000")[0])
    drawn = charts(at)
    assert not at.exception and not at.error
    assert list(drawn) == ["curve.accuracy", *HEADLINES, "run.ring"]
    names = [trace["name"] for trace in drawn["curve.accuracy"]["data"]]
    assert names[:2] == ["llama", "llama, majority"] and len(names) == 6
    lines = [trace for trace in drawn["curve.agreement"]["data"] if trace.get("name")]
    assert [len(trace["x"]) for trace in lines] == [20, 20, 20, 20]  # the mean and three pairs
    assert at.progress[0].value == 100


def test_every_chart_has_its_four_downloads_and_an_explanation(app, finished_store, charts):
    at = app(finished_store, "run")
    assert not [button for button in at.get("download_button") if button.key.startswith("curve.")]  # until they are asked for
    at.session_state["curve.agreement.export"] = True
    keys = {button.key for button in at.run().get("download_button") if button.key.startswith("curve.")}
    assert keys == {f"curve.agreement.{kind}" for kind in ("png", "svg", "pdf", "csv")}
    assert all(chart["alt"] for chart in charts(at).values())


def test_the_choice_of_error_overlap_changes_the_curve(app, finished_store, charts):
    at = app(finished_store, "run")
    at.button_group(key="overlap").set_value("jaccard").run()
    title = charts(at)["curve.overlap"]["layout"]["yaxis"]["title"]["text"]
    assert title == "Error overlap: Jaccard"


def test_a_failed_run_says_why(app, finished_store, said):
    at = app(finished_store, "run", run=ids(finished_store, "demo-0004")[0])
    assert "Agent qwen2 died in round 4" in said(at)


def test_a_run_under_way_shows_its_steps_and_can_be_stopped(app, partial_store, said):
    run_id = ids(partial_store, "demo-000a")[0]
    at = app(partial_store, "run", run=run_id)
    assert at.progress[0].text.startswith("Step 8 of 20, ")
    at.button(key="run_stop").click().run()
    at.button(key="confirm_stop").click().run()
    assert (partial_store / run_id / "stop").exists() and not at.exception
    (partial_store / run_id / "stop").unlink()


def test_a_run_that_has_just_begun_waits_without_charts(app, partial_store, charts, said):
    at = app(partial_store, "run", run=ids(partial_store, "fresh")[0])
    assert not charts(at) and "as soon as the first step is done" in said(at)
    assert not at.exception and not at.error


def test_an_unknown_run_is_named_in_one_sentence(app, finished_store, said):
    at = app(finished_store, "run", run="nobody")
    assert "nobody" in at.error[0].value and not at.exception


def test_a_metrics_store_that_cannot_be_read_is_no_lack_of_ground_truth(app, tmp_path, make_finished, said):
    make_finished(tmp_path, logged=False)
    (tmp_path / "mlflow.db").write_bytes(b"not a database " * 100)
    text = said(app(tmp_path, "run"))
    assert "can't be read" in text.replace("\\", "") and "the metrics can't be read; the note above says why" in text
    assert "needs ground truth" not in text


def test_logs_of_each_agent_and_of_the_supervisor(app, finished_store):
    at = app(finished_store, "run")
    assert [tab.label for tab in at.tabs] == ["llama", "qwen2", r"gpt\_neox", "supervisor"]
    assert "llama step" in at.tabs[0].code[0].value


def test_a_log_ends_with_its_newest_lines_and_more_are_a_click_away(app, tmp_path, make_finished):
    run = make_finished(tmp_path)
    written = [f"line {number} " + "x" * 400 for number in range(300)]
    (run.agent_path("llama") / "log.txt").write_text("\n".join(written) + "\n")
    at = app(tmp_path, "run")
    assert at.tabs[0].code[0].value.split("\n") == written[-14:]
    at.toggle(key="log_more").set_value(True).run()
    shown = at.tabs[0].code[0].value.split("\n")
    assert shown == written[-len(shown) :] and 150 < len(shown) <= 200  # no torn line; as many as LOG_BYTES hold


def test_a_log_shorter_than_its_box_is_shown_whole():
    from pages.components.live import LOG_BYTES, whole_lines

    assert whole_lines("a\nb\n", 14) == "a\nb" and whole_lines("", 14) == ""
    assert whole_lines("x" * LOG_BYTES + "\nb\n", 14) == "b"
    assert whole_lines("x" * LOG_BYTES, 14) == "x" * LOG_BYTES


def test_a_link_that_names_no_known_choice_shows_the_default(app, finished_store, charts):
    at = app(finished_store, "run", overlap="nonsense", smooth="nonsense")
    assert not at.exception and "overlap" in charts(at)["curve.overlap"]["layout"]["yaxis"]["title"]["text"].lower()


def test_names_are_text_whatever_they_hold(app, tmp_path, make_finished, charts):
    make_finished(tmp_path, name="<b>$x$</b> [a](http://b)")
    at = app(tmp_path, "run")
    assert at.title[0].value == r"\<b\>\$x\$\</b\> \[a\]\(http\://b\)"
    assert "http\\://" in at.title[0].value and not at.exception


def test_delete_asks_first_and_then_removes_the_folder(app, tmp_path, make_finished):
    run = make_finished(tmp_path)
    at = app(tmp_path, "run")
    at.button(key="run_delete").click().run()
    assert run.path.exists()
    at.button(key="confirm_delete").click().run()
    assert not run.path.exists() and not at.exception
