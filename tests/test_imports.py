"""Who may import whom: the dashboard and the algorithm stay light, and each heavy library has one home."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
TRAINING = {"torch", "trl", "transformers", "accelerate", "peft"}
HOMES = {  # library → the only places that may import it
    **dict.fromkeys(TRAINING, ("corl_core/training/", "corl_core/bench/")),
    "mlflow": ("corl_core/tracking/",),
    "ray": ("corl_core/runs/launchers/",),
    "streamlit": ("app.py", "pages/"),
    "plotly": ("corl_core/figures/", "pages/"),
    "matplotlib": ("corl_core/figures/",),
    "fontTools": ("corl_core/figures/",),
    **dict.fromkeys(("math_verify", "latex2sympy2_extended", "sympy"), ("corl_core/grading/algebra.py",)),
    "datasets": ("corl_core/data/", "corl_core/training/", "corl_core/bench/"),
}
PURE = ["answers", "votes", "ring", "diagnostics", "metrics", "seeds", "rewards/__init__", "rewards/corl", "rewards/ttrl",
        "rewards/ground_truth", "rewards/matching"]  # fmt: skip
GRADING = {path.stem for path in (ROOT / "corl_core" / "grading").glob("*.py")} - {"algebra", "math_worker"}
PURE += sorted(f"grading/{name}" for name in GRADING)
PURE += sorted(f"alarms/{path.stem}" for path in (ROOT / "corl_core" / "alarms").glob("*.py"))
NUMERIC = {"numpy", "scipy", "pandas", "pyarrow"}  # what theory may use beyond the standard library


def imported(path: Path) -> set[str]:
    """Top-level packages that a file imports, inside functions too."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names.add((node.module or "").split(".")[0])
    return names


def sources() -> list[Path]:
    return [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *sorted((ROOT / "corl_core").rglob("*.py"))]


def offences(path: Path, name: str) -> list[str]:
    return sorted(library for library in imported(path) & set(HOMES) if not name.startswith(HOMES[library]))


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_each_heavy_library_has_one_home(path):
    assert offences(path, path.relative_to(ROOT).as_posix()) == []


def test_the_check_can_fail(tmp_path):
    bad = tmp_path / "bad.py"
    bad.write_text("def f():\n    from torch.nn import Linear\n")
    assert offences(bad, "pages/bad.py") == ["torch"]
    assert offences(bad, "corl_core/training/bad.py") == []


@pytest.mark.parametrize("module", PURE)
def test_the_algorithm_needs_the_standard_library_alone(module):
    allowed = set(sys.stdlib_module_names) | {"corl_core"}
    assert imported(ROOT / "corl_core" / f"{module}.py") <= allowed


@pytest.mark.parametrize("path", sorted((ROOT / "corl_core" / "theory").glob("*.py")), ids=lambda path: path.stem)
def test_theory_is_numbers_alone(path):
    assert imported(path) <= set(sys.stdlib_module_names) | NUMERIC | {"corl_core"}


@pytest.mark.parametrize("path", sorted((ROOT / "corl_core" / "diversity").glob("*.py")), ids=lambda path: path.stem)
def test_diversity_is_numbers_and_a_process_alone(path):
    process = {"psutil"} if path.stem == "jobs" else set()
    assert imported(path) <= set(sys.stdlib_module_names) | NUMERIC | {"corl_core"} | process


@pytest.mark.parametrize("path", sorted((ROOT / "corl_core" / "forecast").glob("*.py")), ids=lambda path: path.stem)
def test_a_forecast_is_numbers_alone(path):
    assert imported(path) <= set(sys.stdlib_module_names) | {"corl_core", "numpy", "psutil"}


def test_a_forecast_loads_no_training_library():
    code = "import sys, corl_core.cli.forecast, corl_core.forecast.remedies as r, corl_core.forecast.report; " \
           "from corl_core.config import load_config; from corl_core.forecast.device import device_for; " \
           "from corl_core.forecast.plan import forecast; c = load_config('demo'); forecast(c, device_for(c)); " \
           f"print(sorted(set(sys.modules) & {TRAINING | {'mlflow', 'streamlit'}!r}))"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_reading_answers_is_light_until_a_formula_comes():
    code = "import sys, corl_core.answers as a, corl_core.grading.workers as w; a.parse('\\\\boxed{1/2}'); " \
           "print(sorted(set(sys.modules) & {'sympy', 'math_verify', 'numpy'}), w.num_idle())"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[] 0"


def test_reading_and_launching_runs_loads_no_training_library():
    code = "import sys, corl_core.cli, corl_core.runs.launch, corl_core.theory.against_run, corl_core.figures; " \
           "import corl_core.tracking.reader; " \
           f"print(sorted(set(sys.modules) & {TRAINING | {'mlflow', 'streamlit'}!r}))"  # fmt: skip
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
