"""Compare page: seeds grouped, differences of config, links, and what is missing."""

import pytest

from pages.components import zoom


def ids(store) -> list[str]:
    return sorted(path.name for path in store.iterdir() if (path / "run.yaml").exists())


def legend(chart: dict) -> list[str]:
    return [trace["name"] for trace in chart["data"] if trace["showlegend"]]


def test_nothing_to_compare_points_to_new_run(app, empty_store, said):
    at = app(empty_store, "compare")
    assert "no run to compare" in said(at) and not at.exception


def test_seeds_of_one_config_are_one_line_with_n(app, finished_store, charts):
    at = app(finished_store, "compare", runs=",".join(ids(finished_store)[:4]))
    drawn = charts(at)
    assert not at.exception and not at.error
    assert legend(drawn["compare.agreement"]) == ["demo (N=3)", "demo-ttrl"]
    assert at.button_group(key="x").proto.wrap  # five x axes are wider than a telephone
    assert len(drawn) == 4


def test_each_run_alone_when_asked(app, finished_store, charts):
    at = app(finished_store, "compare", runs=",".join(ids(finished_store)[:4]), group="Each run")
    assert legend(charts(at)["compare.agreement"]) == [
        "demo, seed 0", "demo, seed 1", "demo, seed 2", "demo-ttrl",
    ]  # fmt: skip


def test_the_table_has_numbers_with_their_spread_for_each_metric_and_group(app, finished_store):
    at = app(finished_store, "compare", runs=",".join(ids(finished_store)[:4]))
    table = at.dataframe[0].value
    assert table.N.tolist() == [3, 1] * 4 and table.Metric.tolist()[:2] == ["Accuracy"] * 2
    assert table["± final"].notna().tolist() == [True, False] * 4 and table.Final.dtype == float


def test_runs_are_grouped_by_a_config_key_or_a_tag_and_without_it_they_are_one_group(app, finished_store, charts):
    runs = ",".join(ids(finished_store)[:4])
    by_method = legend(charts(app(finished_store, "compare", runs=runs, group="method"))["compare.agreement"])
    assert by_method == ["Co-RL (N=3)", "TTRL"]
    by_tag = legend(charts(app(finished_store, "compare", runs=runs, group="tag:corl.preset"))["compare.agreement"])
    assert by_tag == ["corl.preset = undefined (N=4)"]


def test_a_baseline_brings_the_differences_by_seed(app, finished_store, charts, said):
    at = app(finished_store, "compare", runs=",".join(ids(finished_store)[:4]), baseline="demo-ttrl")
    drawn = charts(at)
    assert not at.exception and not at.error and len(drawn) == 8
    assert legend(drawn["compare.agreement.difference"]) == ["demo − demo-ttrl (N=1)"]
    assert "without a partner in demo-ttrl: seed 1, 2" in said(at).replace("\\", "")
    assert at.dataframe[0].value.Pairs.dropna().unique().tolist() == [1]


@pytest.mark.parametrize(("axis", "title"), [("Tokens", "Tokens (sum over agents)"), ("Questions", "Questions seen")])
def test_the_x_axis_of_the_link_is_drawn(app, finished_store, charts, axis, title):
    at = app(finished_store, "compare", runs=ids(finished_store)[0], x=axis)
    assert charts(at)["compare.agreement"]["layout"]["xaxis"]["title"]["text"] == title


def test_the_zoom_of_the_link_reaches_its_chart(app, finished_store, charts):
    at = app(finished_store, "compare", runs=ids(finished_store)[0], zoom="agreement:2,8,,;reward_std:,,0.1,0.4")
    drawn = charts(at)
    assert drawn["compare.agreement"]["zoom"] == {"x": [2, 8], "y": None}
    assert drawn["compare.reward_std"]["zoom"] == {"x": None, "y": [0.1, 0.4]}
    assert not at.warning


def test_the_config_table_opens_on_what_differs(app, finished_store):
    at = app(finished_store, "compare", runs=",".join(ids(finished_store)[2:4]))
    assert set(at.dataframe[1].value.field) == {"name", "method", "seed"}
    at.toggle(key="all").set_value(True).run()
    assert "grpo.learning_rate" in set(at.dataframe[1].value.field)


def test_a_link_with_a_deleted_run_opens_with_a_notice(app, finished_store, said, charts):
    at = app(finished_store, "compare", runs=f"{ids(finished_store)[0]},20200101-gone")
    assert "gone" in said(at) and charts(at) and not at.exception


def test_what_is_picked_is_in_the_url(app, finished_store):
    at = app(finished_store, "compare")
    at.multiselect(key="compare_runs").set_value(ids(finished_store)[:2]).run()
    assert at.query_params["runs"] == ",".join(ids(finished_store)[:2])


def test_a_run_without_metrics_is_compared_with_empty_charts(app, partial_store, said):
    fresh = next(run_id for run_id in ids(partial_store) if "fresh" in run_id)
    at = app(partial_store, "compare", runs=fresh)
    assert not at.exception and not at.error and "No values yet" in said(at)


@pytest.mark.parametrize("value", ["nonsense", ""])
def test_a_bad_value_in_the_link_falls_back(app, finished_store, charts, value):
    at = app(finished_store, "compare", group=value, smooth=value)
    assert not at.exception and charts(at)


def test_what_a_link_asks_for_in_vain_is_told(app, finished_store, said):
    at = app(finished_store, "compare", group="nonsense", x="Moons", zoom="agreement:8,2,,")
    told = said(at).replace("\\", "")
    assert "Group by: the link asks for “nonsense”" in told and "“Moons”" in told and "“agreement:8,2,,”" in told


@pytest.mark.parametrize("text", ["", "1,2,3", "2,1,,", ",,,", "a,b,,", "1,,,", "nan,1,,", "0,inf,,"])
def test_what_is_no_range_is_no_zoom(text):
    assert zoom.parse(text) is None


def test_a_zoom_may_leave_an_axis_whole():
    assert zoom.parse("0.5,1e3,,") == zoom.Box((0.5, 1000.0), None)
    assert zoom.parse(",,-1,1") == zoom.Box(None, (-1.0, 1.0))


def test_a_store_that_cannot_be_read_is_said_with_what_to_do(app, tmp_path, make_finished):
    run = make_finished(tmp_path)
    (tmp_path / "mlflow.db").write_bytes(b"no database" * 400)
    at = app(tmp_path, "compare", runs=run.id)
    (warning,) = [element.value for element in at.warning]
    assert "can't be read" in warning.replace("\\", "") and "sync RUN" in warning and "Nothing is lost" in warning
    assert not at.exception
