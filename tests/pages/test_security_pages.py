"""Roles and secrets on the pages: who sees what, what is refused at the click, and what never shows."""

import json
import re
import shutil

import pytest

from corl_core.runs import labels
from corl_core.runs.archive import archive
from corl_core.runs.folder import all_runs
from corl_core.security import Login
from pages.components import frame
from tests.pages.conftest import PROJECT
from tests.pages.made_runs import make_run, run_config

PAGES = sorted(path.stem for path in (PROJECT / "pages").glob("*.py") if path.stem != "__init__")
EVERYBODY = Login(True, run=("ada@example.org",), read=("*@example.org",))


@pytest.fixture
def at_address(monkeypatch):
    """Makes the pages believe that the server listens there."""
    import streamlit as st

    real = st.get_option

    def set_to(address: str) -> None:
        monkeypatch.setattr(st, "get_option", lambda key: address if key == "server.address" else real(key))

    return set_to


@pytest.fixture
def logged_in(monkeypatch):
    """Makes the pages believe in a login, and in this person."""

    def person(**user) -> None:
        monkeypatch.setattr("pages.components.access._login", lambda: EVERYBODY)
        monkeypatch.setattr("streamlit.user", user)

    return person


def keys(at) -> set[str]:
    return {button.key for button in at.button}


@pytest.mark.parametrize("page", [None, "run", "doctor", "new_run"])
def test_beyond_this_machine_without_a_login_nothing_is_shown(app, finished_store, at_address, said, page):
    at_address("0.0.0.0")
    at = app(finished_store, page)
    assert not at.exception and "Nothing is shown" in at.error[0].value and "ssh \\-L" in at.error[0].value
    assert not at.button and not at.dataframe and "demo" not in said(at)


def test_who_says_so_in_so_many_words_lets_everybody_in(app, finished_store, at_address, monkeypatch):
    at_address("0.0.0.0")
    monkeypatch.setenv("CORL_ALLOW_ANYONE_ON_THE_NETWORK", "1")
    at = app(finished_store, "run")
    assert not at.error and "run_delete" in keys(at)


def test_with_a_login_a_stranger_sees_a_button_and_a_wrong_address_is_told(app, finished_store, at_address, logged_in, said):
    at_address("0.0.0.0")
    logged_in(is_logged_in=False)
    at = app(finished_store, "run")
    assert keys(at) == {"log_in."} and "demo" not in said(at)
    logged_in(is_logged_in=True, email="eve@evil.org", email_verified=True)
    at = app(finished_store, "run")
    assert keys(at) == {"log_out"} and "may not see this dashboard" in at.error[0].value


def test_a_reader_sees_everything_and_has_no_button_that_acts(app, finished_store, logged_in):
    logged_in(is_logged_in=True, email="bob@example.org", email_verified=True)
    at = app(finished_store, "run")
    assert not at.error and at.title and not keys(at) & {"run_stop", "run_resume", "run_delete", "run_label", "run_prune"}
    logged_in(is_logged_in=True, email="ada@example.org", email_verified=True)
    assert {"run_delete", "run_label"} <= keys(app(finished_store, "run"))


def test_read_only_hides_what_acts_and_says_so(app, finished_store, monkeypatch, said):
    monkeypatch.setenv("CORL_READ_ONLY", "1")
    assert not keys(app(finished_store, "run")) & {"run_stop", "run_resume", "run_delete", "run_label"}
    assert app(finished_store, "new_run").button(key="launch").disabled
    doctor = app(finished_store, "doctor")
    assert "read only" in said(doctor) and not doctor.exception


def test_a_click_from_a_page_drawn_before_is_refused_at_the_action(app, tmp_path, make_finished, monkeypatch):
    run = make_finished(tmp_path)
    at = app(tmp_path, "run")
    at.button(key="run_delete").click().run()
    monkeypatch.setenv("CORL_READ_ONLY", "1")
    at.button(key="confirm_delete").click().run()
    assert run.path.exists() and "read only" in at.error[0].value


def test_a_launch_from_a_page_drawn_before_is_refused_at_the_action(app, empty_store, launches, monkeypatch):
    at = app(empty_store, "new_run")
    monkeypatch.setenv("CORL_READ_ONLY", "1")
    at.button(key="launch").click().run()
    assert launches == [] and "read only" in at.error[0].value and all_runs(empty_store) == []


HIDDEN = {"HF_TOKEN": "hf_abcdefghijklmnop", "MLFLOW_TRACKING_PASSWORD": "trackingpassword1", "MY_API_KEY": "kept-by-a-teammate"}


@pytest.fixture
def leaky_store(tmp_path, finished_store, monkeypatch):
    """A runs folder whose newest run failed: its reason and the ends of all its logs quote this process's secrets."""
    for name, value in HIDDEN.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://ada:uripassword99@127.0.0.1:9/x")
    said = " ".join([*HIDDEN.values(), "at http://ada:uripassword99@127.0.0.1:9/x"])
    shutil.copy(finished_store / "mlflow.db", tmp_path / "mlflow.db")
    run = make_run(tmp_path, run_config(), "failed", 4, reason="agent llama exited: refused", logged=False)
    status = json.loads((run.path / "status.json").read_text())  # which the engine itself writes without secrets
    (run.path / "status.json").write_text(json.dumps(status | {"reason": f"{status['reason']} {said}"}))
    for log in (run.path / "supervisor.log", *(run.agent_path(agent.name) / "log.txt" for agent in run.config.agents)):
        log.write_text(f"refused {said}\n")
    return tmp_path


@pytest.mark.parametrize("page", PAGES)
def test_no_page_shows_a_secret(app, leaky_store, page):
    at = app(leaky_store, page)
    shown = "\n".join(str(element.proto) for element in at.main)
    assert shown and not at.exception
    assert not [secret for secret in (*HIDDEN.values(), "uripassword99") if secret in shown]


def test_a_reason_is_written_without_secrets(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", HIDDEN["HF_TOKEN"])
    run = make_run(tmp_path, run_config(), "failed", 4, reason=f"refused {HIDDEN['HF_TOKEN']}", logged=False)
    assert run.status().reason.startswith("refused ") and HIDDEN["HF_TOKEN"] not in (run.path / "status.json").read_text()


def test_the_page_of_a_run_shows_the_logs_end_and_the_reason_without_their_secrets(app, leaky_store):
    at = app(leaky_store, "run")
    shown = "\n".join(str(element.proto) for element in at.main)
    assert "Agent llama exited: refused" in shown.replace("\\", "") and "refused" in "".join(code.value for code in at.code)


@pytest.mark.parametrize("page", PAGES)
def test_every_page_hides_the_download_that_would_write_formulas(app, finished_store, page):
    styles = [element.proto.body for element in app(finished_store, page).get("html")]
    assert frame.STYLE in styles and 'aria-label^="Download as CSV"' in frame.STYLE


def test_labels_are_text_whatever_they_hold(app, tmp_path, make_finished, said):
    run = make_finished(tmp_path)
    labels.put(run, "<script>alert(1)</script>", "[a](javascript:x) $x$ :red[b]", ["<img src=x onerror=y>", "**b**"])
    at = app(tmp_path, "run")
    assert at.title[0].value == r"\<script\>alert\(1\)\</script\>"
    assert r"\[a\]\(javascript\:x\) \$x\$ \:red\[b\]" in said(at) and not at.exception
    assert not re.search(r"(?<!\\)<(script|img)", said(at))


def test_labels_are_written_on_the_run_page(app, tmp_path, make_finished, monkeypatch):
    run = make_finished(tmp_path, logged=False)
    at = app(tmp_path, "run")
    at.button(key="run_label").click().run()
    at.text_input(key="labels.name").set_value("mine")
    at.text_area(key="labels.note").set_value("why")
    at.button(key="labels.save").click().run()
    assert labels.labels(run) == labels.Labels("mine", "why") and not at.exception and at.title[0].value == "mine"


def test_deleting_can_be_undone_and_the_trash_is_emptied_only_when_told_twice(app, tmp_path, make_finished):
    run = make_finished(tmp_path, logged=False)

    def delete():
        at = app(tmp_path, "run")
        at.button(key="run_delete").click().run()
        return at.button(key="confirm_delete").click().run()

    at = delete()
    assert not run.path.exists()
    at.button(key="trash.undo").click().run()
    assert run.path.exists() and not at.exception
    delete()
    at = app(tmp_path, "doctor")
    at.button(key=f"trash.restore.{run.id}").click().run()
    assert run.path.exists()
    delete()
    at = app(tmp_path, "doctor")
    at.button(key="trash.empty").click().run()
    assert (tmp_path / ".trash" / run.id).exists()
    at.button(key="confirm_empty").click().run()
    assert not (tmp_path / ".trash" / run.id).exists() and not at.exception


def test_a_run_is_imported_from_the_doctor_page_and_a_bad_file_is_one_sentence(app, tmp_path, make_finished):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    run = make_finished(tmp_path / "here")
    archive(run, tmp_path / "a.zip")
    shutil.copy(tmp_path / "here" / "mlflow.db", tmp_path / "there" / "mlflow.db")
    at = app(tmp_path / "there", "doctor")
    at.file_uploader[0].upload("x.zip", b"PK nonsense").run()
    assert "not an archive of a run" in at.error[0].value.lower() and all_runs(tmp_path / "there") == []
    at = app(tmp_path / "there", "doctor")
    at.file_uploader[0].upload("a.zip", (tmp_path / "a.zip").read_bytes()).run()
    assert [each.id for each in all_runs(tmp_path / "there")] == [run.id] and not at.exception and not at.error


def test_a_look_by_somebody_who_may_only_read_wakes_no_queue(app, finished_store, monkeypatch):
    woken = []
    monkeypatch.setattr("pages.components.data.queue_dispatch.wake_for", lambda *_: woken.append(1))
    app(finished_store)
    assert woken
    woken.clear()
    monkeypatch.setenv("CORL_READ_ONLY", "1")
    app(finished_store)
    assert not woken
