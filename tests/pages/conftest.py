"""Stores for the page tests, the app on them, and what its pages show."""

import json
import shutil
from pathlib import Path

import pytest

from corl_core.config import RunConfig
from corl_core.runs.folder import Run
from tests.pages.made_runs import make_run, run_config

PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def finished_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three seeds of one Co-RL config, one TTRL run, and one that failed."""
    runs_dir = tmp_path_factory.mktemp("finished")
    for seed in range(3):
        make_run(runs_dir, run_config(seed=seed), number=seed)
    make_run(runs_dir, run_config("demo-ttrl", "ttrl"), number=3)
    make_run(runs_dir, run_config(), "failed", 4, 4, reason="agent qwen2 died in round 4")
    return runs_dir


@pytest.fixture(scope="session")
def partial_store(tmp_path_factory: pytest.TempPathFactory, finished_store: Path) -> Path:
    """One run under way, one that has logged nothing yet, and a folder that can't be read."""
    runs_dir = tmp_path_factory.mktemp("partial")
    shutil.copy(finished_store / "mlflow.db", runs_dir / "mlflow.db")
    make_run(runs_dir, run_config(), "running", 8, 10)
    make_run(runs_dir, run_config("fresh"), "starting", 0, 11, logged=False)
    (runs_dir / "broken").mkdir()
    (runs_dir / "broken" / "run.yaml").write_text("method: [unclosed")
    return runs_dir


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch):
    """Opens a page of the app on a runs folder, and returns the AppTest after its first run."""
    from streamlit.runtime.pages_manager import PagesManager
    from streamlit.testing.v1 import AppTest

    make = PagesManager.__init__

    def after_app_py_has_run(self, *args, **kwargs) -> None:
        PagesManager.uses_pages_directory = False  # as in a server, once st.navigation was called
        make(self, *args, **kwargs)

    monkeypatch.setattr(PagesManager, "__init__", after_app_py_has_run)

    def opened(runs_dir: Path, page: str | None = None, **query: str) -> AppTest:
        monkeypatch.setenv("CORL_RUNS", str(runs_dir))
        at = AppTest.from_file(str(PROJECT / "app.py"), default_timeout=20)
        if page is not None:
            at.switch_page(f"pages/{page}.py")
        for key, value in query.items():
            at.query_params[key] = value
        return at.run()

    return opened


@pytest.fixture
def make_finished(finished_store):
    """Makes a finished run in a new runs folder; its store already has its tables."""

    def make(runs_dir: Path, name: str = "demo", logged: bool = True) -> Run:
        if logged:
            shutil.copy(finished_store / "mlflow.db", runs_dir / "mlflow.db")
        return make_run(runs_dir, run_config(name), logged=logged)

    return make


@pytest.fixture
def empty_store(tmp_path: Path) -> Path:
    """A runs folder that nobody has used."""
    return tmp_path


@pytest.fixture
def launches(monkeypatch: pytest.MonkeyPatch) -> list[RunConfig]:
    """Launching makes the run's folder and starts no process; the configs launched are listed."""
    from corl_core.runs import launch as launcher

    seen: list[RunConfig] = []

    def launch(config: RunConfig, runs_dir: Path) -> Run:
        seen.append(config)
        return launcher.create(config, runs_dir)

    monkeypatch.setattr(launcher, "launch", launch)
    return seen


@pytest.fixture
def charts():
    """The charts of a page by key: what the browser is told to draw."""

    def found(at) -> dict[str, dict]:
        elements = [element.proto for element in at.get("bidi_component")]
        return {proto.id.rsplit("-", 1)[-1]: json.loads(proto.json) for proto in elements}

    return found


def words(at) -> str:
    """All the text that a page shows, for asking whether it says something."""
    kinds = (at.title, at.subheader, at.markdown, at.caption, at.info, at.warning, at.error, at.code)
    return "\n".join(str(element.value) for kind in kinds for element in kind)


@pytest.fixture
def said():
    """The text of a page."""
    return words
