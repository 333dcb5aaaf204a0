"""Who may call the admin listener, and the warning about a server that everybody may call."""

import http.client
from types import SimpleNamespace

import pytest

from gateway.serving.access import AccessControl, AdminAccess
from gateway.serving.admin import AdminListener
from gateway.serving.credential_files import ADMIN_TOKENS, CredentialFile
from gateway.serving.refusals import Refused
from gateway.serving.settings import Settings
from gateway.telemetry.metrics import Metrics

OPEN = ("/livez", "/readyz", "/metrics")
GUARDED = ("/purge", "/explain/1", "/ui/api/live", "/uix", "/", "/livez/", "/LIVEZ", "//livez", "/nothing")


@pytest.fixture
def admin(loop, tmp_path):
    """An admin listener with tokens: status, headers and body of a request to it."""
    tokens = tmp_path / "tokens"
    tokens.write_text("new\nold\n")
    access = AdminAccess(CredentialFile(tokens, ADMIN_TOKENS))
    listener = AdminListener(checks=dict, metrics=Metrics().written, access=access)
    address = loop.run(listener.start("127.0.0.1", 0))

    def get(path, **headers):
        client = http.client.HTTPConnection(*address, timeout=20)
        client.request("GET", path, headers=headers)
        response = client.getresponse()
        try:
            return response.status, response.headers, response.read().decode()
        finally:
            client.close()

    yield get
    loop.run(listener.stop())


@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}, {"Origin": "http://a"}])
def test_health_and_metrics_are_open(admin, path, headers):
    """The kubelet and Prometheus have no token, or one of their own."""
    assert admin(path, **headers)[0] == 200


@pytest.mark.parametrize("path", GUARDED)
def test_everything_else_needs_a_token(admin, path):
    """Whether there is such a page or not, and on this machine too."""
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": "Basic bmV3"}):
        status, answered, body = admin(path, **headers)
        assert (status, answered["WWW-Authenticate"]) == (401, 'Bearer realm="admission-gateway"')
        assert "--admin-token-file" in body
    for token in ("new", "old"):
        assert admin(path, Authorization=f"Bearer {token}")[0] == 404


@pytest.mark.parametrize(
    ("peer", "allowed"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("fe80::1%eth0", False),
        ("", False),
        (None, False),
    ],
)
def test_without_tokens_only_this_machine_is_let_in(peer, allowed):
    """And no web page that is open on it."""
    request = SimpleNamespace(remote=peer, headers={})
    if allowed:
        AdminAccess().require(request, "/ui/")
    else:
        with pytest.raises(Refused, match="only programs on this machine"):
            AdminAccess().require(request, "/ui/")
    with pytest.raises(Refused):
        AdminAccess().require(SimpleNamespace(remote=peer, headers={"Origin": "http://localhost"}), "/ui/")


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"Host": "gateway.example.com"}, 'not a client that sends Host "gateway.example.com";'),
        (
            {"Host": "localhost:9443", "Origin": "http://example.com"},
            'not a client that sends Host "localhost:9443" and Origin "http://example.com";',
        ),
    ],
)
def test_a_client_of_this_machine_that_is_refused_reads_why(fields, named):
    """It is refused for a header, not for its address."""
    with pytest.raises(Refused, match="only programs on this machine") as refused:
        AdminAccess().require(SimpleNamespace(remote="127.0.0.1", headers=fields), "/explain/u")
    assert named in str(refused.value)


@pytest.mark.parametrize(
    ("host", "field", "warned"),
    [
        ("127.0.0.1", None, False),
        ("::1", None, False),
        ("0.0.0.0", None, True),  # noqa: S104 - not listened on
        ("::", None, True),
        ("10.0.0.1", None, True),
        ("10.0.0.1", "bearer_token_file", False),
        ("10.0.0.1", "admin_token_file", True),
    ],
)
def test_listening_off_loopback_without_credentials_is_warned_of(tmp_path, logs, host, field, warned):
    """The warning has what to do."""
    (tmp_path / "tokens").write_text("one")
    AccessControl(Settings(**({field: tmp_path / "tokens"} if field else {})), Metrics()).warn(host, "127.0.0.1")
    assert [each["event"] for each in logs] == (["clients need no credentials"] if warned else [])
    assert not warned or "set --client-ca, --bearer-token-file" in logs[0]["why"]


@pytest.mark.parametrize(
    ("host", "field", "said"),
    [
        ("127.0.0.1", None, False),
        ("::1", None, False),
        ("0.0.0.0", None, True),  # noqa: S104 - not listened on
        ("10.0.0.1", None, True),
        ("10.0.0.1", "admin_token_file", False),
    ],
)
def test_an_admin_listener_off_loopback_without_tokens_says_what_is_open(tmp_path, logs, host, field, said):
    """Health and metrics; the rest needs tokens."""
    (tmp_path / "tokens").write_text("one")
    AccessControl(Settings(**({field: tmp_path / "tokens"} if field else {})), Metrics()).warn("127.0.0.1", host)
    assert [each["event"] for each in logs] == (["the admin listener has no tokens"] if said else [])
    assert not said or "/livez, /readyz and /metrics only" in logs[0]["why"]
