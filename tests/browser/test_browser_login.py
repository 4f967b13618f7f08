"""Logging in for real: a small OpenID provider on this machine, Streamlit's login, and what each person may then do."""

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from tests.dashboard_server import free_port, serving
from tests.pages.made_runs import make_run, run_config

pytest.importorskip("authlib", reason="the login needs streamlit[auth]")


class Provider(ThreadingHTTPServer):
    """Logs everybody in as `person`, whose claims are signed."""

    def __init__(self):
        from joserfc.jwk import RSAKey

        super().__init__(("127.0.0.1", 0), _Answers)
        self.key = RSAKey.generate_key(2048, {"kid": "one", "use": "sig", "alg": "RS256"})
        self.person: dict = {}
        self.nonces: dict[str, str] = {}
        self.address = f"http://127.0.0.1:{self.server_port}"


class _Answers(BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, *_):
        pass

    def _json(self, value) -> None:
        content = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def do_GET(self):
        own, parts = self.server.address, urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        if parts.path.endswith("openid-configuration"):
            self._json({"issuer": own, "authorization_endpoint": f"{own}/authorize", "token_endpoint": f"{own}/token",
                        "jwks_uri": f"{own}/jwks", "id_token_signing_alg_values_supported": ["RS256"],
                        "response_types_supported": ["code"], "subject_types_supported": ["public"]})  # fmt: skip
        elif parts.path == "/jwks":
            self._json({"keys": [self.server.key.as_dict(private=False)]})
        elif parts.path == "/authorize":
            self.server.nonces["code"] = query.get("nonce", "")
            self.send_response(302)
            self.send_header("Location", f"{query['redirect_uri']}?{urlencode({'code': 'code', 'state': query['state']})}")
            self.end_headers()
        else:
            self.send_error(404)

    def do_POST(self):
        from joserfc import jwt

        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        claims = {"iss": self.server.address, "aud": "corl", "sub": "1", "iat": int(time.time()), "exp": int(time.time()) + 600,
                  "nonce": self.server.nonces["code"], **self.server.person}  # fmt: skip
        token = jwt.encode({"alg": "RS256", "kid": "one"}, claims, self.server.key)
        self._json({"access_token": "x", "token_type": "Bearer", "expires_in": 600, "id_token": token})


@pytest.fixture
def provider():
    server = Provider()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()
    server.server_close()


@pytest.fixture
def site(provider, tmp_path, runs_dir, wait_for):
    """The address of a dashboard on all addresses of this machine, behind that provider."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    secrets = tmp_path / "secrets.toml"
    secrets.write_text(
        f'[auth]\nredirect_uri = "{address}/oauth2callback"\ncookie_secret = "{"c" * 32}"\nclient_id = "corl"\n'
        f'client_secret = "s"\nserver_metadata_url = "{provider.address}/.well-known/openid-configuration"\n'
        '[roles]\nrun = ["ada@example.org"]\nread = ["*@example.org"]\n'
    )
    more = ["--server.address", "0.0.0.0", "--secrets.files", str(secrets)]
    with serving(runs_dir, tmp_path / "dashboard.log", wait_for, port, more):
        yield address


def test_people_log_in_and_may_do_what_their_role_says(page, site, provider, runs_dir):
    run = make_run(runs_dir, run_config(), logged=False)

    def log_in(email: str, verified: bool = True) -> None:
        provider.person = {"email": email, "email_verified": verified, "name": "x"}
        page.context.clear_cookies()
        page.goto(f"{site}/run?run={run.id}")
        page.get_by_role("button", name="Log in").wait_for()
        assert page.get_by_text(run.id).count() == 0
        page.get_by_role("button", name="Log in").click()

    log_in("ada@example.org")
    page.get_by_text("ada@example.org (run)").wait_for()
    page.goto(f"{site}/run?run={run.id}")
    page.get_by_role("button", name="Delete", exact=True).wait_for()
    log_in("bob@example.org")
    page.get_by_text("bob@example.org (read)").wait_for()
    page.goto(f"{site}/run?run={run.id}")
    page.get_by_role("button", name="Compare").wait_for()
    assert page.get_by_role("button", name="Delete", exact=True).count() == 0
    log_in("eve@evil.org")
    page.get_by_text("may not see this dashboard").wait_for()
    log_in("ada@example.org", verified=False)
    page.get_by_text("may not see this dashboard").wait_for()
    page.get_by_role("button", name="Log out").click()
    page.get_by_role("button", name="Log in").wait_for()
