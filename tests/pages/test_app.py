"""The app as a whole: what it never imports, and that no traceback reaches a page."""

import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
HEAVY = ("torch", "trl", "transformers", "accelerate", "mlflow", "matplotlib")
VISIT_ALL = """
import sys
from streamlit.testing.v1 import AppTest
at = AppTest.from_file("app.py", default_timeout=30).run()
for page in ("new_run", "run", "compare", "theory", "overview"):
    at.switch_page(f"pages/{page}.py").run()
    assert not at.exception and not at.error, page
print([name for name in HEAVY if name in sys.modules])
"""


def test_all_pages_run_without_importing_torch_or_mlflow(finished_store):
    script = VISIT_ALL.replace("HEAVY", repr(HEAVY)).replace('"app.py"', repr(str(PROJECT / "app.py")))
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=PROJECT,
        env={"CORL_RUNS": str(finished_store), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"


def test_a_bug_is_one_sentence_on_the_page_and_a_traceback_in_the_terminal(app, finished_store, monkeypatch, caplog):
    from pages.components import table

    def broken(*_):
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(table, "matching", broken)
    at = app(finished_store)
    assert not at.exception and len(at.error) == 1
    assert "secret" not in at.error[0].value and "terminal" in at.error[0].value
    assert "secret detail" in caplog.text


def test_the_shipped_settings_keep_the_app_on_this_machine():
    import tomllib

    settings = tomllib.loads((PROJECT / ".streamlit" / "config.toml").read_text())
    assert settings["server"]["address"] == "127.0.0.1"
    assert settings["server"]["allowedHosts"] == ["localhost", "127.0.0.1"]
    assert settings["server"]["fileWatcherType"] == "none"
    assert settings["browser"]["gatherUsageStats"] is False


def test_pages_are_short_and_try_nothing():
    for page in (PROJECT / "pages").glob("*.py"):
        text = page.read_text()
        assert len(text.splitlines()) <= 120, page.name
        assert "try:" not in text, page.name


def test_a_page_asked_for_before_app_py_has_run_starts_over_inside_the_frame(finished_store, monkeypatch):
    from streamlit.testing.v1 import AppTest

    monkeypatch.setenv("CORL_RUNS", str(finished_store))
    at = AppTest.from_file(str(PROJECT / "app.py"), default_timeout=20).run()
    at.switch_page("pages/run.py")
    at.query_params["run"] = "nobody"
    at.run()  # AppTest begins each run as a fresh server does: in the folder's own order
    assert not at.exception and "nobody" in at.error[0].value
