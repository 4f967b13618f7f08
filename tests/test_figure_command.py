"""`figure` and `bundle`: the command that makes a file again, what it refuses, and what it writes from a store."""

import io
import json
import shlex

import pandas as pd
import pytest

from corl_core.cli import main, parser
from corl_core.config import RunConfig
from corl_core.figures.errors import FigureError
from corl_core.figures.paper import catalogue
from corl_core.figures.paper.dynamics import Choice
from corl_core.figures.paper.recipe import Recipe, Source, figure, file_content, file_stem, kind_of


def nothing() -> Source:
    """A run of agents a and b that has logged nothing."""
    columns = ["run_id", "agent", "metric", "step", "value", "time", "attempt"]
    agents = [{"name": "a", "model": "tiny:llama"}, {"name": "b", "model": "tiny:qwen2"}]
    config = RunConfig.model_validate({"name": "demo", "agents": agents})
    return Source(pd.DataFrame(columns=columns), {"r": config}, {"r": 0})


def test_a_command_keeps_only_what_is_not_the_default_and_parses_back():
    recipe = Recipe("4c", ("r 1", "s"), "method", 0.0, members=True, ylim=(0.0, 2.5), venue="icml", width=3.0, dpi=150)
    command = recipe.command("x.pdf")
    assert command == ("python -m corl_core figure 4c 'r 1' s --group method --smooth 0 --members --ylim 0 2.5 --venue icml "
                       "--width 3 --dpi 150 -o x.pdf")  # fmt: skip
    asked = parser().parse_args(shlex.split(command)[3:])
    assert (asked.name, asked.refs, asked.members) == ("4c", ["r 1", "s"], True)
    assert (asked.ylim, asked.smooth, asked.width) == ([0, 2.5], 0, 3)


def test_every_option_of_a_recipe_is_an_option_of_the_command():
    changed = Recipe("2a", ("r",), "none", 0.123456789, "median", "stderr", True, "a", "jaccard", (0.0, 1.0), "acl", "text",
                     2.0, 2.0, 100, "serif", True)  # fmt: skip
    untouched = [field for field, value in vars(Recipe("2a", ("r",))).items() if getattr(changed, field) == value]
    assert untouched == ["figure", "run_ids"]
    asked = vars(parser().parse_args(shlex.split(changed.command("x.svg"))[3:]))
    for field, value in vars(changed).items():
        if field not in ("figure", "run_ids"):
            assert asked[field] == (list(value) if isinstance(value, tuple) else value), field


@pytest.mark.parametrize("limits", [(-0.5, 1.0), (1e-7, 1.0)])
def test_a_range_below_zero_survives_the_command_line(limits):
    asked = parser().parse_args(shlex.split(Recipe("4c", ("r",), ylim=limits).command("x.pdf"))[3:])
    assert tuple(asked.ylim) == limits


@pytest.mark.parametrize("name", catalogue.CATALOGUE)
def test_every_figure_has_a_title_keys_and_a_safe_file_name(name):
    entry = catalogue.find(name)
    assert entry.title and catalogue.keys([name], Choice())
    assert set(file_stem(name)) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")


@pytest.mark.parametrize(
    ("recipe", "rule"),
    [
        (Recipe("9z", ("r",)), "choose one of 2a"),
        (Recipe("2a", ("r",), smooth=1.0), "smooth=1 is outside"),
        (Recipe("2d", ("r",), overlap="cosine"), "kappa, jaccard"),
        (Recipe("2a", ("r",), center="mode"), "mean, median, iqm"),
        (Recipe("2a", ("r",), agent="z"), "choose one of a, b"),
        (Recipe("table", ("r",)), "no drawing"),
    ],
)
def test_what_cannot_be_drawn_is_refused_with_the_rule(recipe, rule):
    with pytest.raises(FigureError, match=rule):
        figure(recipe, nothing())


def test_a_suffix_that_is_none_names_those_there_are():
    assert kind_of("a.b.PDF", "2a") == "pdf"
    for name in ("x", "x.docx", "pdf"):
        with pytest.raises(FigureError, match=r"\.png, \.svg, \.pdf"):
            kind_of(name, "2a")
    with pytest.raises(FigureError, match=r"one of \.tex, \.csv"):
        kind_of("x.pdf", "table")


def test_runs_without_values_are_told_and_no_empty_file_is_made():
    with pytest.raises(FigureError, match="no values of agreement"):
        file_content(Recipe("2a", ("r",)), nothing(), "x.pdf")


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    from tests.pages.made_runs import make_run, run_config

    runs_dir = tmp_path_factory.mktemp("figures")
    for seed in range(2):
        make_run(runs_dir, run_config(seed=seed), number=seed)
    make_run(runs_dir, run_config("ttrl", "ttrl"), number=2)
    return runs_dir


def test_the_command_draws_from_the_store_and_its_csv_is_the_history(store, tmp_path, capsys):
    from corl_core.tracking.reader import history
    from corl_core.tracking.store import tracking_uri

    out = tmp_path / "a.csv"
    assert main(["figure", "2c", "ttrl", "-o", str(out), "--runs", str(store), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    (run_id,) = told["runs"]
    drawn = pd.read_csv(out, comment="#")
    logged = history(tracking_uri(store), [run_id], ["eval/accuracy"]).groupby("step")["value"].mean()
    assert drawn.x.tolist() == logged.index.tolist() and drawn.y.tolist() == pytest.approx(logged.tolist(), abs=1e-12)
    assert told["command"] == f"python -m corl_core figure 2c {run_id} -o a.csv"
    again = tmp_path / "again" / "a.csv"
    again.parent.mkdir()
    words = shlex.split(told["command"])[3:-1]
    assert main([*words, str(again), "--runs", str(store)]) == 0
    assert again.read_bytes() == out.read_bytes()


def test_seeds_are_one_line_and_every_run_once(store, tmp_path):
    out = tmp_path / "a.svg"
    runs = sorted(path.name for path in store.glob("2*"))
    assert main(["figure", "2a", *runs, runs[0], "-o", str(out), "--runs", str(store), "--venue", "icml"]) == 0
    text = out.read_text()
    assert "demo (N=2)" in text and ">ttrl<" in text and text.count(f"{runs[0]}</rdf:li>") == 1


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (["figure"], "NAME is missing"),
        (["figure", "2a"], "RUN is missing"),
        (["figure", "2a", "ttrl"], "-o FILE is missing"),
        (["figure", "2a", "ttrl", "-o", "/nowhere/at/all/x.pdf"], "does not exist"),
        (["figure", "2a", "ttrl", "-o", "x.doc"], "no known suffix"),
        (["figure", "2d", "ttrl", "-o", "x.pdf"], "nothing to draw"),
        (["figure", "2a", "nobody", "-o", "x.pdf"], "no run 'nobody'"),
        (["figure", "2a", "ttrl", "-o", "x.pdf", "--width", "99"], "1 to 20 inches"),
        (["bundle", "ttrl", "-o", "x.tar"], "does not end in .zip"),
        (["bundle", "ttrl", "-o", "x.zip", "--questions", "-1"], "outside 0 to 500"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(store, tmp_path, monkeypatch, capsys, arguments, rule):
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "--runs", str(store)]) == 2
    assert rule in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_the_list_names_every_figure(capsys, tmp_path):
    assert main(["figure", "--list", "--runs", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert all(f"{entry.name}" in shown and entry.title in shown for entry in catalogue.CATALOGUE.values())


def test_a_store_that_is_not_there_yet_is_told(tmp_path, capsys):
    from tests.pages.made_runs import make_run, run_config

    run = make_run(tmp_path, run_config(), logged=False)
    assert main(["figure", "2a", run.id, "-o", str(tmp_path / "x.pdf"), "--runs", str(tmp_path)]) == 2
    assert "error:" in capsys.readouterr().err


def test_the_results_table_is_written_as_latex_and_csv(store, tmp_path):
    runs = sorted(path.name for path in store.glob("2*"))
    for kind in ("tex", "csv"):
        assert main(["figure", "table", *runs, "-o", str(tmp_path / f"t.{kind}"), "--runs", str(store)]) == 0
    tex = (tmp_path / "t.tex").read_text()
    assert r"demo & 2 & " in tex and r"$\pm$" in tex and r"\textbf" in tex
    read = pd.read_csv(io.BytesIO((tmp_path / "t.csv").read_bytes()), comment="#")
    assert read.run.tolist() == ["demo", "ttrl"] and read.n.tolist() == [2, 1]
    assert read.final_std.notna().tolist() == [True, False]
