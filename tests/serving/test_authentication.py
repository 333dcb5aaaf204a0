"""Which clients may call: over TLS, with each kind of credentials, and with what is none."""

import base64
import socket
import ssl
from contextlib import ExitStack, contextmanager

import pytest

from gateway.policies.model import Phase
from gateway.serving.authentication import ClientAuthentication, certificate_names
from gateway.serving.credential_files import BEARER_TOKENS, PASSWORDS, PATH_SECRETS, CredentialFile
from gateway.serving.plans import Target
from gateway.serving.tls import read_pair, server_context
from tests.authorities import Authority

SECRET = "0123456789abcdef0123456789abcdef"
JSON = {"Content-Type": "application/json"}
USERS = "hooks:p:ss wörd\nother:x\n"
CHALLENGES = 'Bearer realm="admission-gateway", Basic realm="admission-gateway", charset="UTF-8"'


def basic(credentials):
    """The header of a user and password."""
    return f"Basic {base64.b64encode(credentials.encode()).decode()}"


@pytest.fixture
def credentials(tmp_path):
    """The files of these kinds: ``credentials(BEARER_TOKENS)``."""
    contents = {BEARER_TOKENS.flag: "new\nold\n", PASSWORDS.flag: USERS, PATH_SECRETS.flag: SECRET}

    def files(*kinds):
        made = []
        for kind in kinds:
            path = tmp_path / kind.flag.strip("-")
            path.write_text(contents[kind.flag])
            made.append(CredentialFile(path, kind))
        return made

    return files


@pytest.fixture
def guarded(serve, credentials):
    """A server that accepts these kinds."""
    return lambda *kinds, **options: serve(authentication=ClientAuthentication(files=credentials(*kinds)), **options)


@pytest.mark.parametrize(
    "header",
    ["Bearer new", "Bearer old", "bearer  old", "BEARER old ", basic("hooks:p:ss wörd"), basic("other:x")],
)
def test_each_of_several_credentials_is_accepted(guarded, header):
    """Of several kinds, and several of each kind: as kube-apiserver sends them, and as RFC 9110 lets others."""
    served = guarded(BEARER_TOKENS, PASSWORDS)
    assert served.post(headers=JSON | {"Authorization": header})[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer "},
        {"Authorization": "Bearer ol"},
        {"Authorization": "Bearer older"},
        {"Authorization": "Bearer OLD"},
        {"Authorization": "Bearer new,old"},
        {"Authorization": "Bearer new old"},
        {"Authorization": "Basic new"},
        {"Authorization": "Bearer hooks:p:ss"},
        {"Authorization": "new"},
        {"Authorization": basic("hooks:p")},
        {"Authorization": basic("hooks:")},
        {"Authorization": basic("other:p:ss wörd")},
        {"Authorization": basic("other:x") + "="},
        {"Authorization": "Basic hooks:p:ss"},
        {"Authorization": b"Bearer \xff\xfe\xc3\xb6"},
        {"Authorization": "Bearer " + "x" * 8000},
        {"X-Authorization": "Bearer new"},
        {"Cookie": "new"},
    ],
)
def test_other_credentials_are_a_401(guarded, headers, logs):
    """With the challenges of what is accepted; nothing judges the review, and the log has no credential."""
    served = guarded(BEARER_TOKENS, PASSWORDS)
    status, answered, body = served.post(headers=JSON | headers)
    assert (status, answered["WWW-Authenticate"]) == (401, CHALLENGES)
    assert body.startswith(b"admission-gateway: the client has ")
    assert served.judge.called == []
    assert served.events == [("refused", "unauthenticated")]
    assert "new" not in str(logs)


def test_credentials_that_stand_twice_are_a_401(guarded):
    """Proxies differ in which one they read."""
    served = guarded(BEARER_TOKENS)
    connection = served.tls()
    connection.sendall(
        b"POST /mutate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 2\r\n"
        b"Authorization: Bearer new\r\nAuthorization: Bearer new\r\n\r\n{}"
    )
    assert connection.recv(100).startswith(b"HTTP/1.1 401 ")
    assert served.judge.called == []


def test_credentials_beyond_the_limit_are_a_431(guarded):
    """A field of 8190 bytes is the longest, so that no client costs more than that."""
    served = guarded(BEARER_TOKENS)
    assert served.post(headers=JSON | {"Authorization": "Bearer " + "x" * 20_000})[0] == 431
    assert served.post(headers=JSON | {"Authorization": "Bearer new"})[0] == 200


def test_the_body_of_a_client_without_credentials_is_discarded(guarded):
    """The client gets its answer although it sends a body of megabytes, and the review is never parsed."""
    served = guarded(BEARER_TOKENS)
    status, headers, _ = served.post(b"x" * 5_000_000)
    assert (status, headers["Connection"]) == (401, "close")
    assert served.front.load.body_bytes == 0


@pytest.mark.parametrize("path", ["/mutate", "/nothing", "/", "/mutate/absent", "/purge"])
def test_clients_without_credentials_learn_of_no_path(guarded, path):
    """Whatever the path and the method, and even if the gateway is not ready."""
    served = guarded(BEARER_TOKENS, not_ready="starting")
    assert served.post(path=path)[0] == 401
    assert served.post(path=path, method="GET")[0] == 401


def test_the_health_check_of_shell_operator_needs_no_credentials(guarded):
    """The kubelet has none; and nothing else of a server with hooks is open."""
    served = guarded(BEARER_TOKENS)
    served.routes.has_hooks = True
    assert served.post(path="/healthz", method="GET")[0] == 200
    assert served.post(path="/hooks/a")[0] == 401


def test_a_connection_outlives_a_refusal(guarded):
    """A client with wrong credentials can try others on the same connection."""
    served = guarded(BEARER_TOKENS)
    client = served.client()
    for token, status in (("none", 401), ("new", 200), ("none", 401), ("old", 200)):
        client.request("POST", "/mutate", b"{}", JSON | {"Authorization": f"Bearer {token}"})
        response = client.getresponse()
        assert (response.status, bool(response.read())) == (status, True)


def test_a_removed_token_ends_at_the_next_request(serve, credentials):
    """On connections that exist, too."""
    (file,) = credentials(BEARER_TOKENS)
    served = serve(authentication=ClientAuthentication(files=[file]))
    client = served.client()

    def status():
        client.request("POST", "/mutate", b"{}", JSON | {"Authorization": "Bearer old"})
        response = client.getresponse()
        response.read()
        return response.status

    assert status() == 200
    file.path.write_text("new")
    served.loop.call(lambda: file.poll(requested=True))
    assert status() == 401


# --------------------------------------------------------------------------------------------------- path secrets


@pytest.mark.parametrize(
    ("path", "status"),
    [
        (f"/{SECRET}/mutate?timeout=10s", 200),
        (f"/{SECRET}/mutate/entry", 200),
        (f"/{SECRET}/mutate/absent", 404),
        (f"/{SECRET}/{SECRET}/mutate", 404),
        (f"/{SECRET}", 404),
        (f"/{SECRET}/", 404),
        ("/mutate", 403),
        ("/mutate/entry", 403),
        (f"/mutate/{SECRET}", 403),
        (f"//{SECRET}/mutate", 403),
        (f"/{SECRET[:-1]}/mutate", 403),
        (f"/{SECRET}0/mutate", 403),
        (f"/%30{SECRET[1:]}/mutate", 403),
        (f"/{SECRET.upper()}/mutate", 403),
        (f"/mutate?secret={SECRET}", 403),
        ("/%ff%fe/mutate", 403),
    ],
)
def test_a_path_secret_is_the_first_segment(guarded, path, status, logs):
    """As it was registered, and nowhere else. It is in no log and in no answer."""
    served = guarded(PATH_SECRETS, entries=[Target(Phase.MUTATING, "entry")])
    answered, _, body = served.post(path=path)
    assert answered == status
    assert len(served.judge.called) == (status == 200)
    if f"/{SECRET}/{SECRET}" not in path:
        assert SECRET not in f"{logs} {body}"


def test_a_path_without_a_secret_is_a_401_where_a_token_would_do(guarded):
    """Only the kinds of HTTP are challenges. With a token the path needs no secret, with a secret no token."""
    served = guarded(BEARER_TOKENS, PATH_SECRETS)
    status, headers, _ = served.post()
    assert (status, headers["WWW-Authenticate"]) == (401, 'Bearer realm="admission-gateway"')
    assert served.post(headers=JSON | {"Authorization": "Bearer new"})[0] == 200
    assert served.post(path=f"/{SECRET}/mutate")[0] == 200


# --------------------------------------------------------------------------------------------------- certificates


CLIENTS, STRANGERS = Authority("clients"), Authority("strangers")


@contextmanager
def presenting(served, folder, pair):
    """A client's certificate on all connections inside."""
    before, context = served.client_context, ssl.create_default_context()
    context.load_verify_locations(cadata=served.ca.read_text())
    context.load_cert_chain(*pair.write(folder, "client"))
    served.client_context = context
    try:
        yield
    finally:
        served.client_context = before


@pytest.fixture
def certified(serve, credentials, certificates, tmp_path):
    """A server that accepts clients' certificates, of these names only, and these kinds."""
    ca = tmp_path / "clients.crt"
    ca.write_bytes(CLIENTS.pem)

    def start(*kinds, names=()):
        authentication = ClientAuthentication(certificates=True, allowed_names=names, files=credentials(*kinds))
        served = serve(authentication=authentication, client_ca=ca)
        served.ca = certificates.ca_file
        return served

    return start


@pytest.mark.parametrize("name", ["kube-apiserver", "webhooks.example.com"])
def test_a_certificate_with_an_allowed_name_is_accepted(certified, tmp_path, name):
    """The name is its CN, or in subjectAltName."""
    served = certified(names=["other", name])
    with presenting(served, tmp_path, CLIENTS.issue("webhooks.example.com", subject="kube-apiserver")):
        assert served.is_well()


def test_api_servers_that_share_a_certificate_are_told_apart(certified, tmp_path):
    """Each has an address of its own, and so a share of its own under overload."""
    served = certified()
    with presenting(served, tmp_path, CLIENTS.issue(subject="kube-apiserver")), ExitStack() as stack:
        for address in ("127.0.0.1", "127.0.0.1", "127.0.0.2"):
            plain = stack.enter_context(socket.create_connection(served.address[:2], source_address=(address, 0)))
            stack.enter_context(served.client_context.wrap_socket(plain, server_hostname="localhost"))
        served.until(lambda: served.front.connections == 3)
        clients = {each.client for each in served.front._connections.connections}
    assert clients == {"kube-apiserver 127.0.0.1", "kube-apiserver 127.0.0.2"}


@pytest.mark.parametrize("name", ["kube", "Kube-apiserver", "*", "kube-apiserver ", "example.com", "*.example.com"])
def test_a_certificate_without_an_allowed_name_is_a_403(certified, tmp_path, name):
    """Names are compared as they stand; the answer has those of the certificate."""
    served = certified(names=[name])
    with presenting(served, tmp_path, CLIENTS.issue("webhooks.example.com", subject="kube-apiserver")):
        status, _, body = served.post()
    assert status == 403
    assert b'"kube-apiserver", "webhooks.example.com", none of which is allowed' in body
    assert (served.judge.called, served.events) == ([], [("refused", "forbidden")])


def test_any_credential_is_enough(certified, tmp_path):
    """With a CA and tokens: a certificate, or a token, even beside a certificate whose name is not allowed."""
    served = certified(BEARER_TOKENS, names=["kube-apiserver"])
    token = JSON | {"Authorization": "Bearer new"}
    assert served.post(headers=token)[0] == 200
    assert served.post()[0] == 401
    with presenting(served, tmp_path, CLIENTS.issue(subject="kube-apiserver")):
        assert served.post()[0] == 200
        assert served.post(headers=JSON | {"Authorization": "Bearer wrong"})[0] == 200
    with presenting(served, tmp_path, CLIENTS.issue(subject="another")):
        assert served.post(headers=token)[0] == 200
        assert served.post()[0] == 403


def test_a_certificate_of_another_ca_is_refused_with_the_handshake(certified, tmp_path):
    """Even beside a token. The client gets the TLS alert, also if it has sent a request with the handshake."""
    served = certified(BEARER_TOKENS)
    stranger = STRANGERS.issue(subject="kube-apiserver")
    for _ in range(10):
        with presenting(served, tmp_path, stranger), pytest.raises(ssl.SSLError, match="ALERT_UNKNOWN_CA"):
            served.post(b"{}" * 10_000, headers=JSON | {"Authorization": "Bearer new"})
    assert served.judge.called == []
    assert served.events == [("refused", "tls")] * 10


def test_a_removed_ca_ends_a_connection_with_its_next_reply(certified, certificates, tmp_path):
    """By `Connection: close`, which loses no review. Connections without a certificate stay."""
    served = certified(BEARER_TOKENS)
    with presenting(served, tmp_path, CLIENTS.issue(subject="kube-apiserver")):
        certain = served.client()
    others, token = served.client(), JSON | {"Authorization": "Bearer new"}

    def replies(client, headers):
        client.request("POST", "/mutate", b"{}", headers)
        response = client.getresponse()
        response.read()
        return response.status, response.headers.get("Connection")

    assert [replies(certain, JSON), replies(others, token)] == [(200, None)] * 2
    (tmp_path / "clients.crt").write_bytes(STRANGERS.pem)
    pair = read_pair(certificates.cert_file, certificates.key_file)
    context = server_context(pair, [tmp_path / "clients.crt"], certificate_optional=True)
    served.loop.call(served.front.renew, context)
    assert [replies(certain, JSON), replies(others, token)] == [(200, "close"), (200, None)]
    with pytest.raises(ssl.SSLError, match="ALERT_UNKNOWN_CA"):
        replies(certain, JSON)


@pytest.mark.parametrize(
    ("certificate", "names"),
    [
        (None, None),
        ({}, None),
        ({"subject": ()}, set()),
        ({"subject": ((("commonName", "a"), ("commonName", "b")), (("organizationName", "o"),))}, {"a", "b"}),
        ({"subjectAltName": (("DNS", "d"), ("URI", "spiffe://u"), ("IP Address", "1.2.3.4"), ("email", "e"))},
         {"d", "spiffe://u"}),
    ],
)  # fmt: skip
def test_the_names_of_a_certificate_are_its_cn_and_dns_and_uri_names(certificate, names):
    """No other part of the subject, no address, no mailbox."""
    assert certificate_names(certificate) == names
