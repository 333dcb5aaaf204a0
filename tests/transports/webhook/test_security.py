"""Which servers the gateway trusts, and its own credentials, seen from both ends of a real TLS connection."""

import base64
import re
import ssl
import warnings
from functools import partial

import pytest

from gateway.engine.verdicts import Allow
from gateway.policies.model import Phase
from gateway.policies.workers.targets import ServiceReference, WebhookTarget
from gateway.reasons import Reason
from gateway.transports.webhook.client_credentials import Credentials, Users, WebhookAccess
from tests.authorities import DAY, Authority, now
from tests.transports.webhook.caller import called, eventually, policy_caller
from tests.transports.webhook.servers import NAME, Hook, handshaking, served, server_context

QUICK = 0.01
CLIENTS = Authority("clients")


def access(**user):
    """Access as this user, for every host."""
    users = Users(named={"*": Credentials(**user)})
    return WebhookAccess(mutating=users, validating=users)


def client(subject="gateway"):
    """A certificate of the gateway's, and its key."""
    return CLIENTS.issue(subject=subject)


async def answer_of(pair, bundle, tmp_path, host="127.0.0.1"):
    """What comes of calling a webhook with this certificate."""
    async with served(Hook(), server_context(*pair.write(tmp_path))) as hook:
        return await called({"url": f"https://{host}:{hook.port}", "ca_bundle": bundle})


# ------------------------------------------------------------------------------------------------ trust


async def test_a_service_is_reached_where_resolve_says(authority, pair):
    """Host, SNI and certificate are those of the Service; only the place is another."""
    context = server_context(*pair)
    named = []
    context.sni_callback = lambda _socket, name, _context: named.append(name)
    async with served(Hook(), context) as hook:
        target = WebhookTarget(
            service=ServiceReference(name="judge", namespace="hooks", path="/v1/judge", port=8443),
            ca_bundle=authority.pem,
        )
        resolved = WebhookAccess(resolved={(NAME, 8443): ("127.0.0.1", hook.port)})
        async with policy_caller(target, access=resolved) as caller:
            assert isinstance(await caller.call(), Allow)
            assert caller.worker.target == f"https://{NAME}:8443/v1/judge"
    assert named == [NAME]
    assert hook.got[0].header("Host") == f"{NAME}:8443"
    assert hook.got[0].target == "/v1/judge?timeout=30s"


async def test_a_bundle_may_hold_the_webhooks_own_certificate(authority, tmp_path):
    """Go believes whatever stands in the bundle, an authority or not; what is no certificate is passed over."""
    pair = authority.issue("127.0.0.1")
    junk = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    assert isinstance(await answer_of(pair, b"a comment\n" + junk + pair.certificate, tmp_path), Allow)


async def test_without_a_bundle_the_systems_authorities_are_believed(authority, pair, tmp_path, monkeypatch):
    """The file that this machine keeps them in; and when it changes, the next connection believes the new ones."""
    roots = tmp_path / "roots.pem"
    roots.write_bytes(Authority("others").pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(roots))
    async with (
        served(Hook(), server_context(*pair)) as hook,
        policy_caller({"url": hook.url}, webhook_reload_seconds=QUICK) as caller,
    ):
        assert (await caller.call()).reason is Reason.WORKER_UNAVAILABLE
        roots.write_bytes(authority.pem)
        await eventually(lambda: _allowed(caller))


async def _allowed(caller, **fields):
    return isinstance(await caller.call(**fields), Allow)


@pytest.mark.parametrize(
    ("names", "host", "words", "hint"),
    [
        (["127.0.0.1"], "localhost", "x509: certificate is not valid for localhost", "subjectAltName"),
        (["localhost"], "127.0.0.1", "x509: cannot validate certificate for 127.0.0.1", "subjectAltName"),
        ([], "localhost", "x509: certificate is not valid for localhost", "a common name does not count"),
    ],
)
async def test_a_certificate_for_another_name(authority, tmp_path, names, host, words, hint):
    """A name or address that it does not have, and a common name is none."""
    answer = await answer_of(authority.issue(*names, subject=host), authority.pem, tmp_path, host)
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert f"tls: failed to verify certificate: {words}" in answer.message
    assert hint in answer.hint


async def test_a_certificate_of_another_authority(authority, tmp_path):
    """Signed by an authority that is not in the bundle."""
    answer = await answer_of(Authority("others").issue("127.0.0.1"), authority.pem, tmp_path)
    assert answer.message.endswith("tls: failed to verify certificate: x509: certificate signed by unknown authority")
    assert "caBundle" in answer.hint


@pytest.mark.parametrize("times", [{"ends": now() - DAY}, {"begins": now() + DAY}])
async def test_a_certificate_out_of_its_time(authority, tmp_path, times):
    """Not any more, or not yet."""
    answer = await answer_of(authority.issue("127.0.0.1", **times), authority.pem, tmp_path)
    assert answer.message.endswith("x509: certificate has expired or is not yet valid")


async def test_an_old_version_of_tls_is_refused(authority, tmp_path):
    """TLS 1.2 or newer."""
    context = server_context(*authority.issue("127.0.0.1").write(tmp_path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # that these versions are old is the point
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with handshaking(context) as port:
        answer = await called({"url": f"https://127.0.0.1:{port}", "ca_bundle": authority.pem})
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert "TLS 1.2 or newer" in answer.hint


async def test_tls_1_2_and_http_1_1_are_spoken(authority, tmp_path):
    """A server that knows no newer version, and would rather speak HTTP/2."""
    context = server_context(*authority.issue("127.0.0.1").write(tmp_path), alpn=("h2", "http/1.1"))
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with served(Hook(), context) as hook:
        assert isinstance(await called({"url": hook.url, "ca_bundle": authority.pem}), Allow)


@pytest.mark.parametrize("bundle", [b"what?", b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"])
async def test_an_invalid_bundle_is_an_error_of_the_configuration(bundle):
    """The worker is made, and each call says why it cannot be called."""
    answer = await called({"url": "https://127.0.0.1:1", "ca_bundle": bundle})
    assert answer.reason is Reason.CONFIGURATION
    assert (
        "could not get REST client: unable to load root certificates: unable to parse bytes as PEM block"
        in answer.message
    )


# ------------------------------------------------------------------------------------------- what is proved with


async def test_without_credentials_nothing_is_sent(authority, pair):
    """Not even to a webhook that requests a certificate; the failure says what to do."""
    async with served(Hook(), server_context(*pair)) as hook:
        await called({"url": hook.url, "ca_bundle": authority.pem})
    async with served(Hook(), server_context(*pair, client_ca=CLIENTS.pem)) as strict:
        answer = await called({"url": strict.url, "ca_bundle": authority.pem})
    assert (hook.got[0].header("Authorization"), hook.got[0].subject) == (None, "")
    assert not strict.got
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert "--webhook-kubeconfig" in answer.hint


@pytest.mark.parametrize("inline", [True, False])
async def test_a_client_certificate_is_shown(authority, pair, tmp_path, inline):
    """As it stands in the kubeconfig, or in its files."""
    mine = client()
    cert_file, key_file = mine.write(tmp_path)
    user = (
        {"certificate": mine.certificate, "key": mine.key}
        if inline
        else {"certificate_file": cert_file, "key_file": key_file}
    )
    async with served(Hook(), server_context(*pair, client_ca=CLIENTS.pem)) as hook:
        answer = await called({"url": hook.url, "ca_bundle": authority.pem}, access=access(**user))
    assert isinstance(answer, Allow)
    assert hook.got[0].subject == "gateway"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("credentials", "alert", "hint"),
    [
        ("others", "unknown ca", "does not accept the gateway's certificate"),
        (None, "(handshake failure|certificate required)", "--webhook-kubeconfig"),
    ],
)
async def test_a_client_certificate_that_is_not_taken(authority, pair, version, credentials, alert, hint):
    """Another one, or none: the failure has the alert, and what to do."""
    other = Authority("unknown").issue(subject="gateway")
    user = access(certificate=other.certificate, key=other.key) if credentials else None
    context = server_context(*pair, client_ca=CLIENTS.pem)
    context.maximum_version = version
    with handshaking(context) as port:
        target = {"url": f"https://127.0.0.1:{port}", "ca_bundle": authority.pem}
        answer = await called(target, access=user)
    assert answer.reason is Reason.WORKER_UNAVAILABLE
    assert hint in answer.hint
    assert re.search(f"remote error: tls: {alert}$|connection reset by peer$|EOF$", answer.message)


async def test_a_token_is_sent(authority, pair):
    """As bearer token."""
    async with served(Hook(), server_context(*pair)) as hook:
        await called({"url": hook.url, "ca_bundle": authority.pem}, access=access(token="svc-bearer-token-123"))
    assert hook.got[0].header("Authorization") == "Bearer svc-bearer-token-123"
    names = [name for name, _ in hook.got[0].headers]
    assert names == [
        "Host",
        "User-Agent",
        "Content-Length",
        "Accept",
        "Content-Type",
        "Authorization",
        "Accept-Encoding",
    ]


async def test_basic_authentication_is_utf_8(authority, pair):
    """With a colon and an umlaut in the password, as kube-apiserver sends it."""
    user = access(username="hookuser", password="p:s+w\u00f6rd")
    async with served(Hook(), server_context(*pair)) as hook:
        await called({"url": hook.url, "ca_bundle": authority.pem}, access=user)
    expected = base64.b64encode("hookuser:p:s+w\u00f6rd".encode()).decode()
    assert hook.got[0].header("Authorization") == f"Basic {expected}"


async def test_the_two_phases_may_have_different_credentials(authority, pair):
    """Each call is made with its own."""
    both = WebhookAccess(
        mutating=Users(named={"*": Credentials(token="mutates")}),
        validating=Users(named={"*": Credentials(token="validates")}),
    )
    async with (
        served(Hook(), server_context(*pair)) as hook,
        policy_caller({"url": hook.url, "ca_bundle": authority.pem}, access=both) as caller,
    ):
        for phase in (Phase.MUTATING, Phase.VALIDATING, Phase.MUTATING):
            await caller.call(phase=phase)
    assert [got.header("Authorization") for got in hook.got] == [
        "Bearer mutates",
        "Bearer validates",
        "Bearer mutates",
    ]
    assert [got.connection for got in hook.got] == [0, 1, 0]


# ---------------------------------------------------------------------------------------------------- what changes


async def test_a_client_certificate_that_is_renewed_is_shown_by_new_connections(authority, pair, tmp_path):
    """Those that are open, and calls on them, go on."""
    cert_file, key_file = client("first").write(tmp_path)
    user = access(certificate_file=cert_file, key_file=key_file)
    async with served(Hook(), server_context(*pair, client_ca=CLIENTS.pem)) as hook:
        target = {"url": hook.url, "ca_bundle": authority.pem}
        async with policy_caller(target, access=user, webhook_reload_seconds=QUICK) as caller:
            assert await _allowed(caller)
            client("second").write(tmp_path)
            await eventually(lambda: _shown(caller, hook, "second"))
    assert hook.got[0].subject == "first"


async def _shown(caller, hook, subject):
    assert isinstance(await caller.call(), Allow)
    return hook.got[-1].subject == subject


async def test_a_broken_renewal_leaves_what_was_there(authority, pair, tmp_path):
    """A key that does not belong to the certificate, half written files: calls go on as before, until it is mended."""
    first, second = client("first"), client("second")
    cert_file, key_file = first.write(tmp_path)
    user = access(certificate_file=cert_file, key_file=key_file)
    async with served(Hook(), server_context(*pair, client_ca=CLIENTS.pem)) as hook:
        target = {"url": hook.url, "ca_bundle": authority.pem}
        async with policy_caller(target, access=user, webhook_reload_seconds=QUICK) as caller:
            assert await _allowed(caller)
            for content in (second.key, second.key[:20], b""):
                (tmp_path / "tls.key").write_bytes(content)
                for _ in range(5):
                    assert await _shown(caller, hook, "first")
            second.write(tmp_path)
            await eventually(lambda: _shown(caller, hook, "second"))


@pytest.mark.parametrize(
    "broken",
    [
        {"key_file": "none"},
        {"token_file": "none"},
        {"token_file": "empty"},
        {"token_file": "bad"},
        {"key_file": "empty"},
    ],
)
async def test_files_that_cannot_be_used_fail_the_calls_until_they_can(authority, pair, tmp_path, broken):
    """The worker is made, its calls say which file it is, and it recovers by itself."""
    mine = client()
    cert_file, key_file = mine.write(tmp_path)
    (tmp_path / "empty").write_bytes(b"\n")
    (tmp_path / "bad").write_text("two\nlines\n")
    ((label, name),) = broken.items()
    path = tmp_path / name
    files = {"certificate_file": cert_file, "key_file": key_file} | {label: str(path)}
    async with served(Hook(), server_context(*pair, client_ca=CLIENTS.pem)) as hook:
        target = {"url": hook.url, "ca_bundle": authority.pem}
        async with policy_caller(target, access=access(**files), webhook_reload_seconds=QUICK) as caller:
            answer = await caller.call()
            assert answer.reason is Reason.CONFIGURATION
            assert label.split("_")[0] in answer.message.lower()
            assert not hook.got
            path.write_bytes(mine.key if label == "key_file" else b"token\n")
            await eventually(lambda: _allowed(caller))


async def test_a_token_file_is_read_again(authority, pair, tmp_path):
    """And goes before the token beside it, as long as it can be read; blanks around it are cut off."""
    file = tmp_path / "token"
    user = access(token="inline", token_file=str(file))
    async with served(Hook(), server_context(*pair)) as hook:
        target = {"url": hook.url, "ca_bundle": authority.pem}
        async with policy_caller(target, access=user, webhook_reload_seconds=QUICK) as caller:
            await caller.call()
            assert hook.got[-1].header("Authorization") == "Bearer inline"
            for token in ("first", "second"):
                file.write_text(f"{token}\n")
                await eventually(partial(_authorized, caller, hook, f"Bearer {token}"))
    assert hook.connections == 1


async def _authorized(caller, hook, authorization):
    await caller.call()
    return hook.got[-1].header("Authorization") == authorization


async def test_a_key_with_a_password_fails_the_calls(authority, pair, tmp_path):
    """The gateway cannot enter it: the calls fail with that reason."""
    from cryptography.hazmat.primitives.asymmetric import ec  # noqa: PLC0415 - of this test alone

    from tests.authorities import private_pem  # noqa: PLC0415 - as above

    key = ec.generate_private_key(ec.SECP256R1())
    mine = CLIENTS.issue(subject="gateway", key=key)
    user = access(certificate=mine.certificate, key=private_pem(key, b"secret"))
    async with served(Hook(), server_context(*pair)) as hook:
        answer = await called({"url": hook.url, "ca_bundle": authority.pem}, access=user)
    assert answer.reason is Reason.CONFIGURATION
    assert "it is encrypted" in answer.message
    assert "PRIVATE KEY" not in answer.message
    assert not list(tmp_path.iterdir())


async def test_no_proxy_of_the_environment_is_used(calling, monkeypatch):
    """A call goes to the webhook itself."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    async with calling() as (_, caller):
        assert isinstance(await caller.call(), Allow)
