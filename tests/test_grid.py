"""Ablation grids: cells, impossible ones, what covers them, and queueing the rest."""

import json
import shutil
from dataclasses import replace

import pytest

from corl_core.cli import main
from corl_core.config import load_config
from corl_core.config_errors import ConfigError
from corl_core.runs import grid as grids
from corl_core.runs import grid_runs, launch, queue, queue_dispatch
from corl_core.runs.folder import Run, all_runs, read_status, write_status
from corl_core.runs.headline import TAIL_BYTES, last_accuracy
from corl_core.runs.journal import Journal

BASE = load_config("demo-pair")


def made(*vary: str, base=BASE, name: str = "") -> grids.Grid:
    return grids.make(base, grids.parse_axes(vary), name)


def ended(config, runs_dir, state: str = "finished", accuracies: tuple[float, ...] = ()) -> Run:
    """A run that came to its end, with one evaluation of each agent."""
    run = launch.create(config, runs_dir)
    write_status(run.path, replace(read_status(run.path), state=state))
    for agent, accuracy in zip(config.agents, accuracies, strict=False):
        Journal(run.journal_paths()[agent.name]).write("eval", step=4, metrics={"eval/accuracy": accuracy})
    return run


def states(grid: grids.Grid, runs_dir) -> list[str]:
    return [one.state for one in grid_runs.coverage(grid, grid_runs.seen_in(runs_dir))]


@pytest.fixture(autouse=True)
def _asleep(monkeypatch):
    """No test brings a dispatcher up."""
    monkeypatch.setattr(queue_dispatch, "wake", lambda runs_dir: None)


def test_the_cells_are_every_combination_and_the_last_key_moves_fastest():
    cells = grids.cells(made("method=corl,ttrl", "seed=0,1", "grpo.num_generations=4,8"))
    found = [(cell.config.method, cell.config.seed, cell.config.grpo.num_generations) for cell in cells]
    assert found == [(method, seed, k) for method in ("corl", "ttrl") for seed in (0, 1) for k in (4, 8)]
    assert cells[-1].config.name == "demo-pair method=ttrl num_generations=8"
    assert cells[0].config.grpo.max_steps == BASE.grpo.max_steps


def test_values_are_read_as_after_set():
    assert grids.parse_axis("grpo.learning_rate=1.0e-4, 2.0e-4") == ("grpo.learning_rate", [1e-4, 2e-4])
    assert grids.parse_axis("data.eval=null,'a, b.jsonl'") == ("data.eval", [None, "a, b.jsonl"])
    assert grids.parse_axis("ring=[a, b],[b, a]") == ("ring", [["a", "b"], ["b", "a"]])
    assert grids.cells(made("grpo.learning_rate=1e-4"))[0].config.grpo.learning_rate == 1e-4


@pytest.mark.parametrize(
    ("vary", "message"),
    [
        (["seed"], "expected key=value,value"),
        (["=1,2"], "expected key=value,value"),
        (["seed="], "seed: no values; give some"),
        (["seed=1,2,1"], "seed: the value 1 stands there twice"),
        (["seed=[1"], "not a list of YAML values"),
        (["seed=!!python/object:os.system 1"], "not a list of YAML values"),
        (["notes=[&a [x], *a]"], "aliases"),
        (["notes=2020-01-01"], "not a list of YAML values"),
        (["seed=0,1", "seed=2"], "seed: the key is varied twice"),
        (["seed=" + ",".join(map(str, range(501)))], "501 cells; a grid has at most 500"),
        (["seed=" + "1" * 5000], "5,000 characters of values"),
        ([], "at least one key that varies"),
    ],
)
def test_a_bad_axis_says_what_is_wrong(vary, message):
    with pytest.raises(ConfigError, match=message):
        made(*vary)


def test_a_cohort_is_a_presets_agents_and_ring():
    pair, three = grids.cells(made("cohort=demo-pair,demo"))
    assert [len(cell.config.agents) for cell in (pair, three)] == [2, 3]
    assert three.config.grpo == BASE.grpo


def test_what_only_another_method_has_goes_where_the_method_varies():
    base = load_config("demo-pair", ["ring=[qwen2, llama]", "vote.num_votes=16"])
    corl, ttrl, truth = grids.cells(made("method=corl,ttrl,ground_truth", base=base))
    assert (corl.config.ring, ttrl.config.ring, truth.config.ring) == (["qwen2", "llama"], None, None)
    assert (corl.config.num_votes, ttrl.config.num_votes, truth.config.vote.num_votes) == (16, 16, None)


def test_an_impossible_cell_says_which_and_why():
    alone = load_config("demo-ttrl", ["agents=[{name: a, model: 'tiny:llama'}]"])
    corl, ttrl = grids.cells(made("method=corl,ttrl", base=alone))
    assert corl.config is None and corl.problem.startswith("method=corl: ") and "needs at least 2 agents" in corl.problem
    assert ttrl.config is not None
    (cell,) = grids.cells(made("grpo.num_generation=4"))
    assert "did you mean 'num_generations'?" in cell.problem


def test_a_cell_is_covered_by_its_configuration_whatever_the_run_is_called(tmp_path):
    grid = made("method=corl,ttrl", "seed=0,1")
    ended(load_config("demo-pair", ["name=another", "notes=mine", "preset=null"]), tmp_path, accuracies=(0.8, 0.9))
    assert states(grid, tmp_path) == ["finished", "missing", "missing", "missing"]
    first = grid_runs.coverage(grid, grid_runs.seen_in(tmp_path))[0]
    assert first.accuracy == pytest.approx(0.85) and first.run.config.name == "another"
    assert states(made("grpo.max_steps=1"), tmp_path) == ["missing"]


def test_the_best_run_of_a_cell_stands_for_it(tmp_path):
    grid = made("seed=0")
    ended(BASE, tmp_path, "failed")
    assert states(grid, tmp_path) == ["failed"]
    finished = ended(BASE, tmp_path)
    ended(BASE, tmp_path, "stopped")
    (one,) = grid_runs.coverage(grid, grid_runs.seen_in(tmp_path))
    assert (one.state, one.run) == ("finished", finished)


def test_queueing_skips_what_is_finished_under_way_or_waiting(tmp_path):
    grid = made("method=corl,ttrl", "seed=0,1")
    ended(grids.cells(grid)[0].config, tmp_path)
    ended(grids.cells(grid)[1].config, tmp_path, "failed")
    runs = grid_runs.enqueue(grid, tmp_path, priority=4)
    assert [run.config.method for run in runs] == ["corl", "ttrl", "ttrl"]
    assert states(grid, tmp_path) == ["finished", "queued", "queued", "queued"]
    assert [waits.run for waits in queue.waiting(tmp_path)] == runs and queue.read_entry(runs[0]).priority == 4
    assert json.loads((runs[1].path / "grid.json").read_text()) == {"grid": grid.name, "values": {"method": "ttrl", "seed": 0}}
    assert grid_runs.enqueue(grid, tmp_path) == []


def test_nothing_is_queued_when_one_cell_is_impossible_unless_it_is_to_be_skipped(tmp_path):
    grid = made("method=corl,ground_truth", "vote.num_votes=8,16")
    with pytest.raises(ConfigError, match=r"2 of 4 cells are impossible, nothing was queued: method=ground_truth"):
        grid_runs.enqueue(grid, tmp_path)
    assert all_runs(tmp_path) == [] and grid_runs.all_grids(tmp_path) == []
    assert len(grid_runs.enqueue(grid, tmp_path, skip_impossible=True)) == 2
    assert states(grid, tmp_path) == ["queued", "queued", "impossible", "impossible"]


def test_data_that_a_run_would_be_refused_for_is_told_before_anything_is_queued(tmp_path):
    (tmp_path / "q.jsonl").write_text('{"question": "1+1?"}\n')
    grid = made(f"data.train=arithmetic,{tmp_path / 'q.jsonl'}", base=load_config("demo-ground-truth"))
    with pytest.raises(ConfigError, match="1 of 2 cells are impossible, nothing was queued"):
        grid_runs.enqueue(grid, tmp_path)
    assert all_runs(tmp_path) == []


def test_a_deleted_run_leaves_its_cell_missing_and_the_grid_is_found_by_name(tmp_path):
    grid = made("seed=0,1", name="Seeds <b>")
    runs = grid_runs.enqueue(grid, tmp_path)
    shutil.rmtree(runs[0].path)
    assert [path.name for path in (tmp_path / "grids").iterdir()] == ["seeds-b.json"]
    assert grid_runs.find_grid(tmp_path, "Seeds <b>") == grid
    assert states(grid, tmp_path) == ["missing", "queued"]
    with pytest.raises(ConfigError, match="no grid 'x'"):
        grid_runs.find_grid(tmp_path, "x")
    with pytest.raises(ConfigError, match="too like 'Seeds <b>'"):
        grid_runs.save(made("seed=5", name="seeds b"), tmp_path)
    (tmp_path / "grids" / "bad.json").write_text('{"name": 3}')
    assert grid_runs.all_grids(tmp_path) == [grid]


def test_a_matrix_has_seeds_from_left_to_right_else_the_last_key():
    grid = made("seed=0,1", "method=corl,ttrl")
    rows = grids.matrix(grid, list("abcd"))  # seed 0: a corl, b ttrl; seed 1: c corl, d ttrl
    assert rows == [({"method": "corl"}, ["a", "c"]), ({"method": "ttrl"}, ["b", "d"])]
    assert grids.matrix(made("method=corl,ttrl"), ["a", "b"]) == [({}, ["a", "b"])]


def test_the_last_accuracy_is_the_latest_attempts_and_the_mean_over_agents(tmp_path):
    run = launch.create(BASE, tmp_path)
    assert last_accuracy(run) is None
    for place, agent in enumerate(("llama", "qwen2")):
        journal = Journal(run.journal_paths()[agent])
        journal.write("eval", step=0, metrics={"eval/accuracy": 0.2})
        journal.write("eval", step=4, metrics={"eval/accuracy": 0.9})
        journal.write("attempt", step=2)  # it goes on from step 2: the evaluation at 4 no longer counts
        assert last_accuracy(run) == (None, pytest.approx(0.2))[place]
    long = "x" * (TAIL_BYTES + 10)
    for agent, accuracy in (("llama", 0.5), ("qwen2", 0.7)):
        journal = Journal(run.journal_paths()[agent])
        journal.write("eval", step=4, metrics={"eval/accuracy": accuracy})
        journal.write("step", step=4, votes=[long])
    assert last_accuracy(run) == pytest.approx(0.6)


def test_without_true_answers_there_is_no_headline(tmp_path):
    run = launch.create(BASE, tmp_path)
    for agent in ("llama", "qwen2"):
        Journal(run.journal_paths()[agent]).write("eval", step=0, metrics={"eval/agreement": 1.0})
    assert last_accuracy(run) is None


def test_the_cost_counts_every_completion_that_is_sampled():
    config = load_config("demo-pair", ["grpo.max_steps=10", "grpo.questions_per_step=4", "vote.num_votes=16"])
    assert grids.completions(config) == 2 * 10 * 4 * 16


def grid_command(runs_dir, capsys, *arguments: str) -> str:
    assert main(["grid", *arguments, "--runs", str(runs_dir)]) == 0
    return capsys.readouterr().out


def test_the_command_shows_coverage_queues_and_finds_the_grid_again(tmp_path, capsys):
    asked = ("demo-pair", "--vary", "method=corl,ttrl", "--vary", "seed=0,1", "--name", "mine")
    ended(load_config("demo-pair"), tmp_path, accuracies=(0.9, 1.0))
    out = grid_command(tmp_path, capsys, *asked)
    assert out.splitlines() == [
        "grid 'mine': 4 cells: 1 finished, 3 missing",
        "method  seed=0          seed=1",
        "corl    finished 0.950  missing",
        "ttrl    missing         missing",
    ]
    assert len(all_runs(tmp_path)) == 1  # looking queues nothing
    assert "queued 3 runs" in grid_command(tmp_path, capsys, *asked, "--queue")
    report = json.loads(grid_command(tmp_path, capsys, "mine", "--json"))
    assert [cell["state"] for cell in report["cells"]] == ["finished", "queued", "queued", "queued"]
    assert report["cells"][0]["accuracy"] == pytest.approx(0.95) and report["queued"] == []
    assert grid_command(tmp_path, capsys).splitlines() == ["mine: 4 cells, method, seed"]


def test_two_clicks_at_once_queue_each_cell_once(tmp_path):
    import threading

    grid = made("seed=0,1,2")
    threads = [threading.Thread(target=grid_runs.enqueue, args=(grid, tmp_path)) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert sorted(run.config.seed for run in all_runs(tmp_path)) == [0, 1, 2]

