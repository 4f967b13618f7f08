"""The share bundle: what is in it, that it opens without a server, and that no name or text in it does any harm."""

import io
import json
import zipfile
from html.parser import HTMLParser
from pathlib import PurePosixPath

import pandas as pd
import pyarrow.parquet as pq
import pytest
import yaml

from corl_core.figures import bundle
from corl_core.figures.bundle import _file_names
from corl_core.figures.bundle_votes import read_votes
from corl_core.figures.errors import FigureError
from corl_core.figures.paper.recipe import Recipe, Source
from corl_core.runs.folder import Run
from corl_core.tracking.reader import history
from corl_core.tracking.store import tracking_uri
from corl_core.training.recorder import ROLLOUT_SCHEMA
from tests.pages.made_runs import make_run, run_config

EVIL = "<script>alert(1)</script>"
FORMULA = "=HYPERLINK(1)"


class Page(HTMLParser):
    """Tags with their attributes, and the text between them."""

    def __init__(self, content: bytes):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(content.decode())

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


def write_rollouts(run: Run, first: int, last: int) -> None:
    """Two questions a step, two rollouts of each; the completion carries what must be escaped."""
    for agent in run.config.agents:
        rows = [
            {"step": step, "agent": agent.name, "question_id": f"q{step}-{question}", "question": f"{EVIL} {step}?",
             "completion": f"{FORMULA} {EVIL}\n\x07\\boxed{{{draw}}}", "answer": str(draw), "key": str(draw), "outcome": "parsed",
             "pseudo_label": None, "reward": float("nan") if draw else 1.0, "truth": "0", "trained": True}
            for step in range(first, last + 1) for question in range(2) for draw in range(2)
        ]  # fmt: skip
        folder = run.agent_path(agent.name) / "rollouts"
        folder.mkdir(exist_ok=True)
        import pyarrow as pa

        pq.write_table(pa.Table.from_pylist(rows, ROLLOUT_SCHEMA), folder / f"{first:06d}-{last:06d}.parquet")


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> list[Run]:
    runs_dir = tmp_path_factory.mktemp("bundle")
    made = [make_run(runs_dir, run_config(EVIL), number=0), make_run(runs_dir, run_config(FORMULA, "ttrl"), number=1)]
    write_rollouts(made[0], 0, 9)
    write_rollouts(made[0], 10, 19)
    return made


def made_bundle(runs: list[Run], **options) -> dict[str, bytes]:
    """The files of a bundle by name."""
    configs = {run.id: run.config for run in runs}
    logged = history(tracking_uri(runs[0].path.parent), list(configs))
    recipe = Recipe("2a", tuple(configs), dpi=50)
    content = bundle.bundle(recipe, Source(logged, configs, {}), runs, "out/my bundle.zip", **options)
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="module")
def files(runs) -> dict[str, bytes]:
    return made_bundle(runs, questions=4)


def test_the_bundle_holds_figures_data_configs_votes_and_a_page(files, runs):
    own = {name.removeprefix("my-bundle/") for name in files}
    for stem in ("2a-agreement", "2b-pseudo-labels", "2c-evaluation", "4b-reward-std", "5b-agents-agreement"):
        assert {f"figures/{stem}.{kind}" for kind in ("pdf", "svg", "png")} | {f"data/{stem}.csv"} <= own
    assert "figures/2d-error-overlap.pdf" not in own  # these runs have none at step 0
    assert {"index.html", "results.tex", "results.csv", f"configs/{runs[0].id}.yaml", f"data/run-{runs[1].id}.csv",
            f"votes/{runs[0].id}.jsonl", f"votes/{runs[0].id}.csv"} <= own  # fmt: skip


def test_every_name_inside_is_safe_and_in_one_folder(files):
    for name in files:
        assert name.isascii() and not set(name) - set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/")
        assert PurePosixPath(name).parts[0] == "my-bundle" and ".." not in name and not name.startswith("/")


def test_run_folders_with_odd_names_get_names_of_their_own(tmp_path):
    odd = [Run(tmp_path / name) for name in ("a b", "a<b", "A-B", "...")]
    assert list(_file_names(odd).values()) == ["a-b", "a-b-2", "A-B-3", "run"]


def test_the_page_has_no_script_asks_no_server_and_links_what_is_there(files):
    page = Page(files["my-bundle/index.html"])
    assert "script" not in {tag for tag, _ in page.tags} and EVIL in page.text
    links = [attributes.get(key) for _, attributes in page.tags for key in ("src", "href") if attributes.get(key)]
    assert links and all(f"my-bundle/{link}" in files for link in links)
    assert not any(name.startswith("on") for _, attributes in page.tags for name in attributes)
    assert all(attributes.get("alt") for tag, attributes in page.tags if tag == "img")
    policy = next(attributes["content"] for tag, attributes in page.tags if attributes.get("http-equiv"))
    assert policy.startswith("default-src 'none'") and "script-src" not in policy


def test_the_page_says_the_command_and_every_run(files, runs):
    page = Page(files["my-bundle/index.html"])
    assert f"python -m corl_core bundle {runs[0].id} {runs[1].id} --dpi 50 --questions 4 -o 'out/my bundle.zip'" in page.text
    assert all(run.id in page.text for run in runs) and "Co-RL" in page.text and "TTRL" in page.text


def test_the_configs_are_the_runs_own(files, runs):
    given = files[f"my-bundle/configs/{runs[0].id}.yaml"]
    assert given == (runs[0].path / "run.yaml").read_bytes() and yaml.safe_load(given)["name"] == EVIL


def test_the_metrics_are_all_that_was_logged(files, runs):
    given = pd.read_csv(io.BytesIO(files[f"my-bundle/data/run-{runs[0].id}.csv"]), comment="#", keep_default_na=False)
    logged = history(tracking_uri(runs[0].path.parent), [runs[0].id])
    assert len(given) == len(logged) and set(given.metric) == set(logged.metric)
    assert given.value.astype(float).tolist() == pytest.approx(logged.value.tolist())


def test_votes_are_whole_groups_of_every_agent_spread_over_the_run(files, runs):
    # 4 of the steps 0 to 19: 0, 6.33, 12.67, 19 → 0, 6, 13, 19; one question each, 3 agents, 2 rollouts
    rows = [json.loads(line) for line in files[f"my-bundle/votes/{runs[0].id}.jsonl"].splitlines()]
    assert sorted({row["step"] for row in rows}) == [0, 6, 13, 19] and len(rows) == 4 * 3 * 2
    assert {row["question_id"] for row in rows} == {"q0-0", "q6-0", "q13-0", "q19-0"}
    assert {row["agent"] for row in rows} == {"llama", "qwen2", "gpt_neox"}
    assert {row["reward"] for row in rows} == {1.0, None} and rows[0]["pseudo_label"] is None


def test_no_cell_of_a_csv_is_a_formula(files):
    for name, content in files.items():
        if name.endswith(".csv"):
            table = pd.read_csv(io.BytesIO(content), comment="#", dtype=str, keep_default_na=False)
            for column in table.columns:
                numeric = pd.to_numeric(table[column], errors="coerce").notna()
                assert not table.loc[~numeric, column].str.startswith(("=", "+", "-", "@")).any(), (name, column)


def test_the_same_runs_give_the_same_bytes(runs):
    configs = {run.id: run.config for run in runs}
    source = Source(history(tracking_uri(runs[0].path.parent), list(configs), ["eval/accuracy"]), configs, {})
    recipe = Recipe("2a", tuple(configs), dpi=50)
    assert bundle.bundle(recipe, source, runs, "x.zip", 1) == bundle.bundle(recipe, source, runs, "x.zip", 1)


def test_a_run_without_rollouts_says_so(runs):
    assert read_votes(runs[1], 5).problem == "This run has kept no rollouts." and not read_votes(runs[1], 5).rows
    assert read_votes(runs[0], 0).rows == [] and read_votes(runs[0], 0).problem == ""


def test_a_damaged_shard_is_told_of_and_the_rest_is_kept(tmp_path):
    run = make_run(tmp_path, run_config(), logged=False)
    write_rollouts(run, 0, 4)
    (run.agent_path("llama") / "rollouts" / "000005-000009.parquet").write_bytes(b"no parquet")
    votes = read_votes(run, 2)
    assert "000005-000009.parquet cannot be read" in votes.problem and {row["step"] for row in votes.rows} == {0}


def test_runs_that_have_logged_nothing_still_make_a_bundle(tmp_path):
    run = make_run(tmp_path, run_config(), logged=False)
    nothing = pd.DataFrame({name: pd.Series(dtype=str) for name in ("run_id", "agent", "metric")})
    nothing = nothing.assign(step=pd.Series(dtype=int), value=pd.Series(dtype=float), time=pd.Series(dtype=float))
    content = bundle.bundle(Recipe("2a", (run.id,)), Source(nothing, {run.id: run.config}, {}), [run], "x.zip")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert "x/index.html" in archive.namelist() and b"logged nothing" in archive.read("x/index.html")


@pytest.mark.parametrize("questions", [-1, 501])
def test_a_sample_of_an_impossible_size_is_refused(runs, questions):
    with pytest.raises(FigureError, match="0 to 500"):
        bundle.bundle(Recipe("2a", ()), Source(pd.DataFrame(), {}, {}), [], "x.zip", questions)
