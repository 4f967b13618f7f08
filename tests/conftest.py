"""Shared fixtures: tiny base models warmed up in seconds, and runs in a folder of their own."""

import os
import shutil
import sys
import time
from pathlib import Path

import pytest

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("MPLBACKEND", "agg")
CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


def pytest_collection_modifyitems(config, items):
    """What is marked `faults` takes long: it runs only where that is asked for by name."""
    if "faults" not in config.option.markexpr:
        long = [item for item in items if item.get_closest_marker("faults")]
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if item not in long]


@pytest.fixture(autouse=True)
def _own_environment():
    """What a test, or a library in it, puts into the environment ends with it: TRL, for one, writes RANK there for vLLM. So does
    a page that Streamlit's AppTest has made the main module, which the processes of a later test would run as they start."""
    before, main = dict(os.environ), sys.modules["__main__"]
    yield
    sys.modules["__main__"] = main
    for name in os.environ.keys() - before.keys():
        del os.environ[name]
    os.environ.update(before)


@pytest.fixture(autouse=True)
def _own_tracking_store(_own_environment, monkeypatch):
    """No test writes into a tracking server that the shell happens to name."""
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    monkeypatch.delenv("CORL_RUNS", raising=False)


@pytest.fixture(scope="session")
def base_models(request) -> dict[str, Path]:
    """Family → a base model that has had a short warm-up: a quarter of its answers is right. Kept between test sessions, by
    its recipe."""
    from corl_core.training.schools import Recipe, base_model

    cache, recipe = request.config.cache.mkdir("base_models"), Recipe(num_steps=400)
    return {
        family: base_model(family, width=64, seed=0, school=None, cache_dir=cache, recipe=recipe) for family in ("llama", "qwen2")
    }


@pytest.fixture
def small_run(base_models):
    """A function that gives a configuration which trains in seconds; keyword arguments are `--set` overrides."""
    from corl_core.config import load_config

    def make(method: str = "corl", **fields):
        agents = f"[{{name: a, model: {base_models['llama']}}}, {{name: b, model: {base_models['qwen2']}}}]"
        small = {
            "name": "small", "preset": "null", "method": method, "agents": agents, "ring": "null", "device": "cpu",
            "grpo.max_steps": 4, "grpo.questions_per_step": 4, "grpo.num_generations": 8, "grpo.learning_rate": 1e-3,
            "eval.every_steps": 2, "eval.num_questions": 12, "eval.num_samples": 2,
        }  # fmt: skip
        values = small | {key.replace("__", "."): value for key, value in fields.items()}
        return load_config("demo", [f"{key}={value}" for key, value in values.items()])

    return make


@pytest.fixture
def wait_for():
    """Polls until a condition holds; fails the test with what it waited for when it never does."""

    def poll(condition, what: str, timeout_s: float = 90.0, every_s: float = 0.1):
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            if value := condition():
                return value
            time.sleep(every_s)
        pytest.fail(f"waited {timeout_s:g} s for {what}")

    return poll


@pytest.fixture(scope="session")
def browser():
    """Chromium from this machine, one for the whole session, as Playwright wants it; the tests that use it are skipped where
    there is none."""
    playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = next(filter(None, map(shutil.which, CHROMIUM_NAMES)), None)
    if path is None:
        pytest.skip(f"no Chromium on this machine (looked for {', '.join(CHROMIUM_NAMES)})")
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=path, args=CHROMIUM_FLAGS)
        yield chromium
        chromium.close()
