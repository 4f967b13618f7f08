"""Compare page: seeds grouped, differences of config, links, and what is missing."""

import pytest


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
    assert len(drawn) == 4


def test_each_run_alone_when_asked(app, finished_store, charts):
    at = app(finished_store, "compare", runs=",".join(ids(finished_store)[:4]), group="Each run")
    assert legend(charts(at)["compare.agreement"]) == [
        "demo, seed 0", "demo, seed 1", "demo, seed 2", "demo-ttrl",
    ]  # fmt: skip


def test_the_table_has_first_and_last_values_with_their_spread(app, finished_store):
    at = app(finished_store, "compare", runs=",".join(ids(finished_store)[:4]))
    table = at.dataframe[0].value
    assert table.N.tolist() == [3, 1]
    assert table.Accuracy[0].count("±") == 2 and "±" not in table.Accuracy[1]


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
