"""Input from a browser, a file or a command line is data: never code, never a path, and never more than fits."""

import csv
import io
import shutil
import time

import pandas as pd
import pytest
from pyarrow import parquet

from corl_core.config import ConfigError, RunConfig, from_values, load_config
from corl_core.figures.export import to_csv
from corl_core.rollouts import groups, index
from corl_core.rollouts.ballots import run_ballots
from corl_core.runs import labels, launch
from corl_core.runs.folder import Run, RunNotFound, all_runs, find_run
from tests.made_rollouts import made_run, small_config
from tests.pages.made_runs import make_run, run_config

LAUGHS = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join(['*' + chr(97 + i)] * 9)}]\n" for i in range(9)
)


@pytest.mark.parametrize(
    "text",
    [LAUGHS, "[" * 900, "a: " + "[" * 900 + "]" * 900, "- " * 500_000, "a: &a\n  b: *a\n", "{a: " * 1500, "x" * 10_000_000,
     "name: !!python/object/apply:os.system ['touch evil']", "name: !!python/name:os.system", "!evil {}",
     "name: " + "x" * 900_000, "k" * 900_000 + ": 1", "<<: &a {<<: *a}", "\0", "name: x\n---\nname: y\n"],
    ids=range(15),
)  # fmt: skip
def test_yaml_that_is_a_bomb_or_has_tags_is_one_short_error_at_once(text):
    started = time.monotonic()
    with pytest.raises(ConfigError) as refused:
        RunConfig.from_yaml(text)
    assert time.monotonic() - started < 2 and len(str(refused.value)) < 1000


def test_ordinary_aliases_still_work():
    text = "name: x\nagents:\n- &one {name: a, model: tiny:llama}\n- {<<: *one, name: b}\n"
    assert [agent.model for agent in RunConfig.from_yaml(text).agents] == ["tiny:llama", "tiny:llama"]


def test_overrides_are_limited_too():
    for value in (LAUGHS.replace("\n", " "), "[" * 500, "!!python/name:os.system", "{b: [1]}"):
        with pytest.raises(ConfigError) as refused:
            load_config("demo", [f"notes={value}"])
        assert len(str(refused.value)) < 1000


FIELDS = ["name", "notes", "method", "preset", "device", "agents.0.name", "agents.0.model", "agents.0.revision",
          "agents.0.school", "data.train", "data.prompt_template",
          "data.system_prompt", "data.question_column", "grpo.loss_type"]  # fmt: skip


@pytest.mark.parametrize("field", FIELDS)
def test_a_field_of_ten_megabytes_is_refused_in_a_short_sentence(field):
    values = run_config().model_dump()
    *parents, last = field.split(".")
    target = values
    for key in parents:
        target = target[int(key)] if isinstance(target, list) else target[key]
    target[last] = "x" * 10_000_000
    with pytest.raises(ConfigError) as refused:
        from_values(values, [], "form")
    assert len(str(refused.value)) < 1000


HOSTILE = ["../../etc/passwd", "/etc/passwd", "<script>alert(1)</script>", "a\0b", "$(touch evil)", "`id`", "; rm -rf /",
           "..", "~root", "con", "-rf", "a/../../b", "\u202egnp.exe", "=1+1", "👩‍🔬" * 20]  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_runs_name_is_never_a_path(tmp_path, name):
    config = RunConfig.model_validate({**run_config().model_dump(), "name": name})
    run = launch.create(config, tmp_path / "runs")
    assert run.path.parent == tmp_path / "runs" and run.id.isascii() and all(c.isalnum() or c == "-" for c in run.id)
    assert Run(run.path).config.name == name and sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


@pytest.mark.parametrize("ref", [*HOSTILE, "", "*", "[a-z]*", "x" * 10_000])
def test_a_reference_finds_known_runs_only(tmp_path, ref):
    make_run(tmp_path / "runs", run_config(), logged=False)
    outside = make_run(tmp_path, run_config("outside"), number=9, logged=False)
    with pytest.raises(RunNotFound):
        find_run(tmp_path / "runs", ref)
    with pytest.raises(RunNotFound):
        find_run(tmp_path / "runs", f"../{outside.id}")


def test_an_agents_name_is_never_a_path(tmp_path):
    run = make_run(tmp_path, run_config(), logged=False)
    for name in HOSTILE:
        with pytest.raises(KeyError):
            run.agent_path(name)


SECRET = "kept-elsewhere"


@pytest.fixture
def baited(tmp_path):
    """A finished run with rollouts, whose own files give way to links to files of the same kind that hold SECRET."""
    draws = [{"step": 0, "id": "q", "question": SECRET, "truth": "1", "a": ("1 1 1 2", "1"), "b": ("1 1 1 2", "1")}]
    run, other = made_run(tmp_path / "runs", draws), made_run(tmp_path / "elsewhere", draws, small_config(notes=SECRET))
    (other.agent_path("a") / "log.txt").write_text(SECRET)
    (other.path / "supervisor.log").write_text(SECRET)
    labels.put(other, SECRET, SECRET, [SECRET])

    def bait(name: str) -> Run:
        own = run.path / name
        own.unlink() if own.is_file() else shutil.rmtree(own, ignore_errors=True)
        own.symlink_to(other.path / name)
        assert own.exists()
        return Run(run.path)

    return bait


def seen(run: Run) -> dict[str, groups.Group]:
    """What the Votes page shows of the question at step 0, by agent."""
    return {group.agent: group for group in groups.read_groups(run, 0, "q")[0]}


@pytest.mark.parametrize("name", ["agents/a/log.txt", "agents/a", "agents", "supervisor.log"])
def test_a_log_that_is_a_link_out_of_the_run_is_not_read(baited, name):
    run = baited(name)
    assert run.log_tail(None if name == "supervisor.log" else "a") == ""


@pytest.mark.parametrize("name", ["agents/a/rollouts/000000-000000.parquet", "agents/a/rollouts", "agents/a", "agents"])
def test_rollouts_that_are_links_out_of_the_run_are_not_read(baited, name):
    run = baited(name)
    assert run.rollout_files("a") == [] and not run_ballots(run.path, ["a"], 4).num_draws and "a" not in seen(run)


def test_an_index_of_rollouts_that_is_a_link_out_of_the_run_is_made_anew(baited, tmp_path):
    (elsewhere,) = all_runs(tmp_path / "elsewhere")
    run_ballots(elsewhere.path, ["a"], 4)
    made = elsewhere.agent_path("a") / "votes.parquet"
    table = parquet.read_table(made)  # of the same shards by name and size, but of other answers
    parquet.write_table(table.set_column(table.column_names.index("truth"), "truth", [["42"]]), made)
    run = baited("agents/a/votes.parquet")
    truth = index.load(run.agent_path("a"), 4).table["truth"].to_pylist()
    assert truth == ["1"] and index.load(elsewhere.agent_path("a"), 4).table["truth"].to_pylist() == ["42"]
    assert not (run.agent_path("a") / "votes.parquet").is_symlink()


def test_a_configuration_that_is_a_link_out_of_the_run_is_one_sentence(baited):
    run = baited("run.yaml")
    assert "leads out of the run's folder" in run.problem and SECRET not in run.problem
    with pytest.raises(ConfigError):
        _ = run.config


def test_labels_that_are_a_link_out_of_the_run_are_none(baited):
    run = baited("labels.json")
    assert labels.labels(run) == labels.Labels()
    assert labels.rename(run, "mine").note == "" and not (run.path / "labels.json").is_symlink()


def test_a_run_whose_folder_is_a_link_is_read_with_all_its_files(baited, tmp_path):
    (real,) = all_runs(tmp_path / "elsewhere")
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / real.id).symlink_to(real.path)
    (real.path / "agents" / "b" / "log.txt").symlink_to(real.agent_path("a") / "log.txt")  # stays within
    (run,) = all_runs(tmp_path / "linked")
    assert run.config.notes == run.log_tail() == run.log_tail("b") == labels.labels(run).note == SECRET
    assert len(run.rollout_files("a")) == 1 and set(seen(run)) == {"a", "b"}
    (tmp_path / "linked" / "etc").symlink_to("/etc")  # no run
    assert all_runs(tmp_path / "linked") == [run]


FORMULAS = ['=HYPERLINK("http://evil")', "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "=cmd|' /C calc'!A0"]


@pytest.mark.parametrize("formula", FORMULAS)
def test_no_export_holds_a_formula(formula):
    text = to_csv(pd.DataFrame({"series": [formula], "x": [1.5]})).decode()
    (_, (cell, _)) = csv.reader(io.StringIO(text, newline=""))
    assert cell.endswith(formula.strip()[-4:]) and not cell.startswith(("=", "+", "-", "@", "\t", "\r"))
