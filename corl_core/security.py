"""Who may reach the dashboard, who may act in it, and what never leaves the environment.

The dashboard starts processes, so whoever reaches it may run programs here. It therefore listens on this machine alone, or behind
a login (OpenID Connect, Streamlit's own), or where a person has said in so many words that anybody on the network may use it.

Roles: `read` sees everything and changes nothing; `run` also starts, stops, changes and deletes. They stand beside the login:

    # .streamlit/secrets.toml
    [auth]                      # Streamlit's: redirect_uri, cookie_secret, client_id, client_secret, server_metadata_url
    [roles]
    run = ["ada@example.org"]
    read = ["*@example.org"]    # addresses, or everybody of a domain; who is in neither list sees nothing
    accept_unverified = true    # only for a provider that does not say whether it has verified an address

Without a login, `CORL_READ_ONLY=1` makes a dashboard in which everybody only reads.
"""

import ipaddress
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal

ALLOW_ANYONE = "CORL_ALLOW_ANYONE_ON_THE_NETWORK"
ALLOW_OPTION = "--allow-anyone-on-the-network"
READ_ONLY = "CORL_READ_ONLY"
NEEDED = ("redirect_uri", "cookie_secret")  # of [auth], for all providers
OF_A_PROVIDER = ("client_id", "client_secret", "server_metadata_url")

Role = Literal["none", "read", "run"]
_CREDENTIALS = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^\s/?#'\"]+@", re.IGNORECASE)
_IN_QUERY = re.compile(r"(?P<name>[?&](?:password|passwd|pwd|token|sslpassword)=)[^&\s'\"]+", re.IGNORECASE)
_SECRET_NAME = re.compile(r"TOKEN|PASSWORD|PASSWD|SECRET|API_?KEY|ACCESS_KEY|CREDENTIAL", re.IGNORECASE)
_SHORTEST_SECRET = 6  # a shorter value would blank out ordinary words


@dataclass(frozen=True)
class Login:
    """What secrets.toml says of logging in: not asked for, asked for but incomplete (`problem`), or ready."""

    wanted: bool = False
    problem: str = ""
    providers: tuple[str, ...] = ()  # named ones; () is the single, unnamed one
    run: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    accept_unverified: bool = False  # addresses of which the provider does not say whether they are verified

    @property
    def ready(self) -> bool:
        return self.wanted and not self.problem


def is_loopback(address: str | None) -> bool:
    """Whether a server on this address is reached from this machine alone; None and '' are all addresses."""
    if (address or "").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address((address or "").strip("[]")).is_loopback
    except ValueError:
        return False


def refusal(address: str | None, login: Login, environ: Mapping[str, str] = os.environ) -> str:
    """Why a dashboard on this address may not start, with what to do; '' where it may.

    A login that is configured by half is no login, and is refused on every address: it was meant to keep somebody out.
    """
    if login.problem:
        return f"the login in secrets.toml is not complete: {login.problem}"
    if is_loopback(address) or login.ready or is_on(ALLOW_ANYONE, environ):
        return ""
    return (
        f"the address {address or 'of all networks'} can be reached from other machines, and whoever opens the dashboard can "
        "start programs here. Leave the address out and come through: ssh -L 8501:127.0.0.1:8501 HOST. Or set up a login "
        f"([auth] in .streamlit/secrets.toml). Or say that anybody may: {ALLOW_OPTION} ({ALLOW_ANYONE}=1)"
    )


def is_on(switch: str, environ: Mapping[str, str] = os.environ) -> bool:
    """Whether an environment switch is on; anything but nothing, 0, false, no and off turns it on."""
    return environ.get(switch, "").strip().lower() not in ("", "0", "false", "no", "off")


def role_of(email: str | None, verified: bool, login: Login) -> Role:
    """What a person who has logged in may do; an address that the provider has not verified is nobody's."""
    if not email or not verified:
        return "none"
    if _listed(email, login.run):
        return "run"
    return "read" if _listed(email, login.read) else "none"


def _listed(email: str, patterns: Sequence[str]) -> bool:
    """Whether an address, or its domain as '*@domain', is in the list."""
    email, domain = email.strip().lower(), email.strip().lower().rpartition("@")[2]
    return any(pattern.strip().lower() in (email, f"*@{domain}") for pattern in patterns)


def read_login(files: Sequence[str | Path]) -> Login:
    """The login of the first of Streamlit's secrets files that asks for one."""
    for path in files:
        try:
            values = tomllib.loads(Path(path).expanduser().read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue
        except (OSError, ValueError) as error:
            return Login(True, f"{Path(path).name} cannot be read: {str(error)[:200]}")
        if "auth" in values:
            return _login(values["auth"], values.get("roles", {}))
    return Login()


def secrets_files(project: Path) -> list[Path]:
    """Where Streamlit looks for secrets, unless its option `secrets.files` says otherwise."""
    return [Path.home() / ".streamlit" / "secrets.toml", project / ".streamlit" / "secrets.toml"]


def _login(auth: Any, roles: Any) -> Login:
    if not isinstance(auth, dict) or not isinstance(roles, dict):
        return Login(True, "[auth] and [roles] must be sections")
    lists = {name: roles.get(name, []) for name in ("run", "read")}
    accept = roles.get("accept_unverified", False)
    if strange := sorted(set(roles) - {*lists, "accept_unverified"}):
        return Login(True, f"[roles] has '{strange[0]}', and only run, read and accept_unverified are known")
    if wrong := [name for name, value in lists.items() if not _is_list_of_text(value)]:
        return Login(True, f"roles.{wrong[0]} must be a list of e-mail addresses, e.g. ['ada@example.org']")
    named = {name: value for name, value in auth.items() if isinstance(value, dict) and "client_id" in value}
    missing = [name for name in NEEDED if not auth.get(name)]
    for section in named.values() or [auth]:
        missing += [name for name in OF_A_PROVIDER if not section.get(name)]
    problem = ""
    if missing:
        problem = f"[auth] lacks {', '.join(dict.fromkeys(missing))}"
    elif find_spec("authlib") is None:
        problem = "Authlib is not installed; run: pip install 'streamlit[auth]'"
    elif not lists["run"] and not lists["read"]:
        problem = "[roles] names nobody; list e-mail addresses under run and read"
    return Login(True, problem, tuple(named), tuple(lists["run"]), tuple(lists["read"]), accept is True)


def _is_list_of_text(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def masked(text: str, environ: Mapping[str, str] = os.environ) -> str:
    """Text without credentials: those in URIs (user:password@, ?password=), and the values of variables named as secrets."""
    text = _IN_QUERY.sub(r"\g<name>***", _CREDENTIALS.sub(r"\g<scheme>***@", text))
    for name, value in environ.items():
        if len(value) >= _SHORTEST_SECRET and _SECRET_NAME.search(name) and value in text:
            text = text.replace(value, "***")
    return text
