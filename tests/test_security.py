"""What no input may do: run code, reach another file, fill the memory, or bring a secret out of the environment."""

import ast
import json
from pathlib import Path

import pytest

from corl_core import security
from corl_core.cli import main
from corl_core.cli.demo import allowed_hosts
from corl_core.runs import launch
from corl_core.security import Login, is_loopback, masked, read_login, refusal, role_of

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py")), *sorted((ROOT / "corl_core").rglob("*.py"))]

# ---- the code itself

BUILT_IN = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "pty", "commands"}
CALLS = {"os.system", "os.popen", "torch.load", "yaml.unsafe_load", "yaml.full_load", "pd.read_pickle", "np.load",
         "subprocess.getoutput"}  # fmt: skip
STARTS = {"subprocess.run", "subprocess.Popen", "subprocess.call", "subprocess.check_call", "subprocess.check_output"}
FORBIDDEN_TRUE = {"shell", "trust_remote_code", "unsafe_allow_html", "unsafe_allow_javascript", "allow_pickle"}


def dangers(source: str) -> list[str]:
    """What in a file could run a text as code, open a pickle, or start a shell."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            found += [name for name in names if name.split(".")[0] in MODULES]
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        found += [called] if called in BUILT_IN | CALLS or called.startswith("os.exec") or called.startswith("os.spawn") else []
        found += [f"{each.arg}=…" for each in node.keywords if each.arg in FORBIDDEN_TRUE and ast.unparse(each.value) != "False"]
        if called in STARTS and node.args and isinstance(node.args[0], (ast.Constant, ast.JoinedStr)):
            found.append(f"{called} of a text")
        if called == "yaml.load" and "LOADER" not in ast.unparse(node):
            found.append(called)
    return found


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_file_evaluates_text_opens_a_pickle_or_starts_a_shell(path):
    assert dangers(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "source",
    ["eval('1')", "def f():\n    exec(text)", "import pickle", "from pickle import loads", "os.system('ls')", "torch.load(path)",
     "subprocess.run('ls', shell=True)", "subprocess.Popen(f'ls {name}')", "st.markdown(x, unsafe_allow_html=True)",
     "AutoModel.from_pretrained(x, trust_remote_code=flag)", "yaml.load(text, yaml.Loader)", "os.execv(a, b)"],
)  # fmt: skip
def test_the_scan_can_fail(source):
    assert dangers(source)


READING = {  # module that can act → what of it pages may call without `acts`; classes and constants aside, all else acts
    "corl_core.runs.launch": set(),
    "corl_core.runs.labels": {"labels", "shown_name"},
    "corl_core.runs.trash": {"thrown", "find", "size_bytes"},
    "corl_core.runs.prune": {"default_keep", "superfluous"},
    "corl_core.runs.archive": {"archive"},
    "corl_core.runs.queue": {"waiting", "in_order"},
    "corl_core.runs.queue_dispatch": {"slots", "living", "free", "working", "wake_for"},  # data.py asks may_act itself
    "corl_core.runs.queue_slots": {"need", "visible_gpus", "num_cores", "read_slots"},
    "corl_core.runs.grid_runs": {"all_grids", "find_grid", "coverage", "to_queue", "summary", "seen_in", "refusal"},
    "corl_core.diversity.jobs": {"all_jobs", "find_job", "num_completions"},
    "corl_core.data.uploads": {"folder", "called"},
    "corl_core.doctor": {"examine", "worst"},
    "corl_core.tracking.housekeeping": set(),
}
HELPERS = {  # functions of pages that act, and are themselves called by `acts` functions alone
    "pages/components/labels.py": {"_mirror"},
    "pages/components/trash.py": {"_in_mlflow"},
    "pages/components/actions.py": {"launch_once"},
    "pages/components/queue_add.py": {"add_once"},
}


def only_reads(module: str, name: str) -> bool:
    return not name[:1].islower() or name in READING[module]


def unguarded(source: str, path: str) -> list[str]:
    """Uses of what acts, outside functions decorated with `acts` or handed to it."""
    tree = ast.parse(source)
    modules: dict[str, str] = {}  # local name → the module
    direct = set(HELPERS.get(path, ()))  # local names that act
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                local = alias.asname or alias.name
                if f"{node.module}.{alias.name}" in READING:
                    modules[local] = f"{node.module}.{alias.name}"
                elif node.module in READING and not only_reads(node.module, alias.name):
                    direct.add(local)
    found = []

    def look(node: ast.AST, guarded: bool) -> None:
        if isinstance(node, ast.FunctionDef):
            guarded = guarded or node.name in HELPERS.get(path, ()) or "acts" in map(ast.unparse, node.decorator_list)
        guarded = guarded or (isinstance(node, ast.Call) and ast.unparse(node.func) == "acts")
        named = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules
        acts = named and not only_reads(modules[node.value.id], node.attr)
        if not guarded and (acts or (isinstance(node, ast.Name) and node.id in direct)):
            found.append(ast.unparse(node))
        for child in ast.iter_child_nodes(node):
            look(child, guarded)

    look(tree, False)
    return found


@pytest.mark.parametrize("path", sorted((ROOT / "pages").rglob("*.py")), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_whatever_a_page_starts_changes_or_deletes_asks_who_it_is_for(path):
    assert unguarded(path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()) == []


def test_the_search_for_unguarded_actions_can_fail():
    bad = "from corl_core.runs import launch as launcher\nfrom corl_core.runs.trash import throw\n" \
          "def f():\n    launcher.stop(run)\n    throw(run)\n"  # fmt: skip
    assert unguarded(bad, "pages/x.py") == ["launcher.stop", "throw"]
    assert unguarded(bad.replace("def f", "@acts\ndef f"), "pages/x.py") == []
    assert unguarded("from corl_core.diversity import jobs\nst.button(on_click=acts(jobs.stop))", "pages/x.py") == []


# ---- who may come in

SECRETS = """
[auth]
redirect_uri = "http://localhost:8501/oauth2callback"
cookie_secret = "xxxxxxxxxxxxxxxx"
client_id = "x"
client_secret = "y"
server_metadata_url = "https://id.example.org/.well-known/openid-configuration"
[roles]
run = ["ada@example.org"]
read = ["*@example.org"]
"""


@pytest.fixture
def authlib(monkeypatch):
    monkeypatch.setattr(security, "find_spec", lambda name: object())


def login_of(tmp_path, text: str) -> Login:
    (tmp_path / "secrets.toml").write_text(text)
    return read_login([tmp_path / "nowhere.toml", tmp_path / "secrets.toml"])


@pytest.mark.parametrize("address", ["127.0.0.1", "127.9.9.9", "localhost", "LOCALHOST", "::1", "[::1]"])
def test_this_machine_alone_is_let_in_without_a_login(address):
    assert is_loopback(address) and refusal(address, Login(), {}) == ""


BEYOND = ["0.0.0.0", "::", "", None, "192.168.0.4", "10.0.0.1", "example.org", "localhost.evil.org", "127.0.0.1.evil.org"]


@pytest.mark.parametrize("address", BEYOND)
def test_any_other_address_is_refused_with_what_to_do(address):
    why = refusal(address, Login(), {})
    assert "ssh -L" in why and "[auth]" in why and security.ALLOW_OPTION in why
    assert refusal(address, Login(), {security.ALLOW_ANYONE: "1"}) == ""
    assert refusal(address, Login(), {security.ALLOW_ANYONE: "0"}) == why
    assert refusal(address, Login(True), {}) == ""


def test_a_login_by_half_is_refused_everywhere(tmp_path, authlib):
    for address in ("127.0.0.1", "0.0.0.0"):
        login = login_of(tmp_path, SECRETS.replace("cookie_secret", "cookie"))
        assert "lacks cookie_secret" in refusal(address, login, {security.ALLOW_ANYONE: "1"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SECRETS.partition("[roles]")[0], "[roles] names nobody"),
        (SECRETS.replace('run = ["ada@example.org"]', 'run = "ada@example.org"'), "must be a list"),
        (SECRETS.replace("read =", "reader ="), "has 'reader'"),
        (SECRETS.replace("client_secret", "secret"), "lacks client_secret"),
        ("[auth\n", "secrets.toml cannot be read"),
        ("auth = 3\n", "must be sections"),
    ],
)
def test_a_login_says_what_is_missing_and_never_its_secrets(tmp_path, authlib, text, said):
    login = login_of(tmp_path, text)
    assert login.wanted and said in login.problem and "xxxxxxxx" not in login.problem


def test_a_login_needs_its_library(tmp_path, monkeypatch):
    monkeypatch.setattr(security, "find_spec", lambda name: None)
    assert "streamlit[auth]" in login_of(tmp_path, SECRETS).problem


def test_a_login_is_ready_or_not_asked_for(tmp_path, authlib):
    assert login_of(tmp_path, SECRETS).ready and not login_of(tmp_path, SECRETS).providers
    assert login_of(tmp_path, "[other]\nx = 1\n") == Login() == read_login([])
    named = SECRETS.replace("client_id", "[auth.google]\nclient_id")
    assert login_of(tmp_path, named).ready and login_of(tmp_path, named).providers == ("google",)


@pytest.mark.parametrize(
    ("email", "verified", "role"),
    [
        ("ada@example.org", True, "run"), ("ADA@Example.org ", True, "run"), ("bob@example.org", True, "read"),
        ("ada@example.org", False, "none"), ("ada@evil.org", True, "none"), ("ada@example.org.evil.org", True, "none"),
        ("ada@sub.example.org", True, "none"), ("*@example.org", True, "read"), ("", True, "none"), (None, True, "none"),
    ],
)  # fmt: skip
def test_roles_go_by_verified_addresses(email, verified, role):
    assert role_of(email, verified, Login(True, run=("ada@example.org",), read=("*@example.org",))) == role


def test_nobody_is_somebody_by_default():
    assert role_of("ada@example.org", True, Login(True)) == "none"


def test_the_command_refuses_before_it_starts_anything(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("corl_core.cli.demo.subprocess.Popen", lambda *_, **__: pytest.fail("it was started"))
    for verb in ("app", "demo"):
        assert main([verb, "--address", "0.0.0.0", "--runs", str(tmp_path / "runs"), "--no-browser"]) == 2
        assert "the dashboard does not start: the address 0.0.0.0 can be reached" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_only_known_names_are_answered_to():
    assert allowed_hosts("127.0.0.1", []) == ["localhost", "127.0.0.1", "::1"]
    beyond = allowed_hosts("0.0.0.0", ["Lab.Example.org"])
    assert {"localhost", "127.0.0.1", "lab.example.org"} <= set(beyond) and not {"*", "0.0.0.0"} & set(beyond)


# ---- secrets

HF, PASSWORD, IN_URI, QUERY = "hf_abcdefghijklmnop", "trackingpassword1", "uripassword99", "querypassword7"


@pytest.fixture
def secrets(monkeypatch):
    monkeypatch.setenv("HF_TOKEN", HF)
    monkeypatch.setenv("MLFLOW_TRACKING_USERNAME", "ada")
    monkeypatch.setenv("MLFLOW_TRACKING_PASSWORD", PASSWORD)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"http://ada:{IN_URI}@127.0.0.1:9/x")
    return (HF, PASSWORD, IN_URI)


def test_credentials_are_masked_in_text(secrets):
    assert masked(f"http://ada:{IN_URI}@host:5/x?password={QUERY}&y=1 {HF}") == "http://***@host:5/x?password=***&y=1 ***"
    assert masked("postgresql://u:p@h/db and mysql+pymysql://a@h") == "postgresql://***@h/db and mysql+pymysql://***@h"
    for text in ("a@b.org", "sqlite:////tmp/x.db", "http://host/a@b", "mail me @ http://host"):
        assert masked(text) == text


def leaks(folder: Path, secrets) -> list[str]:
    found = []
    for path in folder.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            found += [f"{path.name}: {secret}" for secret in secrets if secret.encode() in content]
    return found


@pytest.mark.training
def test_no_secret_reaches_a_run_folder_a_log_or_the_command_line(tmp_path, small_run, wait_for, secrets, capsys, monkeypatch):
    """A whole run while the tracking server, whose URI has a password, is down; then a replay into a store that is up."""
    run = launch.launch(small_run(), tmp_path / "runs")
    wait_for(lambda: run.status().final, "the run to end", 240)
    assert run.status().state == "finished" and "does not answer" in run.log_tail()
    assert main(["sync", run.id, "--runs", str(tmp_path / "runs")]) == 2
    assert main(["doctor", "--runs", str(tmp_path / "runs")]) == 1
    monkeypatch.delenv("MLFLOW_TRACKING_URI")
    assert main(["sync", run.id, "--runs", str(tmp_path / "runs"), "--json"]) == 0
    said = capsys.readouterr()
    assert not [secret for secret in secrets if secret in said.out + said.err]
    assert leaks(tmp_path, secrets) == []
    assert list(json.loads((run.path / "tracking.json").read_text()))[-1].startswith("sqlite:///")


def test_the_search_for_secrets_can_fail(tmp_path, secrets):
    (tmp_path / "x").write_text(f"token {HF}")
    assert leaks(tmp_path, secrets) == [f"x: {HF}"]
