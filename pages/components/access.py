"""Who may open the dashboard, and who may act in it. Every callback that starts, stops, changes or deletes anything is wrapped in
`acts`, which asks here at the moment of the click: a hidden button is a courtesy, this is the lock.

What the roles are, and where they are set, stands in corl_core/security.py.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec

import streamlit as st

from corl_core import security
from corl_core.runs.launch import LaunchError
from corl_core.security import Login, Role
from pages.components.boundary import told
from pages.components.text import plain

P = ParamSpec("P")
READ_ONLY = "This dashboard is read only: nothing can be started, stopped, changed or deleted here."


class NotAllowed(LaunchError):
    """An action that this visitor may not do; the text says why."""


def gate() -> None:
    """For app.py: draws a refusal, or the way to log in, and stops, unless this visitor may see the dashboard."""
    login = _login()
    if why := security.refusal(st.get_option("server.address"), login):
        st.title("Co-RL Lab")
        st.error(plain(f"Nothing is shown: {why}."), icon=":material/lock:")
        st.stop()
    if login.ready and _role(login) == "none":
        _ask_to_log_in(login)
        st.stop()


def may_act() -> bool:
    """Whether this visitor may start, stop, change and delete."""
    return not why_not()


def why_not() -> str:
    """Why this visitor may only read, as a sentence; "" when they may act."""
    login = _login()
    if why := security.refusal(st.get_option("server.address"), login):
        return f"Nothing can be started or changed: {why}."
    if security.is_on(security.READ_ONLY):
        return READ_ONLY
    if _role(login) != "run":
        return "You may look at everything here, but not start, stop, change or delete anything."
    return ""


def acts(action: Callable[P, None]) -> Callable[P, None]:
    """A widget callback that acts: refused for whoever may only read, and its errors are told on top of the page."""

    @functools.wraps(action)
    def checked(*args: P.args, **kwargs: P.kwargs) -> None:
        if why := why_not():
            raise NotAllowed(why)
        action(*args, **kwargs)

    return told(checked)


def who() -> None:
    """The person logged in, with the way out; nothing without a login."""
    if not _login().ready:
        return
    with st.sidebar:
        st.caption(plain(f"{_email()} ({_role(_login())})"))
        st.button("Log out", icon=":material/logout:", key="log_out", on_click=st.logout)


def _login() -> Login:
    return security.read_login(st.get_option("secrets.files"))


def _role(login: Login) -> Role:
    if not login.ready:
        return "run"
    verified = st.user.get("email_verified")
    return security.role_of(_email(), bool(verified) or (verified is None and login.accept_unverified), login)


def _email() -> str | None:
    return str(st.user.get("email") or "") if st.user.get("is_logged_in") else None


def _ask_to_log_in(login: Login) -> None:
    st.title("Co-RL Lab")
    if email := _email():
        st.error(plain(f"{email} may not see this dashboard: ask whoever runs it to list the address."), icon=":material/lock:")
        st.button("Log out", icon=":material/logout:", key="log_out", on_click=st.logout)
        return
    for provider in login.providers or ("",):
        label = f"Log in with {provider}" if provider else "Log in"
        arguments = (provider,) if provider else ()
        st.button(plain(label), icon=":material/login:", key=f"log_in.{provider}", on_click=st.login, args=arguments)
